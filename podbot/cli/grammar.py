"""Extensions of Typer's parser.

For ``run`` and ``host``, the words after the first ``--`` are for the agent, and the parser never sees them."""

from __future__ import annotations

from typing import Any

from typer import BadParameter
from typer.core import TyperCommand

from podbot.cli.argv_scan import plain_switches
from podbot.cli.commands import find

# The base of the parser's errors, click's ClickException: Typer includes its own click and exports only this class.
PARSER_ERROR: type[Exception] = BadParameter.__mro__[2]
_BEHIND = "podbot.behind"


class PlainCommand(TyperCommand):
    """Shows its usage as the table has it: the parser adds braces, brackets and dots to the arguments' names."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The parts of the help's first line."""
        command = find(ctx.command_path.split()[1:])
        return list(command.grammar) if command is not None else []


class RunsCommand(PlainCommand):
    """Also accepts switches as podman takes them; its options end at the first word."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words behind the command's name."""
        command = find(ctx.command_path.split()[1:])
        if command is not None:
            args = plain_switches(args, (*command.options, *command.common))
        return super().parse_args(ctx, args)


class SessionCommand(PlainCommand):
    """Removes the agent's words before parsing, because the parser would lose the position of ``--``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words before ``--``; :func:`words_behind` returns the rest."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_BEHIND] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])


def words_behind(ctx: Any) -> list[str]:
    """The words after ``--``."""
    return list(ctx.meta.get(_BEHIND, ()))
