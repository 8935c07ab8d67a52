"""``podbot login`` and ``podbot logout``: the logins that podbot keeps for agents."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from podbot.cli.globals import Globals
from podbot.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from podbot.config.models import AppConfig
    from podbot.execution.runner import ExecIO, ExecStatus
    from podbot.management.login_list import AgentLogin


_KEYS = {  # the variables by which each agent takes an API key
    "claude": "ANTHROPIC_API_KEY",
    "codex": "OPENAI_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "opencode": "OPENROUTER_API_KEY",
}


def mistake(*, agent: str | None, list_: bool, as_json: bool) -> str:
    """An error about the combination of values, or empty."""
    if list_ and agent is not None:
        return "AGENT and --list exclude each other"
    if as_json and not list_:
        return "--json is for --list"
    if agent is None and not list_:
        return "name an AGENT, or use --list"
    return ""


def invoke(g: Globals, *, agent: str | None, list_: bool, as_json: bool) -> int:  # noqa: ARG001 - values by name
    """Log an agent in, or list the logins; returns podbot's exit code."""
    from podbot.api import agent_logins as api

    if agent is None:
        from podbot.config.load import load_config

        _show(api.logins(load_config(g.load_options(os.environ, {}, {}))), as_json=as_json)
        return 0
    from podbot.cli.attach import attached, both_terminals
    from podbot.cli.report import Reporter
    from podbot.cli.signals import handled
    from podbot.launch.login_flow import checked_own_login

    checked_own_login(agent)
    if not both_terminals():
        line = f"podbot run {agent} . --no-creds -e {_KEYS.get(agent, 'API_KEY')}"
        hint = f"Run it on a terminal, or pass in an API key: `{line}`."
        raise UsageError(command="podbot login", reason="a login flow needs a terminal", hint=hint)
    config = flow_config(g, os.environ)
    emit = Reporter(g, progress=True)
    with handled(tty=True) as wake:

        def work(io: ExecIO) -> ExecStatus:
            try:
                return api.login(config, agent, io=io, wake=wake, emit=emit)
            finally:
                emit.clear()

        attached(work, tty=True, wake=wake, own_line=True)
    return 0


def flow_config(g: Globals, environ: Mapping[str, str]) -> AppConfig:
    """The configuration of a login's sandbox, which has no workspace, so no project's settings apply to it.

    Raises ConfigError subclasses.
    """
    from podbot.config.load import load_config

    return load_config(g.load_options(environ, {"workspace.source": "none"}, {}))


def logout(g: Globals, *, agent: str) -> int:
    """Remove the login that podbot keeps for an agent; returns podbot's exit code."""
    from podbot.api import agent_logins as api
    from podbot.cli.report import Reporter
    from podbot.events import Event
    from podbot.launch.login_flow import checked_own_login

    checked_own_login(agent)
    if not api.logout(agent):
        hint = "`podbot login --list` shows the logins that there are."
        raise UsageError(command="podbot logout", reason=f"podbot keeps no login of {agent}", hint=hint)
    text = f"removed the login of {agent} from this machine; to revoke it, use its provider's settings"
    Reporter(g, progress=True)(Event("notice", "login.removed", text, {"agent": agent}))
    return 0


def _show(found: list[AgentLogin], *, as_json: bool) -> None:
    if as_json:
        import json
        from dataclasses import asdict

        sys.stdout.write(json.dumps([asdict(login) for login in found], indent=2) + "\n")
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    from podbot.cli.remedies import with_options
    from podbot.visible_text import printable

    console = Console(highlight=False)
    if not console.is_terminal:  # a pipe has no width, so nothing must be cut off
        console = Console(highlight=False, width=10_000)
    table = Table(box=None, pad_edge=False)
    for title in ("AGENT", "LOGIN", ""):
        table.add_column(title, overflow="fold")
    for login in found:
        fix = f"fix: {with_options(login.advice)}" if login.advice else ""
        first, *below = [text for text in (_detail(login), login.note, fix) if text] or [""]
        table.add_row(login.agent, escape(printable(login.origin)), escape(printable(first)))
        for text in below:
            table.add_row("", "", escape(printable(text)))
    console.print(table)


def _detail(login: AgentLogin) -> str:
    import time

    from podbot.cli.image import age
    from podbot.launch.judged_logins import words

    if login.source == "none":
        return "" if login.advice else f"podbot login {login.agent}"  # the advice begins with that command
    of = login.path if login.since is None else f"renewed {age(time.time() - login.since)} ago"
    wrong = "" if login.state.works else words(login.state)
    return ": ".join(part for part in (of, wrong) if part)
