"""Recovers the agent's first reply when a banner without a newline precedes it on the same line.

Text in front of a frame often comes from third parties, because agents log what tools and servers send them. So only a
reply that the client waits for is taken from such a line, and only until the agent has written its first frame.
Nothing here decides what is forwarded: the reply is then judged like any line.
"""

from __future__ import annotations

import re

from podbot.protocol.jsontext import BadFrame, members, skip, strict_text
from podbot.protocol.lines import whole_lines
from podbot.protocol.message import Message, read_envelope, read_id, read_method

MOST_IDS = 64  # a client sends little else before it has the response to `initialize`
LONGEST_ID = 256  # characters

_IN_JSON = re.compile(rb'[\["]')  # in front of the line's first brace
_ESCAPE = b"\x1b["  # begins a colour or cursor sequence


class Opening:
    """The ids of the client's requests, as JSON text. All are unanswered, since the agent has not written a frame."""

    def __init__(self) -> None:
        self._ids: set[str] = set()

    def sent(self, frames: bytes) -> None:
        """Record whole lines that went to the agent. Batches are skipped: their responses come in batches too."""
        for line in whole_lines(frames):
            if len(self._ids) == MOST_IDS:
                return
            message = _read(line)
            if message and message.method is not None and message.id is not None and len(message.id) <= LONGEST_ID:
                self._ids.add(message.id)

    def reply_at(self, line: bytes) -> int:
        """Where a response to one of the requests begins at the end of ``line``; 0 when there is none.

        It must begin at the first brace, and the text before it must not look like JSON, so that nothing is taken
        from inside a value.
        """
        start = line.find(b"{")
        if start <= 0 or _IN_JSON.search(line[:start].replace(_ESCAPE, b"")):
            return 0
        message = _read(line[start:])
        return start if message and self._is_awaited(message) else 0

    def _is_awaited(self, message: Message) -> bool:
        """Whether it is a JSON-RPC response to an open request, and not an object at the end of a log line."""
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
    """``line`` as a message; None for anything else, including a batch."""
    try:
        text = strict_text(line)
        parts, end = members(text, skip(text, 0))
        fields = read_envelope(parts)
        method, raw_id = read_method(text, fields), read_id(text, fields)
    except (BadFrame, ValueError, IndexError, StopIteration, RecursionError):
        return None
    return None if text[end:].strip(" \t\r\n") else Message(text, fields, method, raw_id)
