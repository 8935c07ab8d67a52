"""``podbot host``: serves an agent in a sandbox to an editor over a protocol. On the fast path, so without Typer."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Unpack

from podbot.cli import stdio_guard
from podbot.cli.globals import Globals
from podbot.cli.report import Reporter
from podbot.cli.selection import Given, Selection, check_plan_json, selected, show
from podbot.cli.signals import handled
from podbot.errors import NotATerminalCommand
from podbot.execution.codes import exit_code
from podbot.execution.runner import ExecIO
from podbot.streams.terminal import is_terminal

if TYPE_CHECKING:
    from podbot.execution.hosted_end import HostedLimits


def invoke(
    g: Globals,
    *,
    operands: tuple[str, ...],
    acp_delegation: str | None,
    frame_limit: str | None,
    transcript: str | None,
    limits: HostedLimits | None = None,
    **given: Unpack[Given],
) -> int:
    """Run with the command line's values; returns podbot's exit code. Raises UsageError.

    ``limits``: if not podbot's own.
    """
    check_plan_json("podbot host", given)
    if operands:
        from podbot.cli.operands import refuse_words

        refuse_words(operands)
    keys = {
        "--acp-delegation": ("agent.delegation", acp_delegation),
        "--frame-limit": ("agent.frame_limit", frame_limit),
    }
    return execute(g, selected(given, keys, line="podbot host [OPTIONS]"), transcript, limits)


def execute(g: Globals, args: Selection, transcript: str | None = None, limits: HostedLimits | None = None) -> int:
    """Serve the client on stdin and stdout; returns podbot's exit code, which is the agent's when it ran."""
    from podbot.api import hosting, sessions

    if args.dry_run:
        config = sessions.load_config(g.load_options(os.environ, args.overrides, args.flags))
        show(sessions.plan(config, args.request(tty=False), subcommand="host"), as_json=args.as_json)
        return 0
    streams = stdio_guard.engage()
    for name, fd in (("stdin", streams.stdin), ("stdout", streams.stdout)):
        if is_terminal(fd):
            raise NotATerminalCommand(stream=name)
    config = sessions.load_config(g.load_options(os.environ, args.overrides, args.flags))
    # The agent's stderr becomes events too, so that no line of it looks like podbot's and lines are not mixed.
    io = ExecIO(streams.stdin, streams.stdout, None)
    emit = Reporter(g, progress=True, beside_protocol=True)
    with contextlib.closing(emit), handled(tty=False) as wake:
        request = args.request(tty=False)
        result = hosting.host_until_end(
            config, request, io=io, wake=wake, transcript=transcript, emit=emit, limits=limits
        )
    return exit_code(result.status.code)
