"""Exit codes: what podbot makes of a command's status. The whole table is in docs/reference/exit-codes.md."""

from __future__ import annotations

OWN_FAILURE = 1
BY_SIGNAL = 128  # and the signal's number, when podbot itself was told to end


def exit_code(status: int) -> int:
    """The agent's status as ours: 0-255 verbatim, negative -> 1, above 255 -> 255."""
    if status < 0:
        return OWN_FAILURE
    return min(status, 255)
