"""The engine's contract, the same tests that FakeEngine passes, on real Podman."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

import podbot
from e2e.harness import World
from podbot.engine.port import Engine
from podbot.testing.engine_contract import EngineContract


class TestPodman(EngineContract):
    """Podman's REST API behind podbot's private service."""

    @pytest.fixture
    def bare_engine(self, shared_world: World) -> Iterator[Engine]:
        config = podbot.load_config(podbot.LoadOptions(environ=shared_world.env))
        with podbot.open_engine(config, environ={**os.environ, **shared_world.env}) as engine:
            yield engine
