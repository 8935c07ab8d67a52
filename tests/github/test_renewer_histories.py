"""In any history of renewers, clocks and failures the token is valid, and none is asked for too early."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podbot.github import schedule
from podbot.github.renewer import Renewer
from tests.examples import examples
from tests.github.simulated import BUSY, HOUR, Session, started

# What happens next, and for how long (s) things then run on.
steps = st.tuples(
    st.sampled_from(["nothing", "jump", "sleep", "down", "up", "daemon", "daemon ends", "run restarts", "killed"]),
    st.floats(-3 * HOUR, 3 * HOUR),
    st.floats(0.1, 400),
)


class World:
    """A run and up to two daemons on one session, driven as their callers do."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.run = started(session)
        self.daemons: list[Renewer] = []
        self.up_since: float | None = 0.0
        self.due_when_asked: list[bool] = []
        self.asleep_until = 0.0
        session.github.during = self.noted

    def noted(self) -> None:
        """The replaced token was due according to the schedule's own calculation for the newest token."""
        term = self.session.github.terms[-1]
        clock = self.session.clock
        left = schedule.remaining(term, clock.time(), clock.monotonic())
        jitter = schedule.jitter_of("shop-1", term.expires_at)
        self.due_when_asked.append(schedule.next_delay(left, 0, jitter=jitter, life=term.life) == 0)

    def happen(self, what: str, amount: float) -> None:
        session, clock = self.session, self.session.clock
        if what == "jump":
            clock.skew += amount
        elif what == "sleep":
            clock.now += abs(amount)
            self.asleep_until = clock.now
        elif what == "down" and self.up_since is not None:
            session.github.error, self.up_since = BUSY, None
        elif what == "up" and self.up_since is None:
            session.github.error, self.up_since = None, clock.now
        elif what == "daemon" and len(self.daemons) < 2:
            self.daemons.append(session.renewer("daemon"))
        elif what in ("daemon ends", "killed") and self.daemons:
            self.daemons.pop(0).close()
        elif what == "run restarts":
            self.run.close()
            self.run = session.renewer()

    def check(self) -> None:
        """The token in the file is good, unless GitHub or the machine was away not long ago."""
        clock = self.session.clock
        away = 75.0  # the maximum of the backoff, a check of the claim and of the lease
        if self.up_since is None or clock.now - max(self.up_since, self.asleep_until) < away:
            return
        token = self.session.token
        assert token is not None
        assert self.session.github.ends[token] > clock.now, "an expired token in the file"

    def go(self, seconds: float) -> None:
        clock = self.session.clock
        next_ticks = dict.fromkeys([self.run, *self.daemons], clock.now)
        end = clock.now + seconds
        while clock.now < end:
            renewer = min(next_ticks, key=lambda r: next_ticks[r])
            clock.now = min(end, max(clock.now, next_ticks[renewer]))
            pause = renewer.tick()
            assert 0 <= pause <= 5
            assert [r.writing for r in next_ticks].count(True) <= 1, "two writers"
            next_ticks[renewer] = clock.now + max(pause, 0.01)
            self.check()

    def close(self) -> None:
        for renewer in (self.run, *self.daemons):
            renewer.close()


@settings(max_examples=examples(40))
@given(st.lists(steps, min_size=1, max_size=10), st.randoms(use_true_random=False))
def test_in_any_history_the_token_is_valid_and_none_is_unnecessary(
    tmp_path_factory: pytest.TempPathFactory, history: list[tuple[str, float, float]], chance: Any
) -> None:
    session = Session(tmp_path_factory.mktemp("w"))
    world = World(session)
    try:
        for what, amount, seconds in history:
            world.happen(what, amount)
            world.go(seconds)
        world.happen("up", 0)
        world.go(300)
    finally:
        world.close()
    assert all(world.due_when_asked), "a token was asked for while the one before had more than the buffer left"
