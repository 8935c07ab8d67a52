"""Events and errors on stderr: a line of text, a spinner on a terminal, or JSON lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from podbot.cli.globals import Globals
from podbot.errors import PodbotError
from podbot.events import Event

if TYPE_CHECKING:
    from rich.status import Status


class Reporter:
    """Called with each event. ``progress``: the command shows what it is doing (spinner on a terminal)."""

    def __init__(self, g: Globals, *, progress: bool = False) -> None:
        self._json = g.log_format == "json"
        self._verbose = g.verbose
        self._progress = progress
        self._spin = progress and not self._json and not g.verbose and sys.stderr is not None and sys.stderr.isatty()
        self._status: Status | None = None

    def __call__(self, event: Event) -> None:
        if event.kind == "agent.start":
            self.clear()  # the screen is the agent's from here on
            if self._spin:
                return
        if event.level == "debug" and not self._verbose:
            return
        if event.level == "info" and not (self._progress or self._verbose):
            return
        if self._json:
            fields = {key: value for key, value in event.fields.items() if key not in ("level", "kind", "message")}
            _json_line({"level": event.level, "kind": event.kind, "message": event.message, **fields})
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
        self.clear()
        say(f"podbot: {printable(message)}")

    def clear(self) -> None:
        """Take the spinner off the screen."""
        if self._status is not None:
            self._status.stop()
            self._status = None


def report_error(exc: PodbotError, g: Globals) -> None:
    """One paragraph: what happened, where it came from, what to do."""
    if g.log_format == "json":
        name = type(exc).__name__
        line = {"level": "error", "kind": name, "message": exc.message, "remedy": exc.remedy, "fields": exc.fields}
        _json_line(line)
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


def _json_line(value: dict[str, Any]) -> None:
    import json

    say(json.dumps(value, default=str))
