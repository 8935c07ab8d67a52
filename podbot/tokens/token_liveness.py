"""Asks engines whether containers still run, for sessions whose podbot is gone.

If an engine does not answer, the tokens of its containers will still be renewed. No engine is started for the question,
and none is kept from going idle: the time between two questions doubles while the answer stays the same.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Literal

from podbot.engine.endpoint import EngineRef
from podbot.engine.port import Engine
from podbot.errors import ContainerNotFound, NotOurs, PodbotError
from podbot.events import Emit, Event
from podbot.launch.names import MANAGED
from podbot.session.orphans import is_ours, our_container
from podbot.tokens.worker_threads import Jobs

Verdict = Literal["runs", "stopped", "gone", "unknown"]
Connect = Callable[[EngineRef], Engine]
"""The engine in a session's record, not yet contacted; raises PodbotError if it cannot be opened."""

FIRST, LONGEST = 15.0, 600.0  # seconds between questions; podbot's private service ends after 300 idle ones
_RUNS = ("running", "paused", "pausing", "stopping", "restarting")


def verdicts(engine: Engine, names: Iterable[str]) -> dict[str, Verdict]:
    """The state of the containers ``names`` on one engine, from one listing; missing ones are looked up by name.

    Raises ContainerError.
    """
    listed = engine.containers(include_stopped=True, label=MANAGED)
    states = {found.name: found.state for found in listed if is_ours(found)}
    return {name: _verdict(states[name]) if name in states else _confirmed(engine, name) for name in names}


def _verdict(state: str) -> Verdict:
    return "runs" if state in _RUNS else "stopped"


def _confirmed(engine: Engine, name: str) -> Verdict:
    try:
        return _verdict(our_container(engine, name).state)
    except (ContainerNotFound, NotOurs):
        return "gone"


@dataclass
class _Asked:
    at: float = float("-inf")  # when the engine was last asked
    answered: float = float("-inf")
    every: float = FIRST
    asking: bool = False
    said: dict[str, Verdict] = field(default_factory=dict)
    away: bool = False


class Engines:
    """The latest answers of all engines. Used only by the loop's thread."""

    def __init__(
        self, jobs: Jobs, emit: Emit, *, connect: Connect, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._jobs, self._emit, self._connect, self._clock = jobs, emit, connect, clock
        self.asked: dict[EngineRef, _Asked] = {}

    def verdict(self, engine: EngineRef, name: str) -> Verdict | None:
        """The latest answer about a container; None when it was never asked for."""
        return self.asked[engine].said.get(name) if engine in self.asked else None

    def forget(self, names: Collection[str] | None = None) -> None:
        """Ask about ``names`` afresh, or about all."""
        for asked in self.asked.values():
            asked.every = FIRST
            for name in list(asked.said) if names is None else names:
                asked.said.pop(name, None)

    def look(self, engine: EngineRef, names: Collection[str], *, within: float = LONGEST) -> bool:
        """Ask again if that is due or the answer is older than ``within``; returns whether there is a recent answer."""
        now = self._clock()
        asked = self.asked.setdefault(engine, _Asked())
        unknown = [name for name in names if name not in asked.said]
        if not asked.asking and (unknown or now - asked.at >= min(asked.every, within)):
            asked.asking = True
            asked.at = now
            self._jobs.start(f"engine {engine.endpoint}", lambda: self._question(engine, asked, tuple(names)))
        return not unknown and now - asked.answered <= within

    def _question(self, engine: EngineRef, asked: _Asked, names: tuple[str, ...]) -> Callable[[], None]:
        found: dict[str, Verdict]
        reason = ""
        try:
            with contextlib.closing(self._connect(engine)) as connected:
                found = verdicts(connected, names)
        except PodbotError as exc:
            found, reason = dict.fromkeys(names, "unknown"), exc.message
        except Exception as exc:  # noqa: BLE001 - a bug here must not stop the renewals
            found, reason = dict.fromkeys(names, "unknown"), f"unexpected {type(exc).__name__}"
        return lambda: self._answer(engine, asked, found, reason)

    def _answer(self, engine: EngineRef, asked: _Asked, found: dict[str, Verdict], reason: str) -> None:
        asked.every = min(asked.every * 2, LONGEST) if found == asked.said else FIRST
        asked.asking, asked.answered, asked.said = False, self._clock(), found
        if bool(reason) == asked.away:
            return
        asked.away = bool(reason)
        if reason:
            text = f"{reason}; the tokens of its sessions will still be renewed"
            self._emit(Event("warning", "daemon.engine_away", text, {"endpoint": engine.endpoint}))
        else:
            text = f"the engine at {engine.endpoint} answers again"
            self._emit(Event("notice", "daemon.engine_back", text, {"endpoint": engine.endpoint}))
