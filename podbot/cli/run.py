"""``podbot run``: an agent in a sandbox, on the operator's directory or on a clone."""

from __future__ import annotations

import os

from podbot.cli.attach import attached, both_terminals
from podbot.cli.globals import Globals
from podbot.cli.report import Reporter
from podbot.cli.selection import Selection, show
from podbot.cli.signals import handled
from podbot.config.models import AppConfig
from podbot.execution.codes import exit_code
from podbot.execution.runner import ExecIO, ExecStatus

HERE = "the current directory"  # as a value's origin names it
CLONE_KEYS = ("workspace.depth", "workspace.submodules")


def execute(g: Globals, args: Selection) -> int:
    """Run the session; returns podbot's exit code, which is the agent's when it ran."""
    from podbot import api

    config = api.load_config(g.load_options(os.environ, args.overrides, args.flags))
    tty = both_terminals()
    if tty and _works_nowhere(config, args):
        args = args.works_on(os.curdir, HERE)
        config = api.load_config(g.load_options(os.environ, args.overrides, args.flags))
    request = args.request("run", tty=tty)
    if args.dry_run:
        show(api.plan(config, request), as_json=args.as_json)
        return 0
    emit = Reporter(g, progress=True)

    with handled(tty=tty) as wake:

        def work(io: ExecIO) -> ExecStatus:
            try:
                return api.run(config, request, io=io, wake=wake, emit=emit).status
            finally:
                emit.clear()

        return exit_code(attached(work, tty=tty, wake=wake, own_line=True).code)


def _works_nowhere(config: AppConfig, args: Selection) -> bool:
    """No workspace is named, by an argument, an option or the configuration; nor anything that only a clone has."""
    clone = args.repo or args.branch or not args.flags.keys().isdisjoint(CLONE_KEYS)
    return not clone and config.origin("workspace.host_path").kind == "default"
