"""Prints events and errors on stderr: as lines of text, a spinner on a terminal, or JSON lines."""

from __future__ import annotations

import select
import sys
import time
from _thread import allocate_lock
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from podbot.cli import stdio_guard
from podbot.cli.globals import Globals
from podbot.cli.log import STDERR, channel, give_up
from podbot.errors import PathError, PodbotError
from podbot.events import Event
from podbot.frozen import Frozen
from podbot.visible_text import printable

if TYPE_CHECKING:
    from rich.status import Status

    from podbot.cli.progress import LiveLine, Throttle

After = Callable[[float, Callable[[], None]], Callable[[], None]]  # see later()
_OF_THE_AGENT = ("agent.stderr", "agent.noise")
LAST_WORDS = 0.3  # seconds at the end for a slow reader of stderr


class Patience(Frozen):
    """Seconds for which a reader of stderr is waited for that has fallen behind.

    ``log``: without progress, before what does not fit is lost; None: as a relay's log. ``last``: at the end.
    """

    log: float | None = None
    last: float = LAST_WORDS


PATIENCE = Patience()


def later(seconds: float, call: Callable[[], None]) -> Callable[[], None]:
    """Call ``call`` in a thread after ``seconds``; returns a function that cancels it."""
    import threading

    timer = threading.Timer(seconds, call)
    timer.daemon = True
    timer.start()
    return timer.cancel


class Reporter:
    """Called with each event, from any thread, because tokens are renewed while the agent runs.

    ``progress``: the command shows what it does (``spinner``: on a terminal, one line). ``late``: it does so only on a
    terminal, and only for what takes longer than a second; ``after`` starts the timer. Messages while the agent has
    the terminal, raw, would tear its screen, and wait until it has returned it.
    ``beside_protocol``: no spinner, and a stderr that is not read blocks nothing: lines are lost then, and counted.
    ``patience``: how long it is waited for.
    """

    def __init__(
        self,
        g: Globals,
        *,
        progress: bool = False,
        late: bool = False,
        spinner: bool = True,
        beside_protocol: bool = False,
        patience: Patience = PATIENCE,
        after: After = later,
    ) -> None:
        self._json = g.log_format == "json"
        self._verbose = g.verbose
        self._quiet = g.quiet
        self._late = late
        self._after = after
        self._fd = channel(g.log_file)
        self._terminal = self._fd == STDERR and _on_terminal()
        self._spin = (
            (progress or late)
            and spinner
            and self._terminal
            and not (self._json or g.verbose or g.quiet or beside_protocol)
        )
        self._progress = progress or self._spin
        self._writer = _StderrWriter(self._lost, self._fd, patience) if beside_protocol else None
        self._status: Status | None = None
        self._doing: LiveLine | None = None  # ``late``: shown when the timer fires
        self._timer: object = None  # identifies the timer that runs, since one that was cancelled may still fire
        self._cancel: Callable[[], None] | None = None
        self._held: list[str] = []
        self._began = time.monotonic()
        self._clone: Throttle | None = None
        self._lock = allocate_lock()  # `threading` would cost the fast path 2 ms

    def __call__(self, event: Event) -> None:
        with self._lock:
            self._report(event)

    def _report(self, event: Event) -> None:
        self._release()
        if event.kind == "agent.start":
            self._stop()  # the agent uses the screen from now on
            if self._spin:
                return
        if self._quiet and event.level != "warning":
            return
        if event.level == "debug" and not self._verbose:
            return
        if event.level == "info" and not (self._progress or self._verbose):
            return
        if event.kind == "clone.progress" and not (self._spin or self._verbose or self._is_clone_due()):
            return  # several a second, too many where lines are not replaced
        if event.kind == ("guard.summary" if self._json else "guard.finding"):
            return  # programs get one event for each finding, people a short summary
        if event.level == "info" and self._spin:
            self._show(event)
        else:
            doing = self._doing
            self._stop()
            self._say(self._rendered(event))
            if self._late and doing is not None:
                self._show_later(doing)

    def _is_clone_due(self) -> bool:
        if self._clone is None:
            from podbot.cli.progress import Throttle

            self._clone = Throttle()
        return self._clone.ready()

    def _show(self, event: Event) -> None:
        from podbot.cli.progress import LiveLine, elapsed_of

        now = time.monotonic()
        began = now - elapsed_of(event.fields, 0 if self._late else now - self._began)
        line = LiveLine(printable(event.message), printable(str(event.fields.get("next", ""))), began)
        if self._late and self._status is None:
            self._show_later(line)
        else:
            self._doing = line
            self._draw(line)

    def _show_later(self, line: LiveLine) -> None:
        from podbot.cli.progress import LEAST_SECONDS

        self._doing = line
        if self._cancel is None:
            timer = self._timer = object()
            self._cancel = self._after(LEAST_SECONDS, lambda: self._fired(timer))

    def _fired(self, timer: object) -> None:
        with self._lock:
            if self._timer is not timer or self._doing is None:
                return  # it was cancelled while it waited for the lock
            try:
                self._draw(self._doing)
            except (OSError, ValueError):  # stderr is closed: nobody reads it
                self._doing = self._status = None

    def _draw(self, line: LiveLine) -> None:
        if self._status is None:
            from rich.console import Console

            self._status = Console(stderr=True).status(line)
            self._status.start()
        else:
            self._status.update(line)

    def _rendered(self, event: Event) -> str:
        if not self._json:
            # An agent must not be able to imitate podbot's messages.
            if event.kind in _OF_THE_AGENT:
                return f"agent: {printable(event.message.expandtabs())}"
            text = event.message
            if event.kind == "plan.note":
                from podbot.cli.remedies import with_pages

                text = with_pages(text)
            if event.kind == "history.resume":
                from podbot.cli.own_name import own_name

                text = text.replace("podbot", own_name(), 1)
            if event.level == "info":
                from podbot.cli.progress import elapsed_of, progress_text

                text = progress_text(text, elapsed_of(event.fields, 0), str(event.fields.get("next", "")))
            return f"podbot: {printable(text)}"
        fields = {key: value for key, value in event.fields.items() if key not in ("level", "kind", "message")}
        return _json({"level": event.level, "kind": event.kind, "message": event.message, **fields})

    def _lost(self, size: int) -> str:
        text = f"{size} bytes on stderr were not read and are lost"
        return self._rendered(Event("warning", "log.lost", text, {"bytes": size}))

    def close(self) -> None:
        """The command has ended: print what is left."""
        self.clear()
        if self._writer is not None:
            with self._lock:
                self._writer.close()

    def _say(self, line: str) -> None:
        if self._writer is not None:
            self._writer(line)
            return
        self._held.append(line)
        self._release()

    def _release(self) -> None:
        if self._held and not (self._terminal and _is_raw(2)):
            lines, self._held = self._held, []
            for line in lines:
                say(line)

    def clear(self) -> None:
        """Remove the spinner, and print the messages that were held back."""
        with self._lock:
            self._stop()
            self._release()

    def _stop(self) -> None:
        if self._cancel is not None:
            self._cancel()
        self._cancel = self._doing = self._timer = None
        if self._status is not None:
            self._status.stop()
            self._status = None


