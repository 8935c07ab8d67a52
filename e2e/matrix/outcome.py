"""The result of one step in one cell."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Outcome:
    """``result``: one of steps.WORKS, FAILS, ABSENT; ``detail``: the observation.

    ``control``: the same step without podbot, "" where that was not tried; ``unanswered``: the mock had no answer for
    the step's prompt. ``seconds``: of the whole cell.
    """

    result: str
    detail: str = ""
    control: str = ""
    unanswered: bool = False
    seconds: float = 0


Outcomes = dict[str, Outcome]
