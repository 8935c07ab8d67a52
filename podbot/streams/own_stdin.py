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
        self.held = 0
        self._taken = 0
        self._first = shared

    def read(self) -> bytes:
        """The next bytes; b"" at end of file. Raises OSError."""
        if self._first:
            data = _look(self.fd)
            self._first = False
            if data is not None:
                self.held = len(data)
                return data
        return os.read(self.fd, CHUNK)

    def take(self, read: int) -> None:
        """Take what the command has read. ``read``: bytes, all in all."""
        new = min(read - self._taken, self.held)
        if new > 0:
            self._taken += new
            self.held -= new
            with contextlib.suppress(OSError):  # EAGAIN: another program has taken them; EBADF: closed meanwhile
                _skip(self.fd, new)


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

        with socket.socket(fileno=os.dup(fd)) as ours:
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
    """Take ``size`` bytes, or fewer if another program has taken some of them. Never waits. Raises OSError."""
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        os.lseek(fd, size, os.SEEK_CUR)
    elif stat.S_ISSOCK(mode):
        import socket

        with socket.socket(fileno=os.dup(fd)) as ours:
            ours.recv(size, socket.MSG_DONTWAIT)
    else:
        nothing = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        try:
            while size and (done := os.splice(fd, nothing, size, flags=os.SPLICE_F_NONBLOCK)):
                size -= done
        finally:
            os.close(nothing)