def report_error(exc: PodbotError, g: Globals) -> None:
    """Print an error as one paragraph: what happened, its origin, and the remedy."""
    from podbot.cli.remedies import paragraph, remedy_of
    from podbot.config.secret_shapes import HIDDEN, SHAPES
    from podbot.streams.terminal import is_terminal

    def plain(text: str) -> str:  # a token that was typed in the wrong place, whatever error it caused
        return SHAPES.sub(HIDDEN, text)

    terminal = is_terminal(0)
    if g.log_format == "json":
        name, remedy = type(exc).__name__, plain(remedy_of(exc, terminal=terminal))
        fields = {name: plain(value) if isinstance(value, str) else value for name, value in exc.fields.items()}
        say(_json({"level": "error", "kind": name, "message": plain(exc.message), "remedy": remedy, "fields": fields}))
    else:
        say(f"podbot: {printable(plain(paragraph(exc, terminal=terminal)))}")
        if g.verbose and (detail := exc.fields.get("detail")):
            say(f"podbot: the engine's own words: {printable(detail)}")


def say(line: str) -> None:
    """Print a line for the user. A closed stderr is not an error.

    A full log file, or a full stderr beside a protocol, does not block.
    """
    fd = _channel()
    if stdio_guard.Guard.current is not None or fd != STDERR:
        writer = _StderrWriter(str, fd)
        writer(line)
        writer.close()
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
        return STDERR  # the error itself is reported there


class _StderrWriter:
    """Like :func:`say`, for a stderr that may be an unread pipe: lines that do not fit wait, and are then dropped.

    A blocked write could not even be interrupted by a signal, because Python's handlers run only when it returns.
    """

    def __init__(self, lost: Callable[[int], str], fd: int = STDERR, patience: Patience = PATIENCE) -> None:
        self._lost = lost
        self._patience = patience
        self._open(fd)

    def _open(self, fd: int) -> None:
        from podbot.streams.sink import LogSink

        self._fd = fd
        self._sink = LogSink(fd, lambda size: (self._lost(size) + "\n").encode(), patience=self._patience.log)

    def __call__(self, line: str) -> None:
        self._sink.push(memoryview((line + "\n").encode("utf-8", "backslashreplace")))
        self._flush()
        while self._sink.full():  # waits one second at most without progress, so a slow reader loses nothing
            self._writable(0.02)
            self._flush()

    def close(self) -> None:
        """The last words get a moment."""
        end = time.monotonic() + self._patience.last
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
        """Switch to stderr because the log cannot be written; report that once."""
        path = give_up(self._fd)
        self._open(STDERR)
        if path:
            self(_log_failed(f"cannot write messages to {path}: {exc.strerror}. They go to stderr from now on"))
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
    """Whether the terminal is in raw mode: a full-screen program is drawing."""
    import termios

    try:
        return not termios.tcgetattr(fd)[1] & termios.OPOST
    except termios.error:
        return False


def _json(value: dict[str, Any]) -> str:
    import json

    return json.dumps(value, default=str)
