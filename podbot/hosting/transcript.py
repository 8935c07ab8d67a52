"""``--transcript FILE``: the traffic between client and agent as redacted JSON lines. Off by default."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from podbot.atomic import opened_to_append
from podbot.events import Emit, Event
from podbot.protocol.redact import Redactor
from podbot.protocol.refusal import REWRITTEN
from podbot.streams.protocol_channel import Refused, Side

WHOLE = 1 << 20  # bytes; only the size of a longer frame is recorded
HEAD = 4096  # characters of a frame's redacted text that are recorded
LIMIT = 1 << 30  # bytes of the file, by all authors together, so that the agent cannot fill the disk
LAST = 1 << 10  # bytes reserved for the last line, which reports the limit

Author = Literal["client", "agent", "podbot"]


class Transcript:
    """A file of mode 0600 to which lines are appended. Opening it may raise PathError; later methods never raise.

    A line has ``time``, ``session``, ``to`` ("agent" or "client"), ``from`` ("client", "agent" or "podbot"),
    ``size``, ``method``, ``id``, ``text`` (null if it is not JSON, or too long) and ``cut``; or the reason in
    ``refused``, or in ``changed`` if the frame passed, in which case the line with its text comes as well.
    At ``limit`` bytes it stops: its last line then has ``stopped`` and ``limit``.
    """

    def __init__(
        self, path: str, *, session: str, secrets: Iterable[str], emit: Emit, limit: int = LIMIT, whole: int = WHOLE
    ) -> None:
        self._path = path
        self._session = session
        self._redactor = Redactor(secrets)
        self._emit = emit
        self._lines: dict[Side, Lines] = {"agent": Lines(whole), "client": Lines(whole)}
        self._limit = limit
        self._full = f"it has reached {limit / (1 << 30):g} GiB"
        self._fd: int | None = opened_to_append(path, "write the transcript")
        if os.fstat(self._fd).st_size >= limit - LAST:  # filled by an earlier session, whose last line says so
            self._stop(self._full)

    def passed(self, to: Side, data: bytes, author: Author) -> None:
        """Record ``data`` that is sent ``to`` that side, in chunks of any size."""
        if self._fd is not None:
            for head, size in self._lines[to].feed(data):
                self._frame(to, head, size, author)

    def ended(self, to: Side) -> None:
        """That direction has ended: record a last line even without its newline."""
        if self._fd is not None:
            for head, size in self._lines[to].rest():
                self._frame(to, head, size, "agent" if to == "client" else "client")

    def refused(self, refused: Refused) -> None:
        """A frame was refused or rewritten."""
        method, raw_id = self._short(refused.method), self._short(_value(refused.id))
        values = {"from": refused.direction, "size": refused.size, "method": method, "id": raw_id}
        self._write({**values, "changed" if refused.reason in REWRITTEN else "refused": refused.reason})

    def close(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            with contextlib.suppress(OSError):
                os.close(fd)

    def _frame(self, to: Side, head: bytes, size: int, author: Author) -> None:
        found = self._redactor.frame(head) if len(head) == size else None
        value, text = found or (None, None)
        message = value if isinstance(value, dict) else {}
        cut = text is not None and len(text) > HEAD
        line = {"to": to, "from": author, "size": size, "method": self._short(message.get("method"))}
        self._write({**line, "id": self._short(message.get("id")), "text": text and text[:HEAD], "cut": cut})

    def _short(self, value: object) -> object:
        if isinstance(value, str):
            return self._redactor.text(value)[:200]
        return value if value is None or (isinstance(value, (int, float)) and abs(value) < 1 << 63) else "…"

    def _write(self, values: dict[str, Any]) -> None:
        if self._fd is None:
            return
        line, reason = self._line(values), ""
        try:
            # The file's real size, because two sessions may append to one file. It takes 3 % of a line (measured).
            if os.fstat(self._fd).st_size + len(line) > self._limit - LAST:
                line, reason = self._line({"stopped": "limit", "limit": self._limit}), self._full
            _write_all(self._fd, line)
        except OSError as exc:
            reason = exc.strerror or str(exc)
        if reason:
            self._stop(reason)

    def _line(self, values: dict[str, Any]) -> bytes:
        now = time.time()
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1e6):06d}Z"
        return json.dumps({"time": stamp, "session": self._session, **values}).encode() + b"\n"

    def _stop(self, reason: str) -> None:
        self.close()
        text = f"cannot write the transcript {self._path}: {reason}; the session continues without it"
        self._emit(Event("warning", "host.transcript", text, {"path": self._path, "reason": reason}))


class Lines:
    """Splits chunks into lines; for a line that is too long, only the size is exact."""

    def __init__(self, whole: int = WHOLE) -> None:
        self._whole = whole
        self._head = bytearray()
        self._size = 0

    def feed(self, data: bytes) -> Iterator[tuple[bytes, int]]:
        at = 0
        while at < len(data):
            end = data.find(b"\n", at)
            stop = len(data) if end < 0 else end
            self._head += data[at : min(stop, at + max(0, self._whole - len(self._head)))]
            self._size += stop - at
            if end < 0:
                return
            yield from self.rest()
            at = end + 1

    def rest(self) -> Iterator[tuple[bytes, int]]:
        if self._size:
            head, size = bytes(self._head), self._size
            self._head, self._size = bytearray(), 0
            yield head, size


def _value(raw_id: str | None) -> object:
    """The value that an id's JSON text has, as in the lines of passed frames; a clipped one stays text."""
    try:
        return None if raw_id is None else json.loads(raw_id)
    except ValueError:
        return raw_id


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
