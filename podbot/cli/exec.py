"""``podbot exec``: a command in a running sandbox. On the fast path, so without Typer."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from podbot.cli.attach import attached, both_terminals
from podbot.cli.globals import Globals
from podbot.cli.report import Reporter
from podbot.cli.signals import handled
from podbot.cli.variables import variables
from podbot.errors import InvalidValue, UsageError
from podbot.events import Event
from podbot.exec_spec import ExecSpec
from podbot.execution.codes import exit_code
from podbot.execution.runner import ExecIO, ExecStatus
from podbot.frozen import Frozen
from podbot.launch.terminal_variables import terminal_variables

# The command of `podbot exec SESSION` alone: one exec both chooses and starts the shell.
SHELL = ("/bin/sh", "-c", "command -v bash >/dev/null 2>&1 && exec bash; exec sh")
_COMMAND = "podbot exec"
_NOT_FOUND = 127
_OF_SHELLS = ("cd", "export", "source", ".", "alias", "unset", "set", "exec", "ulimit", "umask", "read", "eval")


class ExecArgs(Frozen):
    """The parsed command line of ``podbot exec``.

    ``tty``: None means that the streams decide. ``interactive``: False means no input, None the default.
    """

    session: str
    command: tuple[str, ...] = ()
    detach: bool = False
    workdir: str | None = None
    env: tuple[str, ...] = ()
    user: str | None = None
    env_files: tuple[str, ...] = ()
    tty: bool | None = None
    interactive: bool | None = None


def command_words(behind: Sequence[str]) -> tuple[str, ...]:
    """The command after SESSION, without one ``--`` in front of it. Raises UsageError."""
    if list(behind) == ["--"]:  # in a script whose list of words is empty, a shell would wait for input
        raise UsageError(
            command=_COMMAND, reason="there is no command after --", hint="`podbot exec SESSION` alone opens a shell."
        )
    return tuple(behind[1:] if behind and behind[0] == "--" else behind)


def invoke(g: Globals, **values: Any) -> int:
    """Run with the command line's values; returns podbot's exit code. Raises UsageError."""
    return execute(g, arguments(**values))


def open_shell(
    g: Globals, *, session: str, user: str | None, workdir: str | None, env: tuple[str, ...], env_file: tuple[str, ...]
) -> int:
    """Open a shell in a session; returns podbot's exit code, which is the shell's."""
    return execute(g, ExecArgs(session, workdir=workdir, env=env, user=user, env_files=env_file))


def arguments(
    *,
    session: str,
    command: tuple[str, ...],
    detach: bool,
    interactive: bool | None,
    tty: bool | None,
    user: str | None,
    workdir: str | None,
    env: tuple[str, ...],
    env_file: tuple[str, ...],
) -> ExecArgs:
    """The command line's values in one. Raises UsageError."""
    return ExecArgs(session, command_words(command), detach, workdir, env, user, env_file, tty, interactive)


def execute(g: Globals, args: ExecArgs) -> int:
    """Run it; returns podbot's exit code."""
    from podbot.api import sessions as api

    environ = os.environ
    given = variables([_value(pair) for pair in args.env], [_value(path) for path in args.env_files], environ)
    tty = _terminal(args)
    terminal, choices = terminal_variables(environ) if tty else ({}, ())
    choices = () if "TERM" in given.env else choices
    spec = _spec(args, terminal | given.env, tty=tty, choices=choices)
    config = api.load_config(g.load_options(environ, {}, {}))
    emit = Reporter(g)
    if given.taken:
        text = f"passing variables of this host that --env-file names: {', '.join(given.taken)}"
        emit(Event("notice", "exec.variables", text, {"names": list(given.taken)}))
    if notice := _without_effect(args, tty=spec.tty):
        emit(Event("notice", "exec.streams", notice))

    with handled(tty=spec.tty) as wake:

        def work(io: ExecIO) -> ExecStatus:
            return api.exec_(config, args.session, spec, io=io, wake=wake, environ=environ, emit=emit)

        status = work(ExecIO(None, None, None)) if args.detach else attached(work, tty=spec.tty, wake=wake)
    if status.code == _NOT_FOUND and (text := _misread(args)):
        emit(Event("notice", "exec.not_found", text, {"program": args.command[0]}))
    return exit_code(status.code)


def _misread(args: ExecArgs) -> str:
    """What was probably meant by a program that no sandbox has; empty for another, which can end with that status."""
    from podbot.cli.repeating import is_repeatable

    program, *others = args.command or ("",)
    typed = f"podbot exec {args.session}"
    if any(map(str.isspace, program)):
        if others or not is_repeatable(program.split()):
            return "no program has blanks in its name: write each word by itself, or `sh -c 'LINE'`"
        return f"no program has blanks in its name: write `{typed} {program}`, or `sh -c 'LINE'` for a shell's line"
    if program.startswith("-"):
        return "podbot's options stand before SESSION, and a command follows it: `podbot exec -it SESSION bash`"
    if program in _OF_SHELLS:
        option = ". `-w DIRECTORY` in front of SESSION chooses where a command starts" if program == "cd" else ""
        return f"{program} is a word of shells and no program: write `{typed} sh -c 'LINE'`{option}"
    return ""


def _spec(args: ExecArgs, env: dict[str, str], *, tty: bool, choices: tuple[str, ...]) -> ExecSpec:
    if args.detach and not args.command:
        raise UsageError(command=_COMMAND, reason="-d needs a command", hint="A shell without streams has no use.")
    return ExecSpec(
        command=args.command or SHELL,
        workdir=_absolute(_not_blank("workdir", args.workdir)),
        env=env,
        secrets=frozenset(env),
        tty=tty,
        stdin=not args.detach and args.interactive is not False,
        user=_not_blank("user", args.user),
        term_choices=choices,
    )


def _absolute(workdir: str | None) -> str | None:
    if workdir is not None and not workdir.startswith("/"):
        hint = "Name a directory of the sandbox, such as /workspace."
        raise InvalidValue(
            field="workdir", origin="flag --workdir", reason=f"{workdir!r} does not begin with /", hint=hint
        )
    return workdir


def _terminal(args: ExecArgs) -> bool:
    return args.tty is not False and not args.detach and both_terminals()


def _without_effect(args: ExecArgs, *, tty: bool) -> str:
    """A sentence on options without effect; empty if there are none."""
    if args.detach and (args.tty or args.interactive):
        return "-d attaches no streams: -i and -t have no effect"
    if args.tty and not tty:
        return "the command gets no terminal (-t): podbot's stdin and stdout are not both terminals"
    return ""


def _value(text: str) -> str:
    """``text`` without a leading ``=``: podman and docker read ``-u=root`` as ``-u root``."""
    return text.removeprefix("=")


def _not_blank(field: str, text: str | None) -> str | None:
    """Refuse a blank value, as an unset variable in a script leaves: the default was probably not intended."""
    if text is None:
        return None
    if not (value := _value(text)).strip():
        raise InvalidValue(field=field, origin=f"flag --{field}", reason="it is blank", hint="Leave the option out.")
    return value
