from __future__ import annotations

import itertools

import pytest

from podbot.session.record import MOVES, STATES, State, moved, observed

ALLOWED = [
    "claimed creating", "claimed orphaned", "claimed gone",
    "creating running", "creating orphaned", "creating gone",
    "running stopped", "running orphaned", "running gone",
    "stopped starting", "stopped gone",
    "starting detached", "starting stopped", "starting orphaned", "starting gone",
    "detached stopped", "detached gone",
    "orphaned stopped", "orphaned gone",
]  # fmt: skip


def test_the_table_has_every_state() -> None:
    assert set(MOVES) == set(STATES)


@pytest.mark.parametrize(("before", "after"), [*itertools.product(STATES, STATES)])
def test_every_move_is_allowed_or_refused_by_the_table(before: State, after: State) -> None:
    if f"{before} {after}" in ALLOWED:
        assert moved(before, after) == after
    else:
        with pytest.raises(ValueError, match=f"is {before} cannot become {after}"):
            moved(before, after)


def test_every_session_can_end() -> None:
    """Every state has a path to ``gone``, and none leads back from there."""
    ends = {"gone"}
    while more := {state for state in STATES if state not in ends and MOVES[state] & ends}:
        ends |= more
    assert ends == set(STATES)
    assert MOVES["gone"] == frozenset()


@pytest.mark.parametrize("state", STATES)
def test_a_session_that_needs_a_podbot_process_is_left_behind_without_one(state: State) -> None:
    needs = state in ("claimed", "creating", "running", "starting")
    assert observed(state, live=False) == ("orphaned" if needs else state)
    assert observed(state, live=True) == state
    if needs:
        assert "orphaned" in MOVES[state]
