"""The command's side of a fake exec session, including signals that end it."""

from __future__ import annotations

import contextlib
import queue
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from podbot.engine.port import Size
from podbot.exec_spec import ExecSpec

STDOUT = 1
STDERR = 2


class ExecPeer:
    """The interface of a command inside: stdin, stdout, stderr, signals and terminal sizes.

    ``signals`` and ``sizes`` are queues. A signal that the command did not :meth:`trap` ends it with 128 + its number;
    KILL cannot be trapped.
    """

    def __init__(self, spec: ExecSpec, sock: socket.socket, size: Size | None) -> None:
        self.spec = spec
        self.signals: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.sizes: queue.SimpleQueue[Size] = queue.SimpleQueue()
        self.size = size
        self.ended = threading.Event()  # the command was killed, or its container died
        self._sock = sock
        self._trapped: set[int] = set()

    def trap(self, *numbers: int) -> None:
        """Deliver these signals only to ``signals`` from now on."""
        self._trapped.update(set(numbers) - {signal.SIGKILL})

    def trapped(self, number: int) -> bool:
        """Whether the command handles this signal itself."""
        return number in self._trapped

    def read(self, limit: int = 65536) -> bytes:
        """Bytes of stdin; waits for some. ``b""`` at end of file."""
        if not self.spec.stdin:
            return b""
        try:
            return self._sock.recv(limit)
        except OSError:
            return b""

    def read_all(self) -> bytes:
        """Stdin to its end."""
        return b"".join(iter(self.read, b""))

    def write(self, stream: int, data: bytes) -> None:
        """Print ``data`` on stream 1 or 2, framed as the engine does; on a terminal both are one raw stream.

        Raises OSError when the caller is gone or the command was ended.
        """
        if self.spec.tty:
            self.write_raw(data.replace(b"\n", b"\r\n"))
        elif data:
            self.write_raw(bytes([stream, 0, 0, 0]) + len(data).to_bytes(4, "big") + data)

    def write_raw(self, data: bytes) -> None:
        """Send bytes unchanged, as a broken engine would."""
        self._sock.sendall(data)

    def close(self) -> None:
        """End the connection and wake callers of read and write."""
        self.ended.set()
        self.drop()

    def drop(self) -> None:
        """End only the connection; the command is not notified."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def dispose(self) -> None:
        """Close the descriptor, once nothing reads or writes any more."""
        self._sock.close()


Command = Callable[[ExecPeer], int]


@dataclass(frozen=True, slots=True)
class ScriptedExec:
    """A command that prints ``stdout`` and ``stderr`` and ends with ``code``.

    ``waits``: only after its stdin has ended. ``ignores``: signals that it does not die of.
    For anything else write a function of one :class:`ExecPeer` that returns the exit code.

    >>> engine = FakeEngine()
    >>> engine.on("claude", ScriptedExec(stdout=b"hello\\n", code=3))
    """

    stdout: bytes = b""
    stderr: bytes = b""
    code: int = 0
    waits: bool = False
    ignores: Sequence[int] = ()

    def __call__(self, io: ExecPeer) -> int:
        io.trap(*self.ignores)
        io.write(STDOUT, self.stdout)
        io.write(STDERR, self.stderr)
        if self.waits:
            io.read_all()
        return self.code


class Session:
    """One exec session of a fake engine: created, running in a thread of its own, ended."""

    def __init__(self, container: str, spec: ExecSpec, command: Command, pid: int) -> None:
        self.container = container
        self.spec = spec
        self.pid = pid
        self.code: int | None = None
        self.started = False
        self.peer: ExecPeer | None = None
        self._command = command
        self._lock = threading.Lock()

    @property
    def running(self) -> bool:
        return self.started and self.code is None

    def start(self, size: Size | None) -> socket.socket:
        """The caller's end of the connection."""
        ours, theirs = socket.socketpair()
        self.started = True
        self.peer = ExecPeer(self.spec, theirs, size)
        threading.Thread(target=self._run, args=(self.peer,), daemon=True).start()
        return ours

    def _run(self, peer: ExecPeer) -> None:
        code = 1  # of a command that raises
        try:
            code = self._command(peer)
        except OSError:
            code = 128 + signal.SIGPIPE
        finally:
            self.end(code)
            peer.dispose()

    def end(self, code: int) -> None:
        """The command ended with ``code``; the first end counts. The stream ends after the status is known."""
        with self._lock:
            if self.code is None:
                self.code = code
        if self.peer is not None:
            self.peer.close()

    def drop(self) -> None:
        """The connection breaks; the command continues, as it does under a real engine that went away."""
        if self.peer is not None:
            self.peer.drop()

    def signal(self, number: int) -> None:
        """A signal for the command's whole group."""
        if self.peer is None:
            return
        self.peer.signals.put(number)
        if not self.peer.trapped(number):
            self.end(128 + number)
