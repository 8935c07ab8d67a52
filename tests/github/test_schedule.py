"""The schedule's promises, over every time and count."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.github import schedule
from podbot.github.schedule import BUFFER, CEILING, FIRST, LIFE, RETRY_AFTER_MOST, SPREAD, Term

times = st.floats(-1e15, 1e15)
absurd = st.floats(allow_nan=True, allow_infinity=True)
jitters = st.floats(0, 1)
lives = st.floats(0, LIFE)
counts = st.integers(1, 10**9)


@given(absurd, absurd, st.integers(-5, 10**9), absurd, absurd)
def test_a_delay_is_never_negative_and_always_finite(
    expiry: float, now: float, failures: int, jitter: float, life: float
) -> None:
    delay = schedule.next_delay(expiry, now, failures, jitter=jitter, life=life)
    assert 0 <= delay <= LIFE


@given(times, times, jitters, lives)
def test_a_renewal_is_never_later_than_the_buffer_before_expiry(
    expiry: float, now: float, jitter: float, life: float
) -> None:
    delay = schedule.next_delay(expiry, now, jitter=jitter, life=life)
    assert delay == 0 or now + delay <= expiry - BUFFER + 1e-3 * max(1, abs(now) / 1e9)


@given(st.floats(0, 1e10), st.floats(0, LIFE), jitters, lives)
def test_jitter_only_makes_it_earlier_and_by_a_bounded_time(
    now: float, left: float, jitter: float, life: float
) -> None:
    plain = schedule.next_delay(now + left, now, life=life)
    jittered = schedule.next_delay(now + left, now, jitter=jitter, life=life)
    assert plain - SPREAD - 1e-3 <= jittered <= plain
    assert plain - max(0, life - BUFFER) / 10 - 1e-3 <= jittered


@given(jitters)
def test_an_hour_s_token_is_used_for_54_minutes_at_least(jitter: float) -> None:
    assert 54 * 60 <= schedule.next_delay(3600, 0, jitter=jitter, life=3600) <= 55 * 60


@given(st.floats(BUFFER + 0.5, LIFE), jitters)
def test_a_new_token_that_outlives_the_buffer_is_not_due_at_once(life: float, jitter: float) -> None:
    assert schedule.next_delay(life, 0, jitter=jitter, life=life) >= (life - BUFFER) * 0.89


@given(times, st.floats(0, 1e9))
def test_past_expiry_is_now(expiry: float, past: float) -> None:
    assert schedule.next_delay(expiry, expiry + past) == 0


@given(counts, jitters, st.booleans())
def test_backoff_is_bounded(failures: int, jitter: float, transient: bool) -> None:
    delay = schedule.retry_delay(failures, jitter=jitter, transient=transient)
    assert FIRST / 2 <= delay <= CEILING


@given(counts, counts)
def test_backoff_grows(one: int, other: int) -> None:
    few, many = sorted((one, other))
    assert schedule.retry_delay(few) <= schedule.retry_delay(many)


@given(counts, jitters)
def test_jitter_makes_a_retry_earlier_by_half_at_most(failures: int, jitter: float) -> None:
    plain = schedule.retry_delay(failures)
    assert plain / 2 <= schedule.retry_delay(failures, jitter=jitter) <= plain


def test_backoff_doubles_up_to_the_ceiling() -> None:
    assert [schedule.retry_delay(n) for n in range(1, 8)] == [2, 4, 8, 16, 32, 60, 60]


@given(counts)
def test_a_failure_that_only_a_person_can_fix_waits_the_maximum_at_once(failures: int) -> None:
    assert schedule.retry_delay(failures, transient=False) == CEILING


@given(counts, st.floats(0, RETRY_AFTER_MOST), jitters)
def test_retry_after_is_honoured(failures: int, asked: float, jitter: float) -> None:
    assert schedule.retry_delay(failures, jitter=jitter, retry_after=asked) >= asked


@given(counts, absurd)
def test_retry_after_is_respected_within_limits(failures: int, asked: float) -> None:
    assert schedule.retry_delay(failures, retry_after=asked) <= RETRY_AFTER_MOST


@given(times, lives, st.floats(0, 1e7), st.floats(0, LIFE))
def test_the_remaining_time_is_the_smaller_of_both_clocks(
    minted: float, life: float, boot: float, passed: float
) -> None:
    term = Term(minted + life, minted, boot)
    slack = 1e-3 * max(1, abs(minted) / 1e9)
    true = max(0.0, life - passed)
    for wall in (minted + passed, minted - 7200, minted + 1e9):  # right, set back, far ahead
        assert 0 <= schedule.remaining(term, wall, boot + passed) <= true + slack


@given(st.floats(1, LIFE), st.floats(0, LIFE))
def test_sleep_that_the_uptime_does_not_count_is_detected_by_the_wall_clock(life: float, slept: float) -> None:
    term = Term(life, 0.0, 100.0)
    assert schedule.remaining(term, slept, 100.0) == pytest.approx(max(0.0, life - slept))


def test_after_a_reboot_nothing_is_left() -> None:
    assert schedule.remaining(Term(3600, 0, 5000), 10, 20) == 0


@given(absurd, absurd, absurd, absurd, absurd)
def test_absurd_terms_and_clocks_give_a_number(a: float, b: float, c: float, now: float, uptime: float) -> None:
    assert 0 <= schedule.remaining(Term(a, b, c), now, uptime) <= LIFE
    assert 0 <= Term(a, b, c).life <= LIFE


@given(absurd)
def test_a_token_that_is_born_due_is_lived_with_for_a_while(life: float) -> None:
    assert 5 <= schedule.born_due_delay(life) <= CEILING


@given(st.text(), times)
def test_jitter_is_the_same_for_every_process(session: str, expiry: float) -> None:
    assert 0 <= schedule.jitter_of(session, expiry) == schedule.jitter_of(session, expiry) < 1


def test_sessions_that_were_started_together_are_spread() -> None:
    found = sorted(schedule.jitter_of(f"podbot-{n}", 3600.0) for n in range(100))
    assert all(math.isfinite(x) for x in found)
    assert max(b - a for a, b in itertools.pairwise(found)) < 0.15
    assert len(set(found)) == 100
