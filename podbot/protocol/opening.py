"""The reply that a banner without a newline has swallowed, at the beginning of a session.

Text in front of a frame is a third party's as often as the agent's: agents log what tools and servers send them. So
only what the client waits for is taken from such a line, and only until the agent has written its first frame.
Nothing here decides what is forwarded: the reply is judged as a line of its own.
"""

from __future__ import annotations

import re

from podbot.protocol.jsontext import BadFrame, members, skip, strict_text
from podbot.protocol.lines import whole_lines
from podbot.protocol.message import Message, read_envelope, read_id, read_method

MOST_IDS = 64  # a client waits for the answer to `initialize` before it sends much else
LONGEST_ID = 256  # characters

_IN_JSON = re.compile(rb'[\["]')  # in front of the line's first brace
_ESCAPE = b"\x1b["  # begins a colour or a movement of the cursor


class Opening:
    """The ids of the client's requests, as they are spelled. None has been answered: the agent wrote no frame yet."""

    def __init__(self) -> None:
        self._ids: set[str] = set()

    def sent(self, frames: bytes) -> None:
        """Whole lines went to the agent. Requests in a batch are answered in a batch, which is not looked for."""
        for line in whole_lines(frames):
            if len(self._ids) == MOST_IDS:
                return
            message = _read(line)
            if message and message.method is not None and message.id is not None and len(message.id) <= LONGEST_ID:
                self._ids.add(message.id)

    def reply_at(self, line: bytes) -> int:
        """Where the answer to one of the requests begins that ends ``line``; 0 when there is none.

        It begins at the line's first brace, and no text in front looks like JSON: nothing is taken out of a value.
        """
        start = line.find(b"{")
        if start <= 0 or _IN_JSON.search(line[:start].replace(_ESCAPE, b"")):
            return 0
        message = _read(line[start:])
        return start if message and self._is_awaited(message) else 0

    def _is_awaited(self, message: Message) -> bool:
        """Log lines have objects at their ends, too: this one says what it is, and answers an open request."""
        fields = message.fields
        version = fields.get("jsonrpc")
        return (
            message.id in self._ids
            and message.method is None
            and ("result" in fields or "error" in fields)
            and version is not None
            and version.value == "2.0"
        )


def _read(line: bytes) -> Message | None:
    """The message that ``line`` is; None when it is anything else, a batch included."""
    try:
        text = strict_text(line)
        parts, end = members(text, skip(text, 0))
        fields = read_envelope(parts)
        method, raw_id = read_method(text, fields), read_id(text, fields)
    except (BadFrame, ValueError, IndexError, StopIteration, RecursionError):
        return None
    return None if text[end:].strip(" \t\r\n") else Message(text, fields, method, raw_id)
