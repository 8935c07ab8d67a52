"""``podbot run``: runs an agent in a sandbox, on the operator's directory or on a clone."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Unpack

from podbot.cli.attach import attached
from podbot.cli.globals import Globals
from podbot.cli.interaction import Streams, offers_setup, works_here
from podbot.cli.operands import AGENT, PATH, read_operands, refuse_twice
from podbot.cli.repeating import repeated
from podbot.cli.report import Reporter
from podbot.cli.selection import Given, Selection, check_plan_json, has_option, selected, show
from podbot.cli.signals import handled
from podbot.config.models import AppConfig
from podbot.errors import GuardTripped, PodbotError, UsageError
from podbot.execution.codes import exit_code
from podbot.execution.runner import ExecIO, ExecStatus
from podbot.frozen import replace
from podbot.guard.marks import ACTS_AT, GIT_OR_SHELL, GuardReport

if TYPE_CHECKING:
    from podbot.session.run import SessionResult

_LONGEST = 80  # characters of a command line that a message repeats
HERE = "the current directory"  # the name in a value's origin


def invoke(g: Globals, *, operands: tuple[str, ...], guard_exit: bool, logs: bool, **given: Unpack[Given]) -> int:
    """Run with the command line's values; returns podbot's exit code. Raises UsageError."""
    check_plan_json("podbot run", given)
    own = guard_exit or logs or g != Globals()
    typed = read_operands(operands, options=own or has_option(given), argv=Globals.typed)
    alone = not own and not has_option(given, but="publish") and len(given["publish"]) == 1
    general = "podbot run [AGENT] [PATH]"
    line = repeated(["podbot", "run", *operands], general, _LONGEST) if alone else general
    refuse_twice(typed, agent=given["agent"], workspace=given["workspace"], repo=given["repo"])
    given["agent"] = typed.agent or given["agent"]
    given["workspace"] = typed.path or given["workspace"]
    args = selected(
        given,
        {"--logs": ("session.logs", True if logs else None)},
        agent_flag=AGENT if typed.agent else "--agent",
        workspace_flag=PATH if typed.path else "--workspace",
        line=line,
    )
    return execute(g, replace(args, guard_exit=guard_exit))


def execute(g: Globals, args: Selection) -> int:
    """Run the session; returns podbot's exit code, which is the agent's when it ran.

    Where no session can start for want of an image or of packages, a person at a terminal is asked, once, whether
    podbot shall set up.
    """
    streams = Streams.of_process()
    try:
        return _run(g, args, streams)
    except PodbotError as exc:
        if not offers_setup(streams, log_format=g.log_format, dry_run=args.dry_run):
            raise
        from podbot.cli.offer import set_up

        if not set_up(g, args, exc):
            raise
    return _run(g, args, streams)


def _run(g: Globals, args: Selection, streams: Streams) -> int:
    from podbot.api import sessions as api

    config = api.load_config(g.load_options(os.environ, args.overrides, args.flags))
    tty = streams.attach
    if works_here(streams, config, clone=bool(args.repo or args.branch), flags=args.flags):
        args = args.works_on(os.curdir, HERE)
        config = api.load_config(g.load_options(os.environ, args.overrides, args.flags))
    request = args.request(tty=tty)
    if args.dry_run:
        show(api.plan(config, request), as_json=args.as_json)
        return 0
    check_guard_exit(config, asked=args.guard_exit)
    emit = Reporter(g, progress=True)
    found: list[SessionResult] = []

    with handled(tty=tty) as wake:

        def work(io: ExecIO) -> ExecStatus:
            try:
                result = api.run(config, request, io=io, wake=wake, emit=emit)
                found.append(result)
                return result.status
            finally:
                emit.clear()

        status = attached(work, tty=tty, wake=wake, own_line=True)
    ran = not found or found[0].agent_ran
    if args.guard_exit and ran and not config.workspace.read_only:
        check_left(found[0].guard if found else None, config.workspace.host_path or "")
    return exit_code(status.code)


def check_guard_exit(config: AppConfig, *, asked: bool) -> None:
    """Raise UsageError for ``--guard-exit`` if the guard does not run, since the exit code would then be misleading."""
    reason = ""
    if config.workspace.source != "host_mount":
        reason = "--guard-exit with a clone, which is not in a directory of this host"
    elif config.workspace.guard == "off":
        reason = f"--guard-exit with workspace.guard = off ({config.origin('workspace.guard')})"
    if asked and reason:
        raise UsageError(command="podbot run", reason=reason, hint="Leave one of them out.")


def check_left(report: GuardReport | None, workspace: str) -> None:
    """Raise GuardTripped for findings that act at `git status` or `cd`, and for an incomplete scan."""
    first = [found.path for found in report.findings if found.danger == GIT_OR_SHELL] if report is not None else []
    if first:
        more = f" and {len(first) - 1} more act" if first[1:] else " acts"
        raise GuardTripped(workspace=workspace, reason=f"{first[0][:200]}{more} {ACTS_AT[GIT_OR_SHELL]}")
    if report is None or report.gaps or report.more:
        raise GuardTripped(workspace=workspace, reason="podbot could not check all of it")
