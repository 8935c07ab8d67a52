"""Writing to a descriptor that is not ours alone without ever blocking on it.

Setting O_NONBLOCK on an inherited descriptor would change it for the shell too, so pipes and
terminals are opened a second time through /proc. Where that is refused, writes are cut to 4 KiB,
which a pipe that polls writable takes whole.
"""

from __future__ import annotations

import itertools
import os
import socket
import stat
from collections import deque

ATOMIC = 4096  # PIPE_BUF
MOST = 512  # pieces in one writev; IOV_MAX is 1024


class Sink:
    """A bounded-by-its-user queue in front of one output descriptor. ``fd`` None discards."""

    def __init__(self, fd: int | None) -> None:
        self._queue: deque[memoryview] = deque()
        self.pending = 0
        self._fd = fd
        self._own: int | None = None
        self._socket: socket.socket | None = None
        self.must_poll = True  # a write may block unless the descriptor has just polled writable
        if fd is not None:
            self._adopt(fd)

    def _adopt(self, fd: int) -> None:
        mode = os.fstat(fd).st_mode
        if stat.S_ISSOCK(mode):
            self._socket = socket.socket(fileno=os.dup(fd))
            self.must_poll = False
        elif stat.S_ISREG(mode):
            self.must_poll = False
        elif stat.S_ISFIFO(mode) or os.isatty(fd):
            try:
                self._own = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
                self.must_poll = False
            except OSError:
                self._own = None

    def fileno(self) -> int:
        """The descriptor to poll for writing; -1 when there is none."""
        if self._fd is None:
            return -1
        return self._fd if self._own is None else self._own

    def push(self, data: memoryview) -> None:
        """Queue ``data``; :meth:`flush` writes it."""
        if self._fd is not None and data:
            self._queue.append(data)
            self.pending += len(data)

    def flush(self) -> None:
        """Write what fits now. Raises OSError (EPIPE when the reader is gone)."""
        while self._queue:
            try:
                done = self._write()
            except BlockingIOError:
                return
            self._taken(done)
            if self.must_poll:
                return

    def _write(self) -> int:
        # Engine frames are 8 KiB (measured): one writev for many of them, not one write each.
        if self._socket is not None:
            return self._socket.sendmsg(
                itertools.islice(self._queue, MOST), (), socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL
            )
        if self.must_poll:
            return os.write(self.fileno(), self._queue[0][:ATOMIC])
        return os.writev(self.fileno(), list(itertools.islice(self._queue, MOST)))

    def _taken(self, done: int) -> None:
        self.pending -= done
        while done:
            first = self._queue[0]
            if done < len(first):
                self._queue[0] = first[done:]
                return
            done -= len(first)
            self._queue.popleft()

    def close(self) -> None:
        if self._own is not None:
            os.close(self._own)
            self._own = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None
