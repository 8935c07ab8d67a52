"""What the shell completes: from podbot's own directories and the code alone, no engine is asked."""

from __future__ import annotations

import os
from collections.abc import Iterable

from podbot.config.models import AGENT_KINDS


def complete_session(incomplete: str) -> list[str]:
    """Names of sessions."""
    from podbot.session.sessions import sessions

    return _beginning(incomplete, (record.session for record in sessions(os.environ)))


def complete_agent(incomplete: str) -> list[str]:
    """Kinds of agents."""
    return _beginning(incomplete, AGENT_KINDS)


def complete_run_mode(incomplete: str) -> list[str]:
    """The modes that ``run`` takes."""
    return _beginning(incomplete, ["podbot"])


def complete_host_mode(incomplete: str) -> list[str]:
    """The modes that ``host`` takes."""
    return _beginning(incomplete, ["acp", "codex_app_server"])


def complete_project(incomplete: str) -> list[str]:
    """Directories whose conversations are kept, and repositories as OWNER/NAME and as addresses."""
    from podbot.management.history_list import list_history

    names = [found.project for found in list_history(os.environ)]
    short = ["/".join(name.split("/")[-2:]) for name in names if "://" in name]
    return _beginning(incomplete, [*short, *names])


def _beginning(incomplete: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]
