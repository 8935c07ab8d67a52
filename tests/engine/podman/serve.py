"""The shape of a fixture of this room, and what its tests ask for."""

from __future__ import annotations

from collections.abc import Callable

from podbot.container_spec import ContainerSpec, Security
from podbot.engine.podman.rest import RestEngine
from podbot.exec_spec import ExecSpec
from tests.engine.serving import Server

Serve = Callable[..., tuple[RestEngine, Server]]
SPEC = ContainerSpec(
    name="podbot-rec-1",
    image="localhost/nope:1",
    image_origin="config file x",
    labels={},
    mounts=(),
    security=Security(),
    origins={"sandbox.network": "flag --network"},
)
TRUE = ExecSpec(command=("true",))
