"""What an agent prints beside its frames: which lines those are.

Nothing here decides what is forwarded: whatever looks like a frame is judged as a line of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from podbot.streams.channel import NoiseKind

#: What is said of each kind, once.
KINDS: Mapping[NoiseKind, str] = {
    "text": "text that is no frame",
    "before_frame": "text in front of its first reply on the same line; the reply was forwarded",
    "json": "JSON that is no JSON-RPC message",
    "pretty": "JSON that is spread over several lines, where a frame is one line",
}
MOST_LINES = 10_000  # of one JSON value that is spread over lines

_WHITE = b" \t\r\n"
# "[INFO] ready" is a banner, "[{" is not. What looks like JSON is judged, and refused when it is broken.
_LIKE_JSON = re.compile(rb"(?:\xef\xbb\xbf)?[ \t\r\n]*(?:\{|\[[ \t\r\n]*[\[{\]])")
_OPENING = (b"{", b"[", b"[{")
_SHORT = 8  # bytes of a line that may be one of these


def is_like_json(line: bytes) -> bool:
    """Whether ``line`` is to be judged; anything else is noise."""
    return line[0] == 0x7B or _LIKE_JSON.match(line) is not None


class Spread:
    """Follows JSON that is spread over lines, from a line that is nothing but its first bracket to that of its last."""

    def __init__(self) -> None:
        self._left = 0

    def begins(self, line: bytes) -> bool:
        """Whether ``line`` is such a beginning; then it is noise, and so are those that it :meth:`holds`."""
        if len(line) > _SHORT or line.rstrip(_WHITE) not in _OPENING:
            return False
        self._left = MOST_LINES
        return True

    def holds(self, line: bytes) -> bool:
        """Whether ``line``, which follows, belongs to it unless it is a frame."""
        if not self._left:
            return False
        self._left = 0 if line[:1] in b"}]" else self._left - 1
        return True

    def ends(self) -> None:
        """A frame came."""
        self._left = 0
