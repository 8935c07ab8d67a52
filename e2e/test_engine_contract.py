"""The engine's contract, the same tests that FakeEngine passes, on real Podman."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

import pytest

import podbot
from e2e.harness import World
from podbot.engine.port import Engine
from podbot.testing.engine_contract import EngineContract, a_spec


class TestPodman(EngineContract):
    """Podman's REST API behind podbot's private service."""

    @pytest.fixture
    def bare_engine(self, shared_world: World) -> Iterator[Engine]:
        config = podbot.load_config(podbot.LoadOptions(environ=shared_world.env))
        with podbot.open_engine(config, environ={**os.environ, **shared_world.env}) as engine:
            yield engine

    def test_a_container_that_ends_during_its_removal_is_removed(self, engine: Engine, image: str) -> None:
        """Podman 4.3 refuses when the first process ends between its check and its KILL, at 5 to 40 ms here."""
        for number in range(24):
            spec = a_spec(image)
            container = engine.create(spec)
            engine.start(container)
            ending = threading.Timer(number % 12 * 0.005, _end, (engine.inspect(container).pid,))
            ending.start()
            engine.remove(container)
            ending.join()
            assert spec.name not in {found.name for found in engine.containers(include_stopped=True)}


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
