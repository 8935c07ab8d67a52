"""Exit codes: mapping a command's status to podbot's. The whole table is in docs/reference/exit-codes.md."""

from __future__ import annotations

OWN_FAILURE = 1
BY_SIGNAL = 128  # plus the signal's number, when a signal ended podbot

NOT_A_CAUSE = (0, 126, 127)  # the statuses of a command that ended well, or did not start: no full disk is why


def exit_code(status: int) -> int:
    """podbot's status for the agent's: 0-255 unchanged, negative -> 1, above 255 -> 255."""
    if status < 0:
        return OWN_FAILURE
    return min(status, 255)
