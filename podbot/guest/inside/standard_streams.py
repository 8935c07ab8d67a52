"""The streams of one command, pipes or a terminal, which are read and written only as far as there is credit."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import termios

from podbot.guest.frames import WINDOW
from podbot.guest.inside import processes, spawn
from podbot.guest.inside.loop import READABLE, WRITABLE, Loop

TYPE_CHECKING = False  # the module `typing` costs 0.5 MB
if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable
    from typing import Any
else:
    from _collections import deque  # the module `collections` costs 0.3 MB

_CHUNK = 1 << 16
_LARGE_PIPE = 1 << 19  # bytes; the pipe of a command that fills its first one is enlarged to this
_TERMINAL_REST = 0.2  # seconds for reading the rest of a terminal's output after its command has ended
_LOOK = 0.05  # seconds between looks at a pipe whose readiness says nothing
_END_OF_FILE = b"\x04"  # control-D, which a terminal interprets as the end of the input
_SET_PIPE_SIZE, _GET_PIPE_SIZE = 1031, 1032  # fcntl has names for them since Python 3.10


def _available(fd: int) -> int:
    """Bytes in a pipe."""
    return int(struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, b"\0" * 4))[0])


def _resized(fd: int, size: int) -> bool:
    """Make a pipe hold ``size`` bytes, at least a page; false where the kernel refuses, as for one with many pipes."""
    try:
        fcntl.fcntl(fd, _SET_PIPE_SIZE, size)
    except OSError:
        return False
    return True


def _enlarge(fd: int) -> None:
    if fcntl.fcntl(fd, _GET_PIPE_SIZE) < _LARGE_PIPE:
        _resized(fd, _LARGE_PIPE)


def _is_held(fd: int) -> bool:
    """Whether any process has the other end of a pipe open for writing."""
    poll = select.poll()
    poll.register(fd, 0)  # a hang-up is reported without being asked for
    return not poll.poll(0)


class Sink:
    """Receives a command's output and end: a connection, or a job."""

    def room(self) -> int:
        """How many bytes of output it accepts now."""
        raise NotImplementedError

    def output(self, stream: int, data: bytes) -> None:
        """Process output of ``stream``, 1 or 2."""
        raise NotImplementedError

    def took_input(self, size: int) -> None:
        """Called when ``size`` bytes of stdin were passed to the command, or dropped because it no longer reads.

        Of a stdin that is lent, only bytes that the command has read are counted until it has read the first ones.
        """
        raise NotImplementedError

    def ended(self, outcome: dict[str, Any]) -> None:
        """Called once, after all output."""
        raise NotImplementedError


