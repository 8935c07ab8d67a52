"""Recognizes Ctrl-Z in the operator's input, in any form that terminals send."""

from __future__ import annotations

import re

# A control character; the kitty keyboard protocol (press or repeat, not release); xterm's modifyOtherKeys.
_CTRL_Z = re.compile(
    rb"\x1a|\x1b\[122(?::[0-9]*)*;([0-9]{1,3})(?::[12])?(?:;[0-9:]*)?u|\x1b\[27;([0-9]{1,3});122~", re.ASCII
)
_CTRL, _LOCKS = 4, 64 | 128  # modifiers are sent as 1 + their bits; caps lock and num lock count among them


def has_suspend_key(data: bytes) -> bool:
    """``data`` is one read from the terminal, which contains whole keys only."""
    if b"\x1a" in data:
        return True
    if b"122" not in data:
        return False
    return any((int(found[1] or found[2]) - 1) & ~_LOCKS == _CTRL for found in _CTRL_Z.finditer(data))
