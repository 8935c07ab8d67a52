"""podbot's own stdin. If it is shared, nothing is taken from it that the command does not read.

Whoever started podbot may read the same stdin afterwards: in a shell's loop (`while read x; do podbot exec S CMD;
done`) it is the list of the loop. So the first bytes are looked at, and stay where they are until the command has read
them. A command that has begun to read gets the rest as fast as it comes, as from any program that reads ahead.
"""

from __future__ import annotations

import contextlib
import os
import stat

from podbot.streams.sides import CHUNK

FIRST = 4096  # bytes; the guest's pipe of a command that has read nothing yet has this size


class OwnStdin:
    """``held``: bytes that were looked at and not taken. While there are any, there is nothing to read."""

    def __init__(self, fd: int, *, shared: bool) -> None:
        self.fd = fd
        self._first = shared
        self._seen = b""  # what was looked at and not taken
        self._taken = 0

    @property
    def held(self) -> int:
        return len(self._seen)

    def read(self) -> bytes:
        """The next bytes; b"" at end of file. Raises OSError."""
        if self._first:
            try:
                seen = _look(self.fd)
            except BlockingIOError:
                raise
            except (OSError, ImportError, AttributeError):  # a kernel or a Python that cannot look: read ahead
                seen = None
            self._first = False
            if seen is not None:
                self._seen = seen
                return seen
        return os.read(self.fd, CHUNK)

    def take(self, read: int) -> None:
        """Take what the command has read. ``read``: bytes, all in all."""
        size = min(read - self._taken, self.held)
        if size <= 0:
            return
        data, self._seen = self._seen[:size], self._seen[size:]
        self._taken += size
        with contextlib.suppress(OSError):  # closed meanwhile
            now = _look(self.fd)
            if now is not None and now.startswith(data):  # otherwise another program has taken some of it
                _skip(self.fd, size)


def _look(fd: int) -> bytes | None:
    """The first bytes, which stay there; None for a descriptor where that is not possible, such as a terminal.

    Raises OSError, BlockingIOError if there are none yet.
    """
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return os.pread(fd, FIRST, os.lseek(fd, 0, os.SEEK_CUR))
    if stat.S_ISFIFO(mode):
        return _copied(fd)
    if stat.S_ISSOCK(mode):
        import socket

        with contextlib.closing(socket.socket(fileno=os.dup(fd))) as ours:
            if ours.type == socket.SOCK_STREAM:  # of a message the rest would be lost
                return ours.recv(FIRST, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    return None


def _copied(fd: int) -> bytes:
    """A copy of the first bytes in a pipe. Python has no function for that, and this import takes 8 ms."""
    import ctypes

    kernel = ctypes.CDLL(None, use_errno=True)
    reader, writer = os.pipe()
    try:
        size = kernel.tee(fd, writer, ctypes.c_size_t(FIRST), ctypes.c_uint(os.SPLICE_F_NONBLOCK))
        if size < 0:
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code))
        return os.read(reader, size) if size else b""
    finally:
        os.close(reader)
        os.close(writer)


def _skip(fd: int, size: int) -> None:
    """Take ``size`` bytes, which are there. Raises OSError."""
    if stat.S_ISREG(os.fstat(fd).st_mode):
        os.lseek(fd, size, os.SEEK_CUR)
        return
    while size and (data := os.read(fd, size)):
        size -= len(data)
