"""What a session needs of a machine, asked before an image is built for it."""

from __future__ import annotations

from collections.abc import Sequence

from podbot.engine.check import Check
from podbot.errors import MachineNotReady


def require_ready(failed: Sequence[Check], said: str = "") -> None:
    """Raise MachineNotReady, in doctor's words, when a check ``failed``.

    ``said``: a sentence about an engine that did not start, in its words: the checks may have found something else.
    """
    if failed:
        problems = [f"{check.name}: {check.found}. {check.meaning.rstrip('.')}" for check in failed]
        raise MachineNotReady(
            problems="; ".join([*problems, *([said] if said else [])]),
            fixes=" ".join(f"To fix {check.name}: {_quoted(check.fix)}." for check in failed),
        )


def _quoted(fix: str) -> str:
    """A command with its ends marked; a sentence, which marks those in it, as it is."""
    return fix if "`" in fix else f"`{fix}`"
