"""Interpretation of a machine's serial console. Pure: text in, findings out."""

from __future__ import annotations

import re

# Escape sequences, and control characters except tab and newline.
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[@-Z\\-_]|[\x00-\x08\x0b-\x1f\x7f]")
_DEATHS = (
    re.compile(r"Kernel panic - not syncing.*"),
    re.compile(r"watchdog: BUG: soft lockup.*"),
    re.compile(r"KVM internal error.*"),  # QEMU's own message: it then waits for ever
    re.compile(r"You are in emergency mode.*"),
    re.compile(r".*ALERT!  .* does not exist\.  Dropping to a shell!.*"),
)
LAST = 15  # lines of the console in an error


def cleaned(data: bytes) -> str:
    """Text without escape sequences; bytes that are not UTF-8 are replaced."""
    return _CONTROLS.sub("", data.decode("utf-8", "replace"))


def death(text: str) -> str | None:
    """The line that shows that this machine will not come up, or will not continue; None when there is none."""
    for pattern in _DEATHS:
        if found := pattern.search(text):
            return found.group().strip()
    return None


def last_lines(text: str, number: int = LAST) -> str:
    """The last meaningful lines, indented for an error."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(f"  | {line[:200]}" for line in lines[-number:]) or "  | (nothing)"
