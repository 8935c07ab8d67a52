"""The command's side of a fake exec session whose stdin and stdout are named pipes on this host."""

from __future__ import annotations

import contextlib
import os
import select
import socket

from podbot.engine.port import Size
from podbot.execution.streams.piped_shell import opened
from podbot.launch.types import ExecSpec
from podbot.testing.peer import STDOUT, ExecPeer


class PipedPeer(ExecPeer):
    """See :class:`~podbot.testing.ExecPeer`. stderr, and the word that the pipes are open, go by the connection.

    The command waits for a line by which it is told to run.
    """

    def __init__(self, spec: ExecSpec, sock: socket.socket, size: Size | None, stdin: str, stdout: str) -> None:
        super().__init__(spec, sock, size)
        self._paths = {os.O_RDONLY: stdin, os.O_WRONLY: stdout}
        self._stdin = self._stdout = -1

    def begin(self) -> bool:
        self._stdin, self._stdout = (self._opened(flags) for flags in self._paths)
        if self._stdin < 0 or self._stdout < 0:
            return False
        super().write(STDOUT, opened(os.path.basename(self._paths[os.O_RDONLY])))
        return self._take(1) == b"\n"

    def _opened(self, flags: int) -> int:
        """-1 when there is no such pipe any more, or the command was ended."""
        while not self.ended.wait(0.0005):
            try:
                return os.open(self._paths[flags], flags | os.O_NONBLOCK)
            except FileNotFoundError:
                return -1
            except OSError:  # ENXIO: nobody at the other end yet
                continue
        return -1

    def read(self, limit: int = 65536) -> bytes:
        return self._take(limit) if self.spec.stdin else b""

    def _take(self, limit: int) -> bytes:
        while not self.ended.is_set():
            self._wait(self._stdin, select.POLLIN)  # first: before its writer comes a pipe reads as ended
            with contextlib.suppress(BlockingIOError):
                return os.read(self._stdin, limit)
        return b""

    def write(self, stream: int, data: bytes) -> None:
        if stream != STDOUT:
            super().write(stream, data)
            return
        view = memoryview(data)
        while view:
            if self.ended.is_set():
                raise BrokenPipeError
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(self._stdout, view) :]
                continue
            self._wait(self._stdout, select.POLLOUT)

    def dispose(self) -> None:
        super().dispose()
        for fd in (self._stdin, self._stdout):
            if fd >= 0:
                os.close(fd)

    def _wait(self, fd: int, events: int) -> None:
        poller = select.poll()
        poller.register(fd, events)
        poller.register(self._sock, 0)  # hangs up when the command is ended
        poller.poll()
