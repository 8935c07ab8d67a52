"""The command's side of a fake exec session whose stdin and stdout are named pipes on this host."""

from __future__ import annotations

import contextlib
import os
import select
import socket

from podbot.engine.port import Size
from podbot.launch.types import ExecSpec
from podbot.testing.peer import STDOUT, ExecPeer


class PipedPeer(ExecPeer):
    """See :class:`~podbot.testing.ExecPeer`. stderr, and the word that the pipes are open, go by the connection.

    The command waits for a line by which it is told to run.
    """

    def __init__(self, spec: ExecSpec, sock: socket.socket, size: Size | None, stdin: str, stdout: str) -> None:
        super().__init__(spec, sock, size)
        self._stdin = os.open(stdin, os.O_RDONLY | os.O_NONBLOCK)
        self._stdout = os.open(stdout, os.O_WRONLY | os.O_NONBLOCK)
        super().write(STDOUT, b"\n")

    def begin(self) -> bool:
        return self._take(1) == b"\n"

    def read(self, limit: int = 65536) -> bytes:
        return self._take(limit) if self.spec.stdin else b""

    def _take(self, limit: int) -> bytes:
        while not self.ended.is_set():
            with contextlib.suppress(BlockingIOError):
                return os.read(self._stdin, limit)
            self._wait(self._stdin, select.POLLIN)
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
        os.close(self._stdin)
        os.close(self._stdout)

    def _wait(self, fd: int, events: int) -> None:
        poller = select.poll()
        poller.register(fd, events)
        poller.register(self._sock, 0)  # hangs up when the command is ended
        poller.poll()