class Streams:
    """``on_end`` is called each time an output stream has ended; ``is_open``: whether another one is still open.

    ``fail`` is called after an unexpected error. ``keep_open``: when the command has ended and its own output was read,
    pipes that other processes still have open, or have written to, are moved from ``outputs`` to ``kept_open``; without
    it, they are closed.
    """

    def __init__(self, loop: Loop, sink: Sink, on_end: Callable[[], None], fail: Callable[[], None]) -> None:
        self.loop, self.sink, self.on_end, self.fail = loop, sink, on_end, fail
        self.running = True  # whether the command runs
        self.outputs: dict[int, int] = {}  # stream -> descriptor
        self.keep_open = False
        self.kept_open: dict[int, int] = {}
        self.left: dict[int, int] = {}  # stream -> bytes that are still to be read, once the command has ended
        self.stdin = -1
        self.pending: deque[bytes] = deque()
        self.held = 0  # number of bytes in `pending`
        self.stdin_over = False
        self.lent = 0  # if stdin is lent and the command has read nothing yet: the usual size of a pipe, in bytes
        self.unread = 0  # bytes in the pipe of a stdin that is lent
        self.terminal: spawn.Terminal | None = None

    def make(self, spec: dict[str, Any], theirs: list[int]) -> tuple[int, int, int]:
        """Create the program's descriptors 0, 1 and 2. They are added to ``theirs``, for the caller to close."""
        if spec["tty"]:
            terminal = self.terminal = spawn.Terminal(*spec["tty"])
            theirs.append(terminal.slave)
            self.outputs[1] = terminal.master
            self.stdin = terminal.master
            return (terminal.slave,) * 3
        null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
        theirs.append(null)
        fds = [null, null, null]
        if spec["stdin"]:
            fds[0], self.stdin = os.pipe()
            theirs.append(fds[0])
            os.set_blocking(self.stdin, False)
            # A pipe of one page is writable again when it is empty. An older podbot does not say "lent".
            if spec.get("lent", False):
                size = fcntl.fcntl(self.stdin, _GET_PIPE_SIZE)
                self.lent = size if _resized(self.stdin, 1) else 0
        if not spec["discard"]:
            for stream in (1, 2):
                self.outputs[stream], fds[stream] = os.pipe()
                theirs.append(fds[stream])
                os.set_blocking(self.outputs[stream], False)
        return fds[0], fds[1], fds[2]

    @property
    def is_open(self) -> bool:
        """Whether more output is possible."""
        return bool(self.outputs)

    def resume(self) -> None:
        """Watch the output streams if the sink has room for more, or else stop watching them."""
        wanted = READABLE if self.sink.room() > 0 else 0
        for stream, fd in self.outputs.items():
            if self.terminal is not None:
                self._watch_terminal()
            else:
                self.loop.watch(fd, wanted, lambda _, stream=stream: self._read(stream), self)  # type: ignore[misc]

    def _watch_terminal(self) -> None:
        if self.terminal is None or 1 not in self.outputs:
            return
        events = READABLE if self.sink.room() > 0 else 0
        if self.pending:
            events |= WRITABLE
        self.loop.watch(self.terminal.master, events, self._on_terminal, self)

    def _on_terminal(self, events: int) -> None:
        if events & WRITABLE and self.pending:
            self._write()
        if 1 in self.outputs and events & ~WRITABLE:
            self._read(1)

    def _read(self, stream: int) -> None:
        fd = self.outputs.get(stream, -1)
        room = min(_CHUNK, self.sink.room(), self.left.get(stream, _CHUNK))
        if fd < 0 or room <= 0:
            self.resume()
            return
        try:
            data = os.read(fd, room)
        except BlockingIOError:
            if stream in self.left:  # another process inside has read it
                self._close_output(stream)
            return
        except OSError:  # EIO: no process has the terminal open any more
            data = b""
        if not data:
            self._end_of(stream, fd)
            return
        if len(data) == _CHUNK and self.terminal is None:
            _enlarge(fd)
        if stream in self.left:
            self.left[stream] -= len(data)
        self.sink.output(stream, data)
        if self.left.get(stream) == 0:
            self._close_output(stream)
        elif self.sink.room() <= 0:
            self.resume()

    def _end_of(self, stream: int, fd: int) -> None:
        if self.terminal is not None and self.running:
            # Closing the guest's end now would send SIGHUP to a command that has closed its own and is about to exit.
            self.loop.forget(fd)
            self.loop.after(_TERMINAL_REST, (self, "rest"), self._watch_terminal)
        else:
            self._close_output(stream, at_end=True)

    def _close_output(self, stream: int, *, at_end: bool = False) -> None:
        """Close a stream, or move it to ``kept_open``. ``at_end``: end of file was read, so nothing is to be kept."""
        fd = self.outputs.pop(stream)
        self.left.pop(stream, None)
        self.loop.forget(fd)
        if self.terminal is not None:
            self.stdin, self.terminal = -1, None
            self._drop_input()
        if self.keep_open and not at_end and (_is_held(fd) or _available(fd)):
            self.kept_open[stream] = fd
        else:
            os.close(fd)
        self.on_end()

    def write(self, data: bytes) -> None:
        """Write to its stdin. Raises ValueError for more data than the sender had credit for."""
        if self.stdin < 0 or self.stdin_over:
            if not self.lent:
                self.sink.took_input(len(data))
            self.lent = 0
            return
        if self.held + len(data) > WINDOW:
            raise ValueError("more input than there was credit for")
        self.pending.append(data)
        self.held += len(data)
        self._write()

    def end_input(self) -> None:
        """Send an end of file after the data that was written."""
        if self.stdin_over or self.stdin < 0:
            return
        self.stdin_over = True
        self._write()

    def _write(self) -> None:
        if self.lent and self.stdin >= 0 and not self._was_read():
            return
        while self.pending and self.stdin >= 0:
            data = self.pending[0]
            try:
                size = os.write(self.stdin, data)
            except BlockingIOError:
                break
            except OSError:  # the command no longer reads
                self._close_input()
                return
            self.pending[0] = data[size:]
            if size == len(data):
                self.pending.popleft()
            self.held -= size
            self.sink.took_input(size)
        if self.terminal is not None:
            if self.stdin_over and not self.pending and self.stdin >= 0:
                self.stdin = -1
                processes.quietly(os.write, self.terminal.master, _END_OF_FILE)
            self._watch_terminal()
        elif self.stdin >= 0 and not self.pending and self.stdin_over:
            self._close_input()
        elif self.stdin >= 0:
            self.loop.watch(self.stdin, WRITABLE if self.pending else 0, lambda _: self._write(), self)

    def _was_read(self) -> bool:
        """Whether the command has read the first page of a stdin that is lent; that page is written here."""
        if not self.unread and self.pending:
            data = self.pending.popleft()
            try:
                self.unread = os.write(self.stdin, data)
            except BlockingIOError:  # the command has filled the pipe itself
                self.pending.appendleft(data)
                self.loop.watch(self.stdin, WRITABLE, self._on_lent, self)
                return False
            except OSError:  # the command has closed it
                self.held -= len(data)
                self.lent = 0
                self._close_input()
                return False
            self.held -= self.unread
            if self.unread < len(data):
                self.pending.appendleft(data[self.unread :])
        if self.unread and _available(self.stdin):
            self.loop.watch(self.stdin, WRITABLE, self._on_lent, self)
            return False
        if self.unread:
            size = self.lent
            self._end_lending()
            _resized(self.stdin, size)
        return True

    def _on_lent(self, events: int) -> None:
        if events & ~WRITABLE:  # the command has closed it
            self._close_input()
        elif self.unread and _available(self.stdin):
            # The command has made the pipe larger, or the kernel (gVisor) has no pipe of one page.
            self.loop.forget(self.stdin)
            self.loop.after(_LOOK, (self, "lent"), self._write)
        else:
            self._write()

    def _end_lending(self) -> None:
        """Count what the command has read. It may have written into the pipe itself."""
        size = min(max(self.unread - _available(self.stdin), 0), self.unread)
        self.unread = self.lent = 0
        if size:
            self.sink.took_input(size)

    def _close_input(self) -> None:
        self.loop.cancel((self, "lent"))
        if self.unread:
            self._end_lending()
        elif self.lent and self.pending:  # the first piece, which was never written
            self.held -= len(self.pending.popleft())
            self.lent = 0
        fd, self.stdin = self.stdin, -1
        if self.terminal is None and fd >= 0:
            self.loop.forget(fd)
            os.close(fd)
        self._drop_input()

    def _drop_input(self) -> None:
        size, self.held = self.held, 0
        self.pending.clear()
        if size:
            self.sink.took_input(size)

    def resize(self, columns: int, rows: int) -> None:
        """Set the size of its terminal, if it has one."""
        if self.terminal is not None:
            self.terminal.resize(columns, rows)

    def finish(self) -> None:
        """Called when the command has ended. Only output that was printed before is still read as its own."""
        self.running = False
        if self.terminal is None:
            self._close_input()
        for stream, fd in list(self.outputs.items()):
            if self.terminal is not None:
                self._watch_terminal()
                self.loop.after(_TERMINAL_REST, (self, "rest"), self._end_terminal)
                continue
            self.left[stream] = _available(fd)
            if not self.left[stream]:
                self._close_output(stream)

    def _end_terminal(self) -> None:
        """Close a terminal that other processes still hold open, once its output was read."""
        if 1 not in self.outputs:
            return
        if self.sink.room() <= 0:
            self.loop.after(_TERMINAL_REST, (self, "rest"), self._end_terminal)
        else:
            self._close_output(1)

    def close_ended(self) -> None:
        """Close those pipes in ``kept_open`` that are empty and that no process has open for writing any more."""
        for stream, fd in list(self.kept_open.items()):
            if not _is_held(fd) and not _available(fd):
                os.close(self.kept_open.pop(stream))

    def are_held(self) -> bool:
        """Whether any process has one of the pipes in ``kept_open`` open for writing."""
        return any(map(_is_held, self.kept_open.values()))

    def go_on(self, sink: Sink) -> None:
        """Read the pipes in ``kept_open`` on behalf of another sink, until no process has them open for writing."""
        self.sink = sink
        self.outputs, self.kept_open, self.keep_open = self.kept_open, {}, False
        self.resume()

    def close(self) -> None:
        """Close all streams and drop the rest of the output."""
        self.loop.cancel((self, "rest"))
        for fd in self.kept_open.values():
            os.close(fd)
        self.kept_open = {}
        for stream in list(self.outputs):
            fd = self.outputs.pop(stream)
            self.loop.forget(fd)
            if self.terminal is not None:
                self.stdin, self.terminal = -1, None
            os.close(fd)
        self._close_input()
