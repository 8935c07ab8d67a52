"""``podbot run``: an agent in a sandbox, on the operator's directory or on a clone."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from typing import Any

from podbot.cli.attach import attached, both_terminals
from podbot.cli.globals import Globals
from podbot.cli.report import Reporter, printable
from podbot.cli.signals import handled
from podbot.execution.codes import exit_code
from podbot.execution.runner import ExecIO, ExecStatus
from podbot.launch.types import LaunchPlan, LaunchRequest


@dataclass(frozen=True)
class RunArgs:
    """The command line of ``podbot run``, parsed. ``overrides`` and ``flags``: see LoadOptions."""

    words: tuple[str, ...] = ()
    name: str | None = None
    trusted_workspace: bool = False
    repo: str | None = None
    branch: str | None = None
    dry_run: bool = False
    as_json: bool = False
    overrides: dict[str, Any] = field(default_factory=dict)
    flags: dict[str, str] = field(default_factory=dict)


def execute(g: Globals, args: RunArgs) -> int:
    """Run the session; returns podbot's exit code, which is the agent's when it ran."""
    from podbot import api

    config = api.load_config(g.load_options(os.environ, args.overrides, args.flags))
    tty = both_terminals()
    request = LaunchRequest(
        subcommand="run",
        name=args.name,
        words=args.words,
        tty=tty,
        trusted_workspace=args.trusted_workspace,
        repo=args.repo,
        branch=args.branch,
    )
    if args.dry_run:
        _show(api.plan(config, request), as_json=args.as_json)
        return 0
    emit = Reporter(g, progress=True)

    with handled(tty=tty) as wake:

        def work(io: ExecIO) -> ExecStatus:
            try:
                return api.run(config, request, io=io, wake=wake, emit=emit).status
            finally:
                emit.clear()

        return exit_code(attached(work, tty=tty).code)


def _show(plan: LaunchPlan, *, as_json: bool) -> None:
    import json

    from podbot.launch.describe import describe

    described = describe(plan)
    if as_json:
        sys.stdout.write(json.dumps(described, indent=2) + "\n")
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.tree import Tree

    tree = Tree(f"[bold]{escape(plan.session)}[/bold]  (nothing was created)")
    _grow(tree, described)
    # Folded paths cannot be searched for: lines are broken on a terminal only.
    Console(width=None if sys.stdout.isatty() else 10_000).print(tree)


def _grow(tree: Any, value: Any) -> None:
    from rich.markup import escape

    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        label = f"[cyan]{escape(str(key))}[/cyan]"
        if isinstance(item, (dict, list, tuple)) and item:
            _grow(tree.add(label), item)
        else:
            tree.add(f"{label}: {escape(printable(str(item)))}")
