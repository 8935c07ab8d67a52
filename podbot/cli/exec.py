"""``podbot exec``: a command in a running sandbox. On the fast lane: no Typer here."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from podbot.cli.attach import attached, both_terminals
from podbot.cli.globals import Globals
from podbot.cli.report import Reporter
from podbot.cli.signals import handled
from podbot.config.checks import is_variable_name
from podbot.errors import InvalidValue
from podbot.execution.codes import exit_code
from podbot.execution.runner import ExecIO, ExecStatus
from podbot.launch.command import ExecSpec


@dataclass(frozen=True)
class ExecArgs:
    """The command line of ``podbot exec``, parsed."""

    session: str
    command: tuple[str, ...]
    detach: bool = False
    workdir: str | None = None
    env: tuple[str, ...] = ()


def execute(g: Globals, args: ExecArgs) -> int:
    """Run it; returns podbot's exit code."""
    from podbot import api

    environ = os.environ
    config = api.load_config(g.load_options(environ, {}, {}))
    tty = not args.detach and both_terminals()
    env = _environment(args.env)
    if tty and "TERM" in environ:
        env.setdefault("TERM", environ["TERM"])
    spec = ExecSpec(
        command=args.command, workdir=args.workdir, env=env, secrets=frozenset(env), tty=tty, stdin=not args.detach
    )
    emit = Reporter(g)

    with handled(tty=tty) as wake:

        def work(io: ExecIO) -> ExecStatus:
            return api.exec_(config, args.session, spec, io=io, wake=wake, environ=environ, emit=emit)

        status = work(ExecIO(None, None, None)) if args.detach else attached(work, tty=tty)
    return exit_code(status.code)


def _environment(pairs: Sequence[str]) -> dict[str, str]:
    """``K=V``, or ``K`` for the host's own value, which keeps a secret out of podbot's argv."""
    env = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not is_variable_name(name) or (not equals and name not in os.environ):
            reason = f"{name} is not set here" if is_variable_name(name) else f"{name!r} cannot name a variable"
            raise InvalidValue(field="env", origin="flag -e", reason=reason, hint="Write -e NAME=VALUE.")
        env[name] = value if equals else os.environ[name]
    return env
