"""The fast path, which parses commands without Typer, whose import takes longer than a whole ``exec``.

``token-daemon`` also saves memory: Typer, and pydantic that it imports, would occupy 10 MB all the time.

It parses the plain spellings of all commands and options in the table (:mod:`podbot.cli.commands`). For anything else,
and for every error, the result is None, and Typer parses the command line and explains the error.
``tests/cli/test_fast.py`` checks that both parse command lines in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podbot.cli.argv_scan import Scan, plain_switches, scan
from podbot.cli.commands import CarryOut, Command, find
from podbot.cli.globals import Globals
from podbot.cli.options import COMMON
from podbot.errors import InvalidValue
from podbot.frozen import Frozen


class Line(Frozen):
    """A parsed command line. ``values``: the command's arguments and options by name."""

    command: Command
    g: Globals
    values: dict[str, Any]


def parse(argv: list[str], carry_out: CarryOut | None = None) -> Callable[[], int] | None:
    """What to run for ``argv`` (without the program's name), or None when Typer has to read it.

    ``carry_out``: what is done with the command, if not what it says.
    """
    line = read(argv)
    if line is None:
        return None
    Globals.current = line.g
    act = carry_out or Command.carry_out
    return lambda: act(line.command, line.g, line.values)


def read(argv: list[str]) -> Line | None:
    """Parse ``argv``; None if it has more than plain spellings."""
    before = scan(argv, COMMON, stop_at_word=True)
    command = find(before.words) if before is not None else None
    if before is None or command is None:
        return None
    tail = before.words[len(command.path) :]
    values: dict[str, Any] = {}
    if command.takes_words:
        at = tail.index("--") if "--" in tail else len(tail)
        tail, values["words"] = tail[:at], tuple(tail[at + 1 :])
    if command.ends_at_word:
        tail = plain_switches(tail, (*command.options, *command.common))
    after = scan(tail, (*command.options, *command.common), stop_at_word=command.ends_at_word)
    arguments = _arguments(after.words, command) if after is not None else None
    g = _globals(before, after) if after is not None else None
    if after is None or arguments is None or g is None:
        return None
    values |= arguments | {option.name: after.value(option) for option in command.options}
    return None if command.mistake(values) else Line(command, g, values)


def _arguments(words: list[str], command: Command) -> dict[str, Any] | None:
    """The arguments' values; None if a required one is missing or blank, or if there are too many."""
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
    """Merge options from before and after the command's name; the later one counts. None for an invalid value."""
    try:
        first, second = (
            Globals(**{option.name: found.value(option) for option in COMMON}) for found in (before, after)
        )
    except InvalidValue:
        return None
    return first.under(second)
