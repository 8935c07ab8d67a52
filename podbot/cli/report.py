"""Events and errors on stderr: a line of text, a spinner on a terminal, or JSON lines."""

from __future__ import annotations

import sys
from threading import Lock
from typing import TYPE_CHECKING, Any

from podbot.cli.globals import Globals
from podbot.errors import PodbotError
from podbot.events import Event

if TYPE_CHECKING:
    from rich.status import Status


class Reporter:
    """Called with each event, from any thread: a token is renewed beside the agent.

    ``progress``: the command shows what it does (``spinner``: on a terminal, one line). What is said while the
    agent has the terminal, raw, would tear its screen, and waits until it has given it back.
    """

    def __init__(self, g: Globals, *, progress: bool = False, spinner: bool = True) -> None:
        self._json = g.log_format == "json"
        self._verbose = g.verbose
        self._progress = progress
        self._terminal = _on_terminal()
        self._spin = progress and spinner and self._terminal and not self._json and not g.verbose
        self._status: Status | None = None
        self._held: list[str] = []
        self._lock = Lock()

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
        if self._json:
            fields = {key: value for key, value in event.fields.items() if key not in ("level", "kind", "message")}
            self._say(_json_text({"level": event.level, "kind": event.kind, "message": event.message, **fields}))
        elif event.level == "info" and self._spin:
            self._show(event.message)
        else:
            self._line(event.message)

    def _show(self, message: str) -> None:
        if self._status is None:
            from rich.console import Console

            self._status = Console(stderr=True).status("")
            self._status.start()
        from rich.markup import escape

        self._status.update(escape(message))

    def _line(self, message: str) -> None:
        self._stop()
        self._say(f"podbot: {printable(message)}")

    def _say(self, line: str) -> None:
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
        say(_json_text(line))
    else:
        say(f"podbot: {printable(str(exc))}")


def printable(text: str) -> str:
    """``text`` on one line, with control and direction characters made visible: names are not ours to trust."""
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)


def say(line: str) -> None:
    """A line on stderr; a stderr that is closed is no reason to fail."""
    try:
        if sys.stderr is not None:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()
    except (OSError, ValueError):
        pass


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


def _json_text(value: dict[str, Any]) -> str:
    import json

    return json.dumps(value, default=str)
