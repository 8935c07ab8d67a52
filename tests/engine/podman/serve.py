"""The shape of a fixture of this room."""

from __future__ import annotations

from collections.abc import Callable

from podbot.engine.podman.rest import RestEngine
from tests.engine.serving import Server

Serve = Callable[..., tuple[RestEngine, Server]]
