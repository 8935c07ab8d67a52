"""Events and errors on stderr: a line of text, a spinner on a terminal, or JSON lines."""

from __future__ import annotations

import select
import sys
import time
from _thread import allocate_lock
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from podbot.cli import guard
from podbot.cli.globals import Globals
from podbot.cli.log import STDERR, channel, give_up
from podbot.errors import PathError, PodbotError
from podbot.events import Event

if TYPE_CHECKING:
    from rich.status import Status

_OF_THE_AGENT = ("agent.stderr", "agent.noise")
LAST_WORDS = 0.3  # seconds for a reader of stderr that has fallen behind


class Reporter:
    """Called with each event, from any thread: a token is renewed beside the agent.

    ``progress``: the command shows what it does (``spinner``: on a terminal, one line). What is said while the
    agent has the terminal, raw, would tear its screen, and waits until it has given it back.
    ``beside_protocol``: no spinner, and a stderr that nobody reads holds nothing up: lines are lost then, and counted.
    """

    def __init__(
        self, g: Globals, *, progress: bool = False, spinner: bool = True, beside_protocol: bool = False
    ) -> None:
        self._json = g.log_format == "json"
        self._verbose = g.verbose
        self._progress = progress
        self._fd = channel(g.log_file)
        self._terminal = self._fd == STDERR and _on_terminal()
        self._spin = progress and spinner and self._terminal and not (self._json or g.verbose or beside_protocol)
        self._patient = _Patient(self._lost, self._fd) if beside_protocol else None
        self._status: Status | None = None
        self._held: list[str] = []
        self._lock = allocate_lock()  # `threading` would cost the fast lane 2 ms

    def __call__(self, event: Event) -> None:
        with self._lock:
            self._report(event)

    def _report(self, event: Event) -> None:
        self._release()
        if event.kind == "agent.start":
            self._stop()  # the screen is the agent's from here on
            if self._spin:
                return
        if event.level == "debug" and not self._verbose:
            return
        if event.level == "info" and not (self._progress or self._verbose):
            return
        if event.kind == "clone.progress" and not (self._spin or self._verbose):
            return  # several a second: for who watches
        if event.kind == ("guard.summary" if self._json else "guard.finding"):
            return  # programs get one event a finding, people a short block
        if event.level == "info" and self._spin:
            self._show(event.message)
        else:
            self._stop()
            self._say(self._rendered(event))

    def _show(self, message: str) -> None:
        if self._status is None:
            from rich.console import Console

            self._status = Console(stderr=True).status("")
            self._status.start()
        from rich.markup import escape

        self._status.update(escape(message))

    def _rendered(self, event: Event) -> str:
        if not self._json:
            # An agent must not be able to say something in podbot's name.
            if event.kind in _OF_THE_AGENT:
                return f"agent: {printable(event.message.expandtabs())}"
            return f"podbot: {printable(event.message)}"
        fields = {key: value for key, value in event.fields.items() if key not in ("level", "kind", "message")}
        return _json({"level": event.level, "kind": event.kind, "message": event.message, **fields})

    def _lost(self, size: int) -> str:
        text = f"{size} bytes on stderr were not read and are lost"
        return self._rendered(Event("warning", "log.lost", text, {"bytes": size}))

    def close(self) -> None:
        """The command is over."""
        self.clear()
        if self._patient is not None:
            with self._lock:
                self._patient.close()

    def _say(self, line: str) -> None:
        if self._patient is not None:
            self._patient(line)
            return
        self._held.append(line)
        self._release()

    def _release(self) -> None:
        if self._held and not (self._terminal and _is_raw(2)):
            lines, self._held = self._held, []
            for line in lines:
                say(line)

    def clear(self) -> None:
        """Take the spinner off the screen, and say what was held back."""
        with self._lock:
            self._stop()
            self._release()

    def _stop(self) -> None:
        if self._status is not None:
            self._status.stop()
            self._status = None


def report_error(exc: PodbotError, g: Globals) -> None:
    """One paragraph: what happened, where it came from, what to do."""
    if g.log_format == "json":
        name = type(exc).__name__
        line = {"level": "error", "kind": name, "message": exc.message, "remedy": exc.remedy, "fields": exc.fields}
        say(_json(line))
    else:
        say(f"podbot: {printable(str(exc))}")


def printable(text: str) -> str:
    """``text`` on one line, with control and direction characters made visible: names are not ours to trust."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def say(line: str) -> None:
    """A line for the user; a stderr that is closed is no reason to fail.

    A log, or beside a protocol stderr, that is full is no reason to hang.
    """
    fd = _channel()
    if guard.Guard.current is not None or fd != STDERR:
        patient = _Patient(str, fd)
        patient(line)
        patient.close()
        return
    try:
        if sys.stderr is not None:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()
    except (OSError, ValueError):
        pass


def _channel() -> int:
    try:
        return channel(Globals.current.log_file)
    except PathError:
        return STDERR  # where the error is said


class _Patient:
    """:func:`say` for a stderr that may be a pipe nobody reads: what does not fit waits, and then is lost.

    A blocked write could not even be ended by a signal: Python's handlers run when it returns.
    """

    def __init__(self, lost: Callable[[int], str], fd: int = STDERR) -> None:
        self._lost = lost
        self._open(fd)

    def _open(self, fd: int) -> None:
        from podbot.streams.sink import LogSink

        self._fd = fd
        self._sink = LogSink(fd, lambda size: (self._lost(size) + "\n").encode())

    def __call__(self, line: str) -> None:
        self._sink.push(memoryview((line + "\n").encode("utf-8", "backslashreplace")))
        self._flush()
        while self._sink.full():  # for a second at the most without progress: a slow reader loses nothing
            self._writable(0.02)
            self._flush()

    def close(self) -> None:
        """The last words get a moment."""
        end = time.monotonic() + LAST_WORDS
        while self._sink.pending and (left := end - time.monotonic()) > 0:
            self._writable(left)
            self._flush()
        self._sink.close()

    def _flush(self) -> None:
        try:
            while self._sink.pending and (not self._sink.must_poll or self._writable(0)):
                before = self._sink.pending
                self._sink.flush()
                if self._sink.pending == before:
                    return
        except OSError as exc:
            waiting = b"".join(self._sink.pieces())
            self._sink.discard()
            if self._fd != STDERR:
                self._use_stderr(waiting, exc)

    def _use_stderr(self, waiting: bytes, exc: OSError) -> None:
        """The log takes nothing more; that is said once."""
        path = give_up(self._fd)
        self._open(STDERR)
        if path:
            self(_log_failed(f"cannot write messages to {path}: {exc.strerror}. They go to stderr from here on"))
        self._sink.push(memoryview(waiting))
        self._flush()

    def _writable(self, seconds: float) -> bool:
        poller = select.poll()
        poller.register(self._fd, select.POLLOUT)
        return bool(poller.poll(seconds * 1000))


def _log_failed(text: str) -> str:
    event = Event("warning", "log.failed", text)
    if Globals.current.log_format == "json":
        return _json({"level": event.level, "kind": event.kind, "message": event.message})
    return f"podbot: {printable(text)}"


def _on_terminal() -> bool:
    try:
        return sys.stderr is not None and sys.stderr.isatty()
    except ValueError:  # closed
        return False


def _is_raw(fd: int) -> bool:
    """The terminal does not begin a new line where one ends: somebody paints its screen."""
    import termios

    try:
        return not termios.tcgetattr(fd)[1] & termios.OPOST
    except termios.error:
        return False


def _json(value: dict[str, Any]) -> str:
    import json

    return json.dumps(value, default=str)
