"""The engine that podbot finds in tests of the library's calls and of the command line: one in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from podbot.engine.driver import EngineMachine
from podbot.engine.endpoint import Endpoint
from podbot.engine.podman import driver as podman
from podbot.engine.podman.engine_machine import PodmanMachine
from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.errors import PodbotError
from podbot.testing import FakeEngine

READY = PodmanFacts(distribution=("fedora",))  # no podman program: what the engine needs is not on this machine


@dataclass
class FakeDriver:
    """An ``EngineDriver`` of ``engine``; ``failure``: the error instead of an engine.

    Its machine lacks nothing that is known, whatever the one that runs the tests lacks.
    """

    engine: FakeEngine
    failure: PodbotError | None = None
    locate: Callable[[Any, Mapping[str, str]], Endpoint | None] = podman.locate
    machine: Callable[[Mapping[str, str]], EngineMachine] = field(init=False)
    WORDS = podman.WORDS

    def __post_init__(self) -> None:
        self.runs_on(READY)

    def connect(self, *_: object) -> FakeEngine:
        if self.failure is not None:
            raise self.failure
        return self.engine

    def reopen(self, _endpoint: str, _origin: str, _environ: Mapping[str, str] | None = None) -> FakeEngine:
        return self.engine

    def runs_on(self, facts: PodmanFacts) -> None:
        """This machine is one with ``facts``. What is free on the one that runs the tests decides nothing."""
        self.machine = lambda _environ: PodmanMachine(facts, "", look=lambda _path: None)
