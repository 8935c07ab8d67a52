"""Recognizes lines of an agent's output that are not frames.

Nothing here decides what is forwarded: a line that looks like a frame is always judged.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from podbot.streams.protocol_channel import NoiseKind

#: The description of each kind, for a notice.
KINDS: Mapping[NoiseKind, str] = {
    "text": "text that is not a frame",
    "before_frame": "text in front of its first reply on the same line; the reply was forwarded",
    "json": "JSON that is not a JSON-RPC message",
    "pretty": "JSON over several lines, although a frame is one line",
}
MOST_LINES = 10_000  # of one JSON value over several lines

_WHITE = b" \t\r\n"
# "[INFO] ready" is a banner, "[{" is not. A line that looks like JSON is judged, and refused when it is invalid.
_LIKE_JSON = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*(?:\{|\[[ \t\r\n]*[\[{\]])")
_OPENING = (b"{", b"[", b"[{")
_SHORT = 8  # longest line that is compared with these


def is_like_json(line: bytes) -> bool:
    """Whether ``line`` must be judged; any other line is noise."""
    return line[0] == 0x7B or _LIKE_JSON.match(line) is not None


class Spread:
    """Tracks JSON over several lines, from a line with only the opening bracket to the line of the closing one."""

    def __init__(self) -> None:
        self._left = 0

    def begins(self, line: bytes) -> bool:
        """Whether ``line`` starts such JSON; then it is noise, and so are the lines for which :meth:`holds` is true."""
        if len(line) > _SHORT or line.rstrip(_WHITE) not in _OPENING:
            return False
        self._left = MOST_LINES
        return True

    def holds(self, line: bytes) -> bool:
        """Whether the next line ``line`` belongs to it, unless that is a frame."""
        if not self._left:
            return False
        self._left = 0 if line[:1] in b"}]" else self._left - 1
        return True

    def ends(self) -> None:
        """Stop tracking, because a frame arrived."""
        self._left = 0
