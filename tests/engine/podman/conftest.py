"""What the tests of this room share."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import pytest

from podbot.engine.podman.container_ending import Ending
from podbot.engine.podman.rest import RestEngine
from tests.engine.podman.serve import Serve
from tests.engine.serving import VERSIONS, Answer, Server, recordings_of, serving


@pytest.fixture
def serve(short_path: str) -> Iterator[Serve]:
    """An engine that talks to a server with these answers. ``more``: the engine's other arguments.

    Unless ``ending`` says otherwise, no process of this host is looked at.
    """
    with contextlib.ExitStack() as stack:

        def start(*answers: Answer, **more: Any) -> tuple[RestEngine, Server]:
            path = os.path.join(short_path, f"{os.urandom(4).hex()}.sock")
            server = stack.enter_context(serving(path, *answers))
            engine = RestEngine(server.endpoint, **{"ending": Ending(local=False), **more})
            stack.callback(engine.close)
            return engine, server

        yield start


@pytest.fixture(params=VERSIONS)
def each_podman(request: pytest.FixtureRequest) -> Iterator[None]:
    """What is replayed is each recorded Podman's in turn."""
    with recordings_of(request.param):
        yield
