"""What Typer's parser does not do by itself.

Of ``run`` and ``host``, what stands behind the first ``--`` is for the agent, and the parser never sees it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any

from typer import Abort, BadParameter
from typer.core import TyperCommand

from podbot.cli.commands import find
from podbot.cli.operands import Operands, read_operands
from podbot.errors import UsageError

__all__ = ["PARSER_ERROR", "Abort", "PlainCommand", "SessionCommand", "usage_error", "words_behind"]

# The base of the parser's errors, click's ClickException: Typer carries a click of its own, and names only this one.
PARSER_ERROR: type[Exception] = BadParameter.__mro__[2]
_BEHIND = "podbot.behind"
_LONGEST = 120  # characters of a command line that a message repeats


class PlainCommand(TyperCommand):
    """A command whose grammar the parser's own usage line would not show."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the base class's signature
        """For the first line of the help."""
        return list(_usage(str(self.name)))


class SessionCommand(PlainCommand):
    """Takes the words off before they are parsed: the parser would forget where ``--`` stood."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what stands before ``--``; :func:`words_behind` has the rest."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta[_BEHIND] = args[at + 1 :]
        return super().parse_args(ctx, args[:at])


def _usage(name: str) -> tuple[str, ...]:
    command = find([name])
    return command.usage if command is not None else ()


def words_behind(ctx: Any) -> list[str]:
    """The words behind ``--`` of a command of this class."""
    return list(ctx.meta.get(_BEHIND, ()))


def usage_error(exc: Any, argv: Sequence[str]) -> UsageError:
    """One of the parser's errors, which it found in ``argv``, as one of podbot's."""
    context = getattr(exc, "ctx", None)
    command = context.command_path if context is not None else "podbot"
    missing = type(exc).__name__ == "NoArgsIsHelpError"
    reason = "a command is missing" if missing else exc.format_message()
    unknown = type(exc).__name__ == "NoSuchOption" and isinstance(getattr(context, "command", None), SessionCommand)
    hint = _agents_option(context, exc.option_name, argv) if unknown else ""
    return UsageError(command=command, reason=" ".join(reason.split()).rstrip("."), hint=hint)


def _agents_option(context: Any, option: str, argv: Sequence[str]) -> str:
    """What to type when ``option``, which is none of podbot's, is meant for the agent."""
    end = argv.index("--") if "--" in argv else len(argv)
    known = {name for parameter in context.command.params for name in parameter.opts}
    exact = [at for at in range(end) if _spells(argv[at], option)]
    line = f"{context.command_path} {' '.join(_usage(context.command.name)[1:])}"
    if exact:
        before, words = argv[: exact[0]], [*argv[exact[0] : end], *argv[end + 1 :]]
        typed = shlex.join(["podbot", *before, "--", *words])
        # What follows an unknown option is its value, or podbot's own: only the operator knows where that begins.
        mixed = any(word.partition("=")[0] in known or _is_operand(word) for word in argv[exact[0] + 1 : end])
        if not mixed and typed.isprintable() and len(typed) <= _LONGEST:
            line = typed
    return f"Options for the agent stand behind --: `{line}`."


def _spells(word: str, option: str) -> bool:
    """``--model`` and ``--model=opus``; ``-p`` and ``-phi``."""
    return word.partition("=")[0] == option or (not option.startswith("--") and word.startswith(option))


def _is_operand(word: str) -> bool:
    try:
        return read_operands([word]) != Operands()
    except UsageError:
        return False
