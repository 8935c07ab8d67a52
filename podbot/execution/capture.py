"""Run one of podbot's own commands in a sandbox, and pass its output to functions in pieces, in bounded memory."""

from __future__ import annotations

import codecs
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator

from podbot.engine.port import Engine
from podbot.exec_spec import ExecSpec
from podbot.execution.command_control import NOTHING_SEEN, Witness
from podbot.execution.runner import ExecIO, ExecStatus, run_exec
from podbot.execution.time_limits import TIME_LIMITS, TimeLimits
from podbot.streams.wake import Signal, Wake

Feed = Callable[[bytes], object]
Fill = Callable[[Callable[[bytes], object]], object]
"""Gets a function that writes; that raises BrokenPipeError if the command has ended."""
StartTimer = Callable[[float, Callable[[], None]], threading.Timer]
"""As ``threading.Timer``: not started yet, it calls the function after the seconds."""


def run_fed(
    engine: Engine,
    container: str,
    spec: ExecSpec,
    wake: Wake,
    *,
    data: bytes | None = None,
    fill: Fill | None = None,
    out: Feed | None = None,
    err: Feed | None = None,
    seconds: float | None = None,
    guest: str | None = None,
    limits: TimeLimits = TIME_LIMITS,
    timer: StartTimer = threading.Timer,
    witness: Witness = NOTHING_SEEN,
) -> ExecStatus:
    """Run ``spec`` to its end; ``out`` and ``err`` are called from other threads, never after the return.

    ``data`` is the whole of its stdin, or ``fill`` writes it, in another thread. ``guest``: see ``run_exec``. After
    ``seconds`` the command is terminated as by TERM, and the status says so. Ctrl-C terminates it too, even if the
    program in the sandbox ignores the signal. ``timer`` measures ``seconds``. ``witness``: see Witness.
    Raises what ``run_exec`` raises.
    """
    limit = _ended_after(wake, seconds, timer)
    with _from(fill or _filling(data)) as stdin, _fed(out) as stdout, _fed(err) as stderr, limit:
        io = ExecIO(stdin, stdout, stderr, shared=False)
        return run_exec(
            engine, container, spec, io, wake, interrupt_ends=True, limits=limits, guest=guest, witness=witness
        )


def _filling(data: bytes | None) -> Fill | None:
    return None if data is None else lambda write: write(data)


@contextlib.contextmanager
def _from(fill: Fill | None) -> Iterator[int | None]:
    """A descriptor from which can be read what ``fill`` writes, followed by end of file."""
    if fill is None:
        yield None
        return
    outer, inner = os.pipe()

    def work() -> None:
        with contextlib.suppress(BrokenPipeError), open(inner, "wb", buffering=0) as stream:

            def write(data: bytes) -> None:
                rest = memoryview(data)
                while rest:
                    rest = rest[stream.write(rest) :]

            fill(write)

    writer = threading.Thread(target=work, daemon=True)
    writer.start()
    try:
        yield outer
    finally:
        os.close(outer)
        writer.join()


@contextlib.contextmanager
def _fed(feed: Feed | None) -> Iterator[int | None]:
    """A descriptor whose bytes are passed to ``feed``; all of them have been when the block ends."""
    if feed is None:
        yield None
        return
    inner, outer = os.pipe()

    def read() -> None:
        with open(inner, "rb", buffering=0) as stream:
            while chunk := stream.read(65536):
                feed(chunk)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield outer
    finally:
        os.close(outer)
        reader.join()


@contextlib.contextmanager
def _ended_after(wake: Wake, seconds: float | None, timer: StartTimer) -> Iterator[None]:
    if seconds is None:
        yield
        return
    running = timer(seconds, lambda: wake.post(Signal(signal.SIGTERM)))
    running.daemon = True
    running.start()
    try:
        yield
    finally:
        running.cancel()
        running.join()


class Kept:
    """The first ``limit`` bytes, for a :class:`Feed`."""

    def __init__(self, limit: int) -> None:
        self._left = limit
        self._parts: list[bytes] = []
        self.truncated = False

    def __call__(self, data: bytes) -> None:
        self.truncated = self.truncated or len(data) > self._left
        if taken := data[: self._left]:
            self._parts.append(taken)
            self._left -= len(taken)

    @property
    def data(self) -> bytes:
        """What was kept."""
        return b"".join(self._parts)

    @property
    def text(self) -> str:
        """The bytes as text: invalid UTF-8 becomes replacement characters; a character cut by the limit is omitted."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        return decoder.decode(self.data, final=not self.truncated)


class Lines:
    """A :class:`Feed` that splits bytes into lines, at newline or carriage return, each cut at ``longest`` bytes."""

    def __init__(self, take: Callable[[str], object], *, longest: int = 2000) -> None:
        self._take = take
        self._longest = longest
        self._rest = b""

    def __call__(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).replace(b"\r", b"\n").split(b"\n")
        for line in lines:
            self._send(line)
        self._rest = rest[: self._longest]

    def end(self) -> None:
        """Pass on a last line that has no line ending."""
        self._send(self._rest)
        self._rest = b""

    def _send(self, line: bytes) -> None:
        if line:
            self._take(line[: self._longest].decode("utf-8", "replace"))
