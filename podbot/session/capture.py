"""A command of podbot's own in a sandbox: what it prints goes to a function, piece by piece, in bounded memory."""

from __future__ import annotations

import codecs
import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator

from podbot.engine.port import Engine
from podbot.execution.runner import ExecIO, ExecStatus, run_exec
from podbot.launch.command import ExecSpec
from podbot.streams.wake import Signal, Wake

Feed = Callable[[bytes], object]


def run_fed(
    engine: Engine,
    container: str,
    spec: ExecSpec,
    wake: Wake,
    *,
    data: bytes | None = None,
    out: Feed | None = None,
    err: Feed | None = None,
    seconds: float | None = None,
    pipes: str | None = None,
) -> ExecStatus:
    """Run ``spec`` to its end; ``out`` and ``err`` are called from other threads, never after the return.

    ``data``: all that it can read. ``pipes``: see ``run_exec``. After ``seconds`` it is ended as by TERM, which the
    status says. A Ctrl-C ends it, too, whatever the sandbox's program
    thinks of it. Raises as ``run_exec`` does.
    """
    with _from(data) as stdin, _fed(out) as stdout, _fed(err) as stderr, _ended_after(wake, seconds):
        io = ExecIO(stdin, stdout, stderr)
        return run_exec(engine, container, spec, io, wake, interrupt_ends=True, pipes=pipes)


@contextlib.contextmanager
def _from(data: bytes | None) -> Iterator[int | None]:
    """A descriptor that has ``data`` and then ends."""
    if data is None:
        yield None
        return
    outer, inner = os.pipe()

    def write() -> None:
        with contextlib.suppress(BrokenPipeError), open(inner, "wb", buffering=0) as stream:
            rest = memoryview(data)
            while rest:
                rest = rest[stream.write(rest) :]

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    try:
        yield outer
    finally:
        os.close(outer)
        writer.join()


@contextlib.contextmanager
def _fed(feed: Feed | None) -> Iterator[int | None]:
    """A descriptor whose bytes go to ``feed``; all of them have, when the block is left."""
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
def _ended_after(wake: Wake, seconds: float | None) -> Iterator[None]:
    if seconds is None:
        yield
        return
    timer = threading.Timer(seconds, wake.post, (Signal(signal.SIGTERM),))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


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
    def text(self) -> str:
        """What is not UTF-8 as replacement characters; a character that the limit cut is left out."""
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        return decoder.decode(b"".join(self._parts), final=not self.truncated)


class Lines:
    """Bytes to lines, for a :class:`Feed`: ended by newline or carriage return, each cut at ``longest`` bytes."""

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
        """A last line without an end."""
        self._send(self._rest)
        self._rest = b""

    def _send(self, line: bytes) -> None:
        if line:
            self._take(line[: self._longest].decode("utf-8", "replace"))
