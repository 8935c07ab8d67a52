"""The fast path: commands that do without Typer, which takes 40 ms or more to import, a third of a whole ``exec``.

``token-daemon`` is on it for its memory: Typer, and pydantic that it imports, are 10 MB that would be kept for good.

It reads the plain spellings of all commands and options in the table (:mod:`podbot.cli.commands`). For anything else,
and for every mistake, the result is None, and Typer parses the command line and explains it.
``tests/cli/test_fast.py`` checks that both read the same command lines the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from podbot.cli.commands import Command, find
from podbot.cli.globals import Globals
from podbot.cli.options import COMMON
from podbot.cli.scan import Scan, scan
from podbot.errors import InvalidValue


class Line(NamedTuple):
    """A command line that was read. ``values``: by name, of every argument and option of the command."""

    command: Command
    g: Globals
    values: dict[str, Any]


def parse(argv: list[str]) -> Callable[[], int] | None:
    """What to run for ``argv`` (without the program's name), or None when Typer has to read it."""
    line = read(argv)
    if line is None or not line.command.fast:
        return None
    Globals.current = line.g
    return lambda: line.command.carry_out(line.g, line.values)


def read(argv: list[str]) -> Line | None:
    """``argv`` as values, or None when that takes more than the plain spellings."""
    before = scan(argv, COMMON, stop_at_word=True)
    command = find(before.words) if before is not None else None
    if before is None or command is None:
        return None
    tail = before.words[len(command.path) :]
    values: dict[str, Any] = {}
    if command.takes_words:
        at = tail.index("--") if "--" in tail else len(tail)
        tail, values["words"] = tail[:at], tuple(tail[at + 1 :])
    after = scan(tail, (*command.options, *COMMON), stop_at_word=command.ends_at_word)
    arguments = _arguments(after.words, command) if after is not None else None
    g = _globals(before, after) if after is not None else None
    if after is None or arguments is None or g is None:
        return None
    values |= arguments | {option.name: after.value(option) for option in command.options}
    return None if command.mistake(values) else Line(command, g, values)


def _arguments(words: list[str], command: Command) -> dict[str, Any] | None:
    """None for one that is missing or blank where it is required, and for one too many."""
    values: dict[str, Any] = {}
    for argument in command.arguments:
        if argument.many:
            values[argument.name], words = tuple(words), []
        else:
            values[argument.name], words = (words[0] if words else None), words[1:]
        if argument.required and not values[argument.name]:
            return None
    return None if words else values


def _globals(before: Scan, after: Scan) -> Globals | None:
    """The same option in both places: the later one counts. None for a value that is refused."""
    try:
        first, second = (
            Globals(**{option.name: found.value(option) for option in COMMON}) for found in (before, after)
        )
    except InvalidValue:
        return None
    return first.under(second)
