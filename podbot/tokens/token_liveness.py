"""Whether a session's container still runs, for sessions whose podbot is gone: asked of engines, seldom.

An engine that does not answer says nothing about its containers: their tokens are kept. No engine is started
for the question, and none is kept awake by it: the pauses between two questions double while the answer stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Literal

from podbot.engine.port import Engine
from podbot.errors import ContainerNotFound, NotOurs, PodbotError
from podbot.events import Emit, Event
from podbot.launch.labels import MANAGED
from podbot.session.orphans import is_ours, our_container
from podbot.tokens.jobs import Jobs

Verdict = Literal["runs", "stopped", "gone", "unknown"]
Connect = Callable[[str], Engine]
"""An engine at a session's recorded endpoint, not yet spoken to; raises PodbotError for one that cannot be."""

FIRST, LONGEST = 15.0, 600.0  # seconds between questions; podbot's private service ends after 300 idle ones
_RUNS = ("running", "paused", "pausing", "stopping", "restarting")


def verdicts(engine: Engine, names: Iterable[str]) -> dict[str, Verdict]:
    """What one engine says of the containers ``names``, by one listing; what is not in it is asked for by name.

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
    at: float = float("-inf")  # when the latest question was put
    answered: float = float("-inf")
    every: float = FIRST
    asking: bool = False
    said: dict[str, Verdict] = field(default_factory=dict)
    away: bool = False


class Engines:
    """The latest answers of all engines. Belongs to the loop's thread."""

    def __init__(
        self, jobs: Jobs, emit: Emit, *, connect: Connect, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._jobs, self._emit, self._connect, self._clock = jobs, emit, connect, clock
        self._asked: dict[str, _Asked] = {}

    def verdict(self, endpoint: str, name: str) -> Verdict | None:
        """The latest answer about a container; None when it was never asked for."""
        return self._asked[endpoint].said.get(name) if endpoint in self._asked else None

    def forget(self, names: Collection[str] | None = None) -> None:
        """Ask about ``names`` afresh, or about all."""
        for asked in self._asked.values():
            asked.every = FIRST
            for name in list(asked.said) if names is None else names:
                asked.said.pop(name, None)

    def look(self, endpoint: str, names: Collection[str], *, within: float = LONGEST) -> bool:
        """Ask again when it is time to, or the answer is older than ``within``; whether there is one to go by now."""
        now = self._clock()
        asked = self._asked.setdefault(endpoint, _Asked())
        unknown = [name for name in names if name not in asked.said]
        if not asked.asking and (unknown or now - asked.at >= min(asked.every, within)):
            asked.asking = True
            asked.at = now
            self._jobs.start(f"engine {endpoint}", lambda: self._question(endpoint, asked, tuple(names)))
        return not unknown and now - asked.answered <= within

    def _question(self, endpoint: str, asked: _Asked, names: tuple[str, ...]) -> Callable[[], None]:
        found: dict[str, Verdict]
        reason = ""
        try:
            engine = self._connect(endpoint)
            try:
                found = verdicts(engine, names)
            finally:
                engine.close()
        except PodbotError as exc:
            found, reason = dict.fromkeys(names, "unknown"), exc.message
        except Exception as exc:  # noqa: BLE001 - a bug in the question must not end the renewals
            found, reason = dict.fromkeys(names, "unknown"), f"unexpected {type(exc).__name__}"
        return lambda: self._answer(endpoint, asked, found, reason)

    def _answer(self, endpoint: str, asked: _Asked, found: dict[str, Verdict], reason: str) -> None:
        asked.every = min(asked.every * 2, LONGEST) if found == asked.said else FIRST
        asked.asking, asked.answered, asked.said = False, self._clock(), found
        if bool(reason) == asked.away:
            return
        asked.away = bool(reason)
        if reason:
            text = f"{reason}; the tokens of its sessions will still be renewed"
            self._emit(Event("warning", "daemon.engine_away", text, {"endpoint": endpoint}))
        else:
            text = f"the engine at {endpoint} answers again"
            self._emit(Event("notice", "daemon.engine_back", text, {"endpoint": endpoint}))
