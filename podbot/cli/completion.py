"""The values that the shell's completion offers, from podbot's own directories and code; no engine is contacted.

:mod:`podbot.cli.completing` decides which values a command line needs, :mod:`podbot.cli.completion_scripts` asks for
them from a shell.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import get_args

from podbot.config.models import AGENT_KINDS, Profile


def complete_session(incomplete: str) -> list[str]:
    """Names of sessions."""
    from podbot.session.directory import names_here

    return names_here(os.environ, incomplete)


def complete_report(incomplete: str) -> list[str]:
    """Names of sessions of which a report is kept."""
    from podbot.errors import PodbotError
    from podbot.session.kept_reports import reported_sessions

    try:
        return reported_sessions(os.environ, incomplete)
    except PodbotError:
        return []


def complete_copy(incomplete: str) -> list[str]:
    """Names of sessions, as they stand before a path inside."""
    return [f"{name}:" for name in complete_session(incomplete)]


def complete_shell(incomplete: str) -> list[str]:
    """The shells that podbot completes in."""
    return _beginning(incomplete, ["bash", "zsh", "fish"])


def complete_profile(incomplete: str) -> list[str]:
    """The sandbox's profiles for an agent."""
    return _beginning(incomplete, [profile for profile in get_args(Profile) if profile != "sealed"])


def complete_network(incomplete: str) -> list[str]:
    """Networks that every engine has."""
    from podbot.launch.network_choice import CHOICES

    return _beginning(incomplete, CHOICES)


def complete_image(incomplete: str) -> list[str]:
    """The configured image, and those that a podbot command built or listed last."""
    from podbot.config.load import load_config
    from podbot.config.models import LoadOptions
    from podbot.errors import PodbotError
    from podbot.images.image_names import image_names

    names = list(image_names(os.environ))
    try:
        configured = load_config(LoadOptions(environ=os.environ)).image
    except PodbotError:
        configured = None
    return _beginning(incomplete, dict.fromkeys([*([configured] if configured else []), *names]))


def complete_agent(incomplete: str) -> list[str]:
    """Kinds of agents."""
    return _beginning(incomplete, AGENT_KINDS)


def complete_run_mode(incomplete: str) -> list[str]:
    """The modes of ``run``."""
    return _beginning(incomplete, ["podbot"])


def complete_host_mode(incomplete: str) -> list[str]:
    """The modes of ``host``."""
    return _beginning(incomplete, ["acp", "codex_app_server"])


def complete_mcp_backend(incomplete: str) -> list[str]:
    """The backends of ``mcp``."""
    return _beginning(incomplete, ["podman", "unsafe-local"])


def complete_command(incomplete: str) -> list[str]:
    """Names of commands."""
    from podbot.cli.commands import COMMANDS

    return _beginning(incomplete, dict.fromkeys(command.path[0] for command in COMMANDS))


def complete_page(incomplete: str) -> list[str]:
    """Pages of the documentation."""
    from podbot.cli.docs import docs_dir, pages
    from podbot.errors import PodbotError

    try:
        return _beginning(incomplete, pages(docs_dir()))
    except PodbotError:
        return []


def complete_key(incomplete: str) -> list[str]:
    """Keys of the configuration."""
    from podbot.config.schema import KEYS

    return _beginning(incomplete, KEYS)


def complete_project(incomplete: str) -> list[str]:
    """Directories whose conversations are kept, and repositories as OWNER/NAME and as addresses."""
    from podbot.management.history_list import list_history

    names = [found.project for found in list_history(os.environ)]
    short = ["/".join(name.split("/")[-2:]) for name in names if "://" in name]
    return _beginning(incomplete, [*short, *names])


def _beginning(incomplete: str, words: Iterable[str]) -> list[str]:
    return [word for word in words if word.startswith(incomplete)]


def values(kind: str, incomplete: str) -> list[str]:
    """The values of a kind that begin so; see ``completes`` of :class:`~podbot.cli.options.Option`."""
    found: list[str] = globals()[f"complete_{kind}"](incomplete)
    return found
