"""Typer's commands, made from the table: for the help, for errors, and for command lines that the fast path rejects."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any

import typer

from podbot._version import __version__
from podbot.agents.registry import known
from podbot.cli.commands import COMMANDS, EPILOG, GROUPS, HELP_TEXT, CarryOut, Command
from podbot.cli.globals import Globals
from podbot.cli.grammar import PlainCommand, RunsCommand, SessionCommand, words_behind
from podbot.cli.options import COMMON, HELP, VERSION, Argument, Option
from podbot.config.models import AGENT_KINDS
from podbot.errors import OutputClosed

_TYPES = {
    "nothing": (bool, bool | None),
    "one": (str, str | None),
    "many": (list[str], list[str] | None),
    "number": (int, int | None),
    "count": (int, int),
}  # Option.takes -> the type of the value, and the type if it can be None
_COMMAND = "COMMAND …"  # in the usage of podbot and of its groups


@functools.cache
def root() -> Any:
    """The command `podbot` with all its subcommands. Building it takes 15 ms, so it is built once."""
    return parser(Command.carry_out)


def parser(carry_out: CarryOut) -> Any:
    """The same, with subcommands that call ``carry_out`` with the command and its values."""
    made = typer.main.get_command(_application(carry_out))
    _show_no_types(made)
    return made


def _show_no_types(command: Any) -> None:
    """In the help, newer Typers (0.29) add the Python type to the name of an argument: ``SESSION <str>``."""
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            parameter.display_type_rich = _no_type
    for one in getattr(command, "commands", {}).values():
        _show_no_types(one)


def _no_type(ctx: Any) -> str:  # noqa: ARG001 - Typer passes it by name
    return ""


def _application(carry_out: CarryOut) -> typer.Typer:
    app = typer.Typer(
        name="podbot",
        help=HELP_TEXT,
        epilog=EPILOG,
        no_args_is_help=True,
        subcommand_metavar=_COMMAND,
        pretty_exceptions_enable=False,
        add_completion=False,  # `podbot completion` needs no Typer
        rich_markup_mode=None,
        context_settings={"help_option_names": list(HELP)},
    )
    app.callback()(_main())
    groups: dict[tuple[str, ...], typer.Typer] = {(): app}
    for command in COMMANDS:
        group = command.path[:-1]
        if group not in groups:
            groups[group] = _group(app, group[0])
        groups[group].command(
            command.path[-1],
            cls=_class(command),
            help=_filled(command.help),
            context_settings={"allow_interspersed_args": False} if command.ends_at_word else None,
        )(_callback(command, carry_out))
    return app


def _group(app: typer.Typer, name: str) -> typer.Typer:
    made = typer.Typer(
        name=name, help=GROUPS[name], no_args_is_help=True, subcommand_metavar=_COMMAND, rich_markup_mode=None
    )
    app.add_typer(made)
    return made


def _class(command: Command) -> Any:
    if command.takes_words:
        return SessionCommand
    if command.ends_at_word:
        return RunsCommand
    return PlainCommand


def _main() -> Callable[..., None]:
    """Reads the options before the command's name."""

    def main(ctx: typer.Context, version: bool, **values: Any) -> None:  # noqa: ARG001 - see _show_version
        ctx.obj = Globals.current = Globals(**values)

    version = typer.Option(*VERSION, callback=_show_version, is_eager=True, help="Show the version and exit.")
    last = _parameter("version", Annotated[bool, version], default=False)
    return _with_parameters(main, [*map(_option, COMMON), last])


def _show_version(value: bool) -> None:
    if value:
        typer.echo(f"podbot {__version__}")
        raise typer.Exit


def _callback(command: Command, carry_out: CarryOut) -> Callable[..., None]:
    """Calls ``carry_out`` with the same values as the fast path: merged globals, and the command's values by name."""

    def callback(ctx: typer.Context, **values: Any) -> None:
        after = Globals(**{option.name: values.pop(option.name) for option in command.common})
        Globals.current = g = (ctx.find_object(Globals) or Globals()).under(after)
        for name in many:
            values[name] = tuple(values[name] or ())
        if command.takes_words:
            values["words"] = tuple(words_behind(ctx))
        if mistake := command.mistake(values):
            raise typer.BadParameter(mistake)
        try:
            code = carry_out(command, g, values)
        except BrokenPipeError as exc:  # Typer would exit with 1 without a message
            raise OutputClosed(stream="stdout") from exc
        raise typer.Exit(code)

    many = {argument.name for argument in command.arguments if argument.many}
    many |= {option.name for option in command.options if option.takes == "many"}
    own = [*map(_argument, command.arguments), *map(_option, command.options)]
    return _with_parameters(callback, [*own, *map(_option, command.common)])


def _filled(text: str) -> str:
    """``text`` with ``{agents}`` replaced by a choice of all agents, and ``{known}`` by a list of installable ones."""
    return text.replace("{agents}", "|".join(AGENT_KINDS)).replace("{known}", ", ".join(known()))


def _argument(argument: Argument) -> inspect.Parameter:
    info = typer.Argument(
        metavar=argument.metavar or None,
        help=argument.help or None,
        hidden=argument.hidden,
    )
    kind: Any = list[str] if argument.many else str
    if argument.required:
        return _parameter(argument.name, Annotated[kind, info], default=inspect.Parameter.empty)
    return _parameter(argument.name, Annotated[kind | None, info], default=None)


def _option(option: Option) -> inspect.Parameter:
    pairs = (
        [f"{on}/{off}" for on, off in zip(option.spelled, option.off, strict=True)] if option.off else option.spelled
    )
    counted: dict[str, Any] = {"count": True, "show_default": False} if option.takes == "count" else {}
    info = typer.Option(
        *pairs,
        metavar=_filled(option.metavar) or None,
        help=option.help,
        min=option.least,
        max=option.most,
        **counted,
    )
    default = option.absent or None if option.takes == "many" else option.absent
    return _parameter(option.name, Annotated[_TYPES[option.takes][default is None], info], default=default)


def _parameter(name: str, annotation: Any, *, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)


def _with_parameters(function: Callable[..., None], parameters: list[inspect.Parameter]) -> Callable[..., None]:
    """``function`` with a signature of these parameters, which is all that Typer reads."""
    context = _parameter("ctx", typer.Context, default=inspect.Parameter.empty)
    function.__signature__ = inspect.Signature([*parameters, context])  # type: ignore[attr-defined]
    function.__annotations__ = {one.name: one.annotation for one in (*parameters, context)}
    return function
