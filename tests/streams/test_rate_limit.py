from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from podbot.hosting.agent_words import Budget

STEPS = st.lists(st.tuples(st.floats(0, 5, allow_nan=False), st.integers(0, 150)), max_size=60)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def run(steps: list[tuple[float, int]], rate: int, burst: int) -> list[tuple[float, int, bool]]:
    clock = Clock()
    budget = Budget(rate=rate, burst=burst, clock=clock)
    done = []
    for wait, amount in steps:
        clock.now += wait
        done.append((clock.now, amount, budget.take(amount)))
    return done


@given(STEPS, st.integers(1, 50), st.integers(1, 100))
def test_no_window_has_more_than_the_burst_and_its_seconds(
    steps: list[tuple[float, int]], rate: int, burst: int
) -> None:
    done = run(steps, rate, burst)
    for first in range(len(done)):
        spent = 0
        for at, amount, taken in done[first:]:
            spent += amount if taken else 0
            assert spent <= burst + rate * (at - done[first][0]) + 1e-6


@given(STEPS, st.integers(1, 50), st.integers(1, 100))
def test_it_does_not_close_and_reopen_within_a_second(steps: list[tuple[float, int]], rate: int, burst: int) -> None:
    """Each time it opens, a line on stderr reports what was dropped."""
    done = run([(wait, min(amount, burst)) for wait, amount in steps], rate, burst)
    closed = None
    for at, _, taken in done:
        if taken and closed is not None:
            assert at - closed >= min(1, burst / rate) - 1e-6
        closed = None if taken else at if closed is None else closed


@given(st.lists(st.integers(0, 10), max_size=30), st.integers(1, 50))
def test_output_below_the_rate_is_never_refused(amounts: list[int], rate: int) -> None:
    steps = [(amount / rate + 1e-6, amount) for amount in amounts]
    assert all(taken for *_, taken in run(steps, rate, max(10, rate)))


def test_it_reopens_with_a_seconds_budget() -> None:
    clock = Clock()
    budget = Budget(rate=10, burst=30, clock=clock)
    assert [budget.take(15) for _ in range(3)] == [True, True, False]
    clock.now = 0.9
    assert not budget.take(1)
    clock.now = 1.0
    assert budget.take(1)


def test_a_clock_that_goes_back_adds_no_budget() -> None:
    clock = Clock()
    budget = Budget(rate=10, burst=10, clock=clock)
    assert budget.take(10)
    clock.now = -100.0
    assert not budget.take(1)
    clock.now = 0.5
    assert not budget.take(6)
