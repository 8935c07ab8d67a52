from __future__ import annotations

import pytest

from podbot.cli.progress import Throttle, duration, elapsed_of, progress_text


@pytest.mark.parametrize(
    ("elapsed", "following", "text"),
    [
        (0.0, "", "x"),
        (0.9, "", "x"),
        (0.9, "y", "x (next: y)"),
        (1.0, "", "x (1 s)"),
        (61.9, "y", "x (1 min 1 s; next: y)"),
    ],
)
def test_a_line_of_progress(elapsed: float, following: str, text: str) -> None:
    assert progress_text("x", elapsed, following) == text


def test_durations() -> None:
    assert [duration(seconds) for seconds in (0, 59.9, 60, 3600)] == ["0 s", "59 s", "1 min 0 s", "60 min 0 s"]


@pytest.mark.parametrize(("value", "found"), [(3, 3.0), (2.5, 2.5), ("x", 7.0), (None, 7.0)])
def test_the_time_of_an_event(value: object, found: float) -> None:
    assert elapsed_of({"elapsed": value}, 7.0) == found


def test_progress_that_comes_often_is_shown_seldom() -> None:
    now = [0.0]
    throttle = Throttle(10.0, clock=lambda: now[0])
    shown = []
    for second in range(35):
        now[0] = float(second)
        shown += [second] if throttle.ready() else []
    assert shown == [10, 20, 30]
