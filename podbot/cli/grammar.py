"""Extensions of Typer's parser.

For ``run`` and ``host``, the words after the first ``--`` are for the agent, and the parser never sees them."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from typer import Abort, BadParameter
from typer.core import TyperCommand

from podbot.cli.argv_scan import plain_switches
from podbot.cli.commands import find
from podbot.cli.operands import Operands, read_operands
from podbot.errors import UsageError

__all__ = ["PARSER_ERROR", "Abort", "PlainCommand", "SessionCommand", "usage_error", "words_behind"]

# The base of the parser's errors, click's ClickException: Typer includes its own click and exports only this class.
PARSER_ERROR: type[Exception] = BadParameter.__mro__[2]
_BEHIND = "podbot.behind"
_LONGEST = 120  # characters of a command line that a message repeats


class PlainCommand(TyperCommand):
    """A command whose grammar the parser's own usage line does not show."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """The parts of the help's first line."""
        return list(_usage(ctx.command_path.split()[1:]))


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


def _usage(path: list[str]) -> tuple[str, ...]:
    command = find(path)
    return command.usage if command is not None else ()


def words_behind(ctx: Any) -> list[str]:
    """The words after ``--``."""
    return list(ctx.meta.get(_BEHIND, ()))


def usage_error(exc: Any, argv: Sequence[str]) -> UsageError:
    """Converts an error that the parser found in ``argv`` to one of podbot's."""
    context = getattr(exc, "ctx", None)
    command = context.command_path if context is not None else "podbot"
    missing = type(exc).__name__ == "NoArgsIsHelpError"
    reason = "a command is missing" if missing else exc.format_message()
    unknown = type(exc).__name__ == "NoSuchOption" and isinstance(getattr(context, "command", None), SessionCommand)
    hint = _agents_option(context, exc.option_name, argv) if unknown else ""
    return UsageError(command=command, reason=" ".join(reason.split()).rstrip("."), hint=hint)


def _agents_option(context: Any, option: str, argv: Sequence[str]) -> str:
    """A remedy with the command line to type if the unknown ``option`` is meant for the agent."""
    end = argv.index("--") if "--" in argv else len(argv)
    known = {name for parameter in context.command.params for name in parameter.opts}
    exact = [at for at in range(end) if _spells(argv[at], option)]
    line = f"{context.command_path} {' '.join(_usage(context.command_path.split()[1:])[1:])}"
    if exact:
        before, words = argv[: exact[0]], [*argv[exact[0] : end], *argv[end + 1 :]]
        typed = shlex.join(["podbot", *before, "--", *words])
        # The words after an unknown option may be its value or podbot's own, which only the operator knows.
        mixed = any(word.partition("=")[0] in known or _is_operand(word) for word in argv[exact[0] + 1 : end])
        if not mixed and typed.isprintable() and len(typed) <= _LONGEST:
            line = typed
    return f"Options for the agent follow --: `{line}`."


def _spells(word: str, option: str) -> bool:
    """Whether ``word`` is ``option``, also as ``--model=opus`` or ``-phi``."""
    return word.partition("=")[0] == option or (not option.startswith("--") and word.startswith(option))


def _is_operand(word: str) -> bool:
    try:
        return read_operands([word]) != Operands()
    except UsageError:
        return False
