"""``podbot history``: list and remove the conversations that are kept on this host."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from podbot.cli.globals import Globals
from podbot.cli.interaction import confirm
from podbot.cli.signals import end_on_signals

if TYPE_CHECKING:
    from podbot.management.history_list import ProjectHistory


def ls(g: Globals, *, as_json: bool) -> int:
    """List the projects whose conversations are kept; returns podbot's exit code."""
    from podbot.api.conversations import history

    found = history()
    if as_json:
        import json
        from dataclasses import asdict

        sys.stdout.write(json.dumps([asdict(project) for project in found], indent=2) + "\n")
    elif found:
        _table(found)
    else:
        _say_nothing_kept(g)
    return 0


def mistake(*, project: str | None, all_: bool, agent: str | None, yes: bool) -> str:  # noqa: ARG001 - values by name
    """An error about the combination of values, or empty."""
    if project is not None and all_:
        return "PROJECT and --all exclude each other"
    if project is None and not all_:
        return "name a PROJECT, or use --all; `podbot history ls` lists them"
    return ""


def rm(g: Globals, *, project: str | None, all_: bool, agent: str | None, yes: bool) -> int:  # noqa: ARG001
    """Remove conversations permanently; returns podbot's exit code."""
    from podbot.api import conversations
    from podbot.cli.report import Reporter
    from podbot.config.load import load_config
    from podbot.visible_text import printable

    if agent is not None:
        _check_agent(agent)
    chosen = conversations.history() if project is None else [_found(project, agent)]
    chosen = [found for found in chosen if _has(found, agent)]
    if not chosen:
        _say_nothing_kept(g)
        return 0
    if not yes:
        lines = [f"{found.project}: {agent or _agents(found)}" for found in chosen]
        confirm(lines, "Remove these conversations permanently?")
    config = load_config(g.load_options(os.environ, {}, {}))
    end_on_signals()
    emit = Reporter(g, late=True)
    try:
        removed = conversations.remove_history(config, chosen, agent=agent, emit=emit)
    finally:
        emit.clear()
    for found in removed:
        sys.stdout.write(printable(found.project) + "\n")
    return 0


def _say_nothing_kept(g: Globals) -> None:
    from podbot.cli.report import say

    if not g.quiet:
        say("podbot: no conversations are kept")


def _check_agent(agent: str) -> None:
    """Raise InvalidValue, which suggests the nearest agent, for an unknown one."""
    from podbot.cli.repeating import shown_word
    from podbot.config.models import AGENT_KINDS
    from podbot.config.schema import nearest
    from podbot.errors import InvalidValue

    if agent not in AGENT_KINDS:
        near = nearest(agent, AGENT_KINDS)
        hint = f"Did you mean {near}?" if near else "`podbot history ls` lists the projects with their agents."
        reason = f"{shown_word(agent)} is not one of {', '.join(AGENT_KINDS)}"
        raise InvalidValue(field="agent", origin="flag --agent", reason=reason, hint=hint)


def _found(project: str, agent: str | None) -> ProjectHistory:
    """Find a project. Raises HistoryNotFound if it has no kept conversations, or none with ``agent``."""
    from podbot.api import conversations
    from podbot.errors import HistoryNotFound

    try:
        found = conversations.find_history(project)
    except HistoryNotFound:
        raise HistoryNotFound(project=_looked_for(project)) from None
    if not _has(found, agent):
        raise HistoryNotFound(project=found.project, agent=agent or "")
    return found


def _has(found: ProjectHistory, agent: str | None) -> bool:
    return agent is None or agent in {part.agent for part in found.agents}


def _looked_for(project: str) -> str:
    """The name that was searched for: OWNER/NAME and an address unchanged, a path with its links resolved."""
    typed_as_path = project.startswith(("/", ".", "~")) or "/" not in project
    if typed_as_path or os.path.lexists(project):
        return os.path.realpath(os.path.expanduser(project))
    return project


def _agents(found: ProjectHistory) -> str:
    return ", ".join(part.agent for part in found.agents) or "none"


def _table(found: Sequence[ProjectHistory]) -> None:
    import time

    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from podbot.cli.image import age
    from podbot.visible_text import printable

    console = Console(highlight=False)
    if not console.is_terminal:  # a pipe has no width, so nothing must be cut off
        console = Console(highlight=False, width=10_000)
    table = Table(box=None, pad_edge=False)
    for title in ("PROJECT", "AGENTS", "SIZE", "LAST USED"):
        table.add_column(title, overflow="fold")
    now = time.time()
    for project in found:
        size = f"{sum(part.bytes for part in project.agents) / 1e6:.1f} MB"
        known = all(part.complete for part in project.agents)
        used = f"{age(now - project.last_used)} ago" if project.last_used else ""
        cells = (project.project, _agents(project), size if known else f"over {size}", used)
        table.add_row(*(escape(printable(cell)) for cell in cells))
    console.print(table)
