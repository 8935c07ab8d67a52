"""Makes a program's output readable and harmless: text without control sequences. Pure."""

from __future__ import annotations

import re

from podbot.visible_text import printable

# In this order: strings with their end (or to the end of the line), sequences with parameters, two-byte sequences.
_SEQUENCES = re.compile(
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
)


def plain_line(line: bytes) -> str:
    """A line of output as text that can be printed anywhere, without its ending.

    What a carriage return let overwrite is left out, as on the screen. Other control characters and those that change
    the direction of text are shown as escapes.
    """
    text = _SEQUENCES.sub("", line.decode("utf-8", "replace").rstrip("\r\n"))
    shown = text.rstrip("\r").rsplit("\r", 1)[-1]
    if "\b" in shown:
        shown = _without_erased(shown)
    return printable(shown.replace("\x07", "").expandtabs(8))


def _without_erased(text: str) -> str:
    kept: list[str] = []
    for char in text:
        if char != "\b":
            kept.append(char)
        elif kept:
            kept.pop()
    return "".join(kept)
