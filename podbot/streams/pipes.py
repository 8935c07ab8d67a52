"""The host's ends of a command's two named pipes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
import struct
import termios
from typing import Self


class CommandPipes:
    """Made by :meth:`make`, before the command is started; names in ``stdin`` and ``stdout``, descriptors non-blocking.

    The files go as soon as the command has opened them, or with :meth:`close`.
    """

    def __init__(self, directory: str, name: str) -> None:
        self.stdin = f"{name}.in"
        self.stdout = f"{name}.out"
        self._paths = [os.path.join(directory, self.stdin), os.path.join(directory, self.stdout)]
        self._open: dict[str, int] = {}

    @classmethod
    def make(cls, directory: str) -> Self:
        """Two new pipes in ``directory``, which is ours alone. Raises OSError, and leaves nothing then."""
        pipes = cls(directory, os.urandom(8).hex())
        try:
            pipes._make()
        except BaseException:
            pipes.close()
            raise
        return pipes

    def _make(self) -> None:
        stdin, stdout = self._paths
        for path in self._paths:
            os.mkfifo(path, 0o600)
        # Without a reader no writer can open without waiting: this one stands in until the command has its own.
        self._open["reader"] = _open_pipe(stdin, os.O_RDONLY)
        self._open["input"] = _open_pipe(stdin, os.O_WRONLY)
        self._open["name"] = os.open(f"/proc/self/fd/{self.input}", os.O_PATH | os.O_CLOEXEC)  # counts as neither
        # With a writer of our own there is no end of file between two of the command's; the engine says when it ended.
        self._open["output"] = _open_pipe(stdout, os.O_RDWR)

    @property
    def input(self) -> int:
        """Descriptor of what the command reads; -1 once it was closed."""
        return self._open.get("input", -1)

    @property
    def output(self) -> int:
        """Descriptor of what the command prints."""
        return self._open["output"]

    @property
    def waiting(self) -> int:
        """Bytes that were printed and not read yet."""
        answer = fcntl.ioctl(self.output, termios.FIONREAD, b"\0" * 4)
        return int(struct.unpack("i", answer)[0])

    def connected(self, *, for_input: bool) -> None:
        """A shell has opened both: nobody else needs to find them, and it is the only reader. It may go on.

        ``for_input``: the command's stdin is such a pipe, too.
        """
        os.write(self.input, b"\n")  # in an empty pipe there is room
        self._unlink()
        self._close("reader")
        if not for_input:
            self._close("input")
            self._close("name")

    def close_input(self) -> None:
        """End of file for the command; from then on it has to be nudged."""
        self._close("input")

    @property
    def needs_nudges(self) -> bool:
        """See :meth:`nudge`."""
        return "name" in self._open and "input" not in self._open

    def nudge(self) -> None:
        """Let go whoever opens ``/dev/stdin`` behind the end of file.

        The kernel keeps that one waiting for a writer of a pipe that had a name, and not of any other pipe.
        """
        with contextlib.suppress(OSError):  # ENXIO: nobody reads it
            os.close(os.open(f"/proc/self/fd/{self._open['name']}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))

    def close(self) -> None:
        """Give everything back."""
        self._unlink()
        for name in list(self._open):
            self._close(name)

    def _close(self, name: str) -> None:
        fd = self._open.pop(name, None)
        if fd is not None:
            os.close(fd)

    def _unlink(self) -> None:
        paths, self._paths = self._paths, []
        for path in paths:
            with contextlib.suppress(OSError):
                os.unlink(path)


def _open_pipe(path: str, flags: int) -> int:
    """A privileged container can write to a read-only mount: what is opened is what was made, or nothing."""
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    found = os.fstat(fd)
    if not stat.S_ISFIFO(found.st_mode) or found.st_uid != os.getuid():
        os.close(fd)
        raise OSError(f"{path} is not the pipe that was made")
    return fd
