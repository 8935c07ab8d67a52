"""Writing to a descriptor that other processes share, without ever blocking on it.

Setting O_NONBLOCK on an inherited descriptor would change it for the shell too, so pipes and
terminals are opened a second time through /proc. Where that is refused, writes are cut to 4 KiB,
which a pipe that polls writable takes whole.
"""

from __future__ import annotations

import os
import socket
import stat
import time
from collections.abc import Callable

from podbot.streams.backlog import Backlog

LIMIT = 1 << 20  # bytes queued in one direction before its source is no longer read
LOG_PATIENCE = 1.0  # seconds for which an unread log may block everything else
ATOMIC = 4096  # PIPE_BUF


class Sink(Backlog):
    """A queue in front of one output descriptor; its user must respect :meth:`full`. ``fd`` None discards."""

    def __init__(self, fd: int | None) -> None:
        super().__init__()
        self._fd = fd
        self._own: int | None = None
        self._socket: socket.socket | None = None
        self.must_poll = True  # a write may block unless the descriptor has just polled writable
        if fd is not None:
            self._adopt(fd)

    def _adopt(self, fd: int) -> None:
        mode = os.fstat(fd).st_mode
        if stat.S_ISSOCK(mode):
            self._socket = _socket(fd)
            self.must_poll = False
        elif stat.S_ISREG(mode):
            self.must_poll = False
        elif stat.S_ISFIFO(mode) or os.isatty(fd):
            try:
                self._own = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
                self.must_poll = False
            except OSError:
                self._own = None

    def full(self) -> bool:
        """Whether the source of this queue must wait."""
        return self.pending >= LIMIT

    def fileno(self) -> int:
        """The descriptor to poll for writing; -1 when there is none."""
        if self._fd is None:
            return -1
        return self._fd if self._own is None else self._own

    def push(self, data: memoryview, *, answer: bool = False) -> None:
        """Queue ``data``; :meth:`flush` writes it."""
        if self._fd is not None:
            super().push(data, answer=answer)

    def flush(self) -> None:
        """Write what fits now. Raises OSError (EPIPE when the reader is gone)."""
        while self.pending:
            try:
                done = self._write()
            except BlockingIOError:
                return
            self.taken(done)
            if self.must_poll:
                return

    def _write(self) -> int:
        # Engine frames are 8 KiB (measured); one writev for many of them saves one write each.
        if self._socket is not None:
            return self._socket.sendmsg(self.pieces(), (), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        if self.must_poll:
            return os.write(self.fileno(), self.first()[:ATOMIC])
        return os.writev(self.fileno(), list(self.pieces()))

    def discard(self) -> None:
        """Drop what is queued and everything that is pushed later, because there is no reader any more."""
        self.close()
        self.clear()
        self._fd = None

    def close(self) -> None:
        if self._own is not None:
            os.close(self._own)
            self._own = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _socket(fd: int) -> socket.socket:
    """A socket object of our own. ``socket.setdefaulttimeout`` would make the caller's socket non-blocking too."""
    blocking = os.get_blocking(fd)
    made = socket.socket(fileno=os.dup(fd))
    if made.gettimeout() is not None:
        made.settimeout(None)  # with a timeout, sendmsg waits for it and then fails
        os.set_blocking(fd, blocking)
    return made


def _note(lost: int) -> bytes:
    return b"\npodbot: %d bytes on stderr were not read and are lost\n" % lost


class LogSink(Sink):
    """For diagnostics beside a protocol: a reader that stops reading blocks the protocol for ``patience`` at most.

    After that, output that does not fit is dropped, and ``note`` reports how much as soon as there is room again.
    """

    def __init__(self, fd: int | None, note: Callable[[int], bytes] = _note, *, patience: float | None = None) -> None:
        super().__init__(fd)
        self._note = note
        self._patience = LOG_PATIENCE if patience is None else patience
        self._since: float | None = None  # since when it has been full without being read
        self._lost = 0

    def full(self) -> bool:
        if self.pending < LIMIT:
            return False
        now = time.monotonic()
        if self._since is None:
            self._since = now
        return now - self._since < self._patience

    def push(self, data: memoryview, *, answer: bool = False) -> None:
        note = self._note(self._lost) if self._lost else b""
        if self.pending + len(note) + len(data) > 2 * LIMIT:
            self._lost += len(data)
            return
        self._lost = 0
        super().push(memoryview(note))
        super().push(data, answer=answer)

    def taken(self, done: int) -> None:
        self._since = None
        super().taken(done)
