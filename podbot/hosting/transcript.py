"""``--transcript FILE``: what passed between client and agent, as JSON lines, redacted. Off unless asked for."""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator
from typing import Any, Literal

from podbot.errors import PathError
from podbot.events import Emit, Event
from podbot.hosting.redact import Redactor
from podbot.streams.channel import Refused, Side

WHOLE = 1 << 20  # bytes; a longer frame is recorded by its size alone
HEAD = 4096  # characters of a frame's redacted text
LIMIT = 1 << 30  # bytes of the file, whoever wrote them: an agent that floods is not to fill the disk
_LAST = 1 << 10  # bytes that are kept free for the line that says so
_FULL = f"it has reached {LIMIT >> 30} GiB"

Author = Literal["client", "agent", "podbot"]


class Transcript:
    """A file of mode 0600 that lines are added to. Opening it may fail (PathError); from then on it never does.

    A line has ``time``, ``session``, ``to`` ("agent" or "client"), ``from`` ("client", "agent" or "podbot"),
    ``size``, ``method``, ``id``, ``text`` (null for what is no JSON, or too long) and ``cut``; or ``refused``.
    At ``LIMIT`` bytes it stops: its last line then has ``stopped`` and ``limit``.
    """

    def __init__(self, path: str, *, session: str, secrets: Iterable[str], emit: Emit) -> None:
        self._path = path
        self._session = session
        self._redactor = Redactor(secrets)
        self._emit = emit
        self._lines: dict[Side, _Lines] = {"agent": _Lines(), "client": _Lines()}
        self._fd: int | None = _opened(path)
        if os.fstat(self._fd).st_size >= LIMIT - _LAST:  # by an earlier session, whose last line says so
            self._stop(_FULL)

    def passed(self, to: Side, data: bytes, author: Author) -> None:
        """``data`` goes ``to`` that side. Chunks of any size."""
        if self._fd is not None:
            for head, size in self._lines[to].feed(data):
                self._frame(to, head, size, author)

    def ended(self, to: Side) -> None:
        """No more comes in that direction: a last line without its newline counts."""
        if self._fd is not None:
            for head, size in self._lines[to].rest():
                self._frame(to, head, size, "agent" if to == "client" else "client")

    def refused(self, refused: Refused) -> None:
        """A frame was refused or rewritten."""
        method, raw_id = self._short(refused.method), self._short(refused.id)
        values = {"from": refused.direction, "size": refused.size, "method": method, "id": raw_id}
        self._write({**values, "refused": refused.reason})

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
            # The file's own size, not a count: two sessions may add to one file. 3 % of what a line takes (measured).
            if os.fstat(self._fd).st_size + len(line) > LIMIT - _LAST:
                line, reason = self._line({"stopped": "limit", "limit": LIMIT}), _FULL
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
        text = f"cannot write the transcript {self._path}: {reason}; the session goes on without it"
        self._emit(Event("warning", "host.transcript", text, {"path": self._path, "reason": reason}))


class _Lines:
    """Lines out of chunks; of one that is too long only the size is kept."""

    def __init__(self) -> None:
        self._head = bytearray()
        self._size = 0

    def feed(self, data: bytes) -> Iterator[tuple[bytes, int]]:
        at = 0
        while at < len(data):
            end = data.find(b"\n", at)
            stop = len(data) if end < 0 else end
            self._head += data[at : min(stop, at + max(0, WHOLE - len(self._head)))]
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


def _opened(path: str) -> int:
    """Appended to, so that an editor that starts a second session wipes nothing out; links are not followed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
    try:
        fd = os.open(path, flags, 0o600)
    except (OSError, ValueError) as exc:
        reason = exc.strerror or str(exc) if isinstance(exc, OSError) else str(exc)
        raise PathError(path=path, operation="write the transcript", reason=reason) from exc
    found = os.fstat(fd)
    reason = ""
    if not stat.S_ISREG(found.st_mode):
        reason = "it is not a regular file"
    elif found.st_uid != os.geteuid() or found.st_nlink != 1:
        reason = "it is somebody else's, or has a second name"
    if reason:
        os.close(fd)
        raise PathError(path=path, operation="write the transcript", reason=reason)
    os.fchmod(fd, 0o600)
    return fd


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
