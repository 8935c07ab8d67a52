"""The values that the shell's completion offers, from podbot's own directories and code; no engine is contacted.

:mod:`podbot.cli.completing` decides which values a command line needs, :mod:`podbot.cli.completion_scripts` asks for
them from a shell.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import get_args

from podbot.config.models import AGENT_KINDS, Profile

CUSTOM = "custom"  # the operator's own command, which podbot neither installs nor logs in
_STATES = ("running", "exited", "created", "paused")  # the engine's words, those that a session usually has


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


def after_operand(incomplete: str, before: Sequence[str]) -> list[str]:
    """Kinds of agents, unless one was named."""
    return [] if set(AGENT_KINDS) & {*before} else complete_agent(incomplete)


def complete_known_agent(incomplete: str) -> list[str]:
    """The agents that podbot knows: those that an image can have and that podbot can log in."""
    return [name for name in complete_agent(incomplete) if name != CUSTOM]


def complete_agents(incomplete: str) -> list[str]:
    """Agents for an image, as a list with commas: the last name of it."""
    named, comma, last = incomplete.rpartition(",")
    return [f"{named}{comma}{name}" for name in complete_known_agent(last) if name not in named.split(",")]


def complete_host_set(incomplete: str) -> list[str]:
    """Named sets of hosts, for rules of the filtered network."""
    from podbot.gateway.sets import SETS

    return _beginning(incomplete, [f"@{name}" for name in SETS])


def complete_github_auth(incomplete: str) -> list[str]:
    """Sources of GitHub's token: of the variables those that usually hold one, or after ``env:`` all."""
    names = _variables() if incomplete.startswith("env:") else [n for n in ("GH_TOKEN", "GITHUB_TOKEN") if _is_set(n)]
    return _beginning(incomplete, ["app", "gh", "none", *(f"env:{name}" for name in names)])


def complete_variable(incomplete: str) -> list[str]:
    """Names of the variables that podbot was started with, never their values."""
    return _beginning(incomplete, _variables())


def complete_filter(incomplete: str) -> list[str]:
    """Filters of ``ps``: keys, and after ``=`` the values that are known without an engine."""
    key, equals, value = incomplete.partition("=")
    if not equals:
        from podbot.cli.ps_format import FILTERS

        return _beginning(incomplete, [f"{name}=" for name in FILTERS])
    found = {"agent": complete_agent, "name": complete_session, "image": complete_image}.get(key)
    fixed = {"state": _STATES, "mode": ("podbot", "acp", "codex_app_server"), "orphan": _SWITCH, "detached": _SWITCH}
    return [f"{key}={word}" for word in (found(value) if found else _beginning(value, fixed.get(key, ())))]


def complete_template(incomplete: str) -> list[str]:
    """``json``, and fields for the template of ``ps``; the last one is continued."""
    from podbot.cli.ps_format import FIELDS

    before, begun, last = incomplete.rpartition("{{")
    fields = [f"{{{{.{field.capitalize()}}}}}" for field in FIELDS]
    if begun and "}}" not in last:
        return _beginning(incomplete, [f"{before}{field}" for field in fields])
    return _beginning(incomplete, ["json", *fields])


def after_key_value(incomplete: str, before: Sequence[str]) -> list[str]:
    """Values of a key of the configuration, if it has fixed ones."""
    from podbot.config.schema import KEYS

    key = before[-1] if before else ""
    if key in _OF_KEYS:
        return values(_OF_KEYS[key], incomplete)
    if key not in KEYS:
        return []
    return _beginning(incomplete, _SWITCH if KEYS[key].kind == "boolean" else KEYS[key].choices)


def after_daemon_word(incomplete: str, before: Sequence[str]) -> list[str]:
    """Names of sessions, and as the first word what ``token-daemon`` does with its unit."""
    from podbot.cli.commands import UNIT_WORDS

    if {*UNIT_WORDS} & {*before}:
        return []
    return [*([] if before else _beginning(incomplete, UNIT_WORDS)), *complete_session(incomplete)]


def complete_run_mode(incomplete: str) -> list[str]:
    """The modes of ``run``."""
    return _beginning(incomplete, ["podbot"])


def complete_host_mode(incomplete: str) -> list[str]:
    """The modes of ``host``."""
    return _beginning(incomplete, ["acp", "codex_app_server"])


def complete_mcp_backend(incomplete: str) -> list[str]:
    """The backends of ``mcp``."""
    return _beginning(incomplete, ["podman", "unsafe-local"])


def after_command(incomplete: str, before: Sequence[str]) -> list[str]:
    """Names of commands, and of those of a group that was named."""
    from podbot.cli.commands import COMMANDS

    at = len(before)
    paths = [command.path for command in COMMANDS if len(command.path) > at and command.path[:at] == (*before,)]
    return _beginning(incomplete, dict.fromkeys(path[at] for path in paths))


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


def _variables() -> list[str]:
    return sorted(name for name in os.environ if name.isascii() and name.isidentifier())


def _is_set(name: str) -> bool:
    return bool(os.environ.get(name))


_SWITCH = ("true", "false")
_OF_KEYS = {
    "agent.install": "agents",
    "github.auth": "github_auth",
    "image": "image",
    "network.allow": "host_set",
    "sandbox.network": "network",
    "sandbox.profile": "profile",
}
"""Kinds of value for ``config set``, where the key's type does not say all."""


def values(kind: str, incomplete: str, before: Sequence[str] = ()) -> list[str]:
    """The values of a kind that begin so; see ``completes`` of :class:`~podbot.cli.options.Option`.

    ``before``: the arguments before it, on which those of ``after_NAME`` depend.
    """
    depending = globals().get(f"after_{kind}")
    found: list[str] = depending(incomplete, before) if depending else globals()[f"complete_{kind}"](incomplete)
    return found
