"""What a machine's serial console says. Pure: text in, findings out."""

from __future__ import annotations

import re

# Escape sequences, and control characters but tab and newline.
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[@-Z\\-_]|[\x00-\x08\x0b-\x1f\x7f]")
_DEATHS = (
    re.compile(r"Kernel panic - not syncing.*"),
    re.compile(r"watchdog: BUG: soft lockup.*"),
    re.compile(r"KVM internal error.*"),  # QEMU's own word: it then waits for ever
    re.compile(r"You are in emergency mode.*"),
    re.compile(r".*ALERT!  .* does not exist\.  Dropping to a shell!.*"),
)
LAST = 15  # lines of the console in an error


def cleaned(data: bytes) -> str:
    """Text without escape sequences; what is no UTF-8 is replaced."""
    return _CONTROLS.sub("", data.decode("utf-8", "replace"))


def death(text: str) -> str | None:
    """The line that says that this machine will not come up, or not go on; None when there is none."""
    for pattern in _DEATHS:
        if found := pattern.search(text):
            return found.group().strip()
    return None


def last_lines(text: str, number: int = LAST) -> str:
    """The last lines that say something, indented for an error."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    return "\n".join(f"  | {line[:200]}" for line in lines[-number:]) or "  | (nothing)"
