"""The commands of the table about the logins that podbot keeps."""

# Without `from __future__ import annotations`, like podbot.cli.options, because it is on the fast path.

from podbot.cli.command_type import Command
from podbot.cli.options import Argument, Option

_AGENTS = "claude, codex, gemini or opencode."

LOGIN_COMMANDS = (
    Command(
        ("login",),
        "login:invoke",
        """Log an agent in once, for all of its sessions.

        The agent's own login flow runs in a sandbox, and podbot keeps the login in its private state. Sessions of that
        agent get it instead of a copy of the login on this machine, which is neither needed nor changed.

        Example: podbot login codex

        Example: podbot login --list
        """,
        (Argument("agent", "[AGENT]", _AGENTS, completes="agent"),),
        (
            Option("list_", ("--list", "-l"), "Show which login the sessions of each agent get."),
            Option("as_json", ("--json",), "With --list: as a JSON array."),
        ),
        check="login:mistake",
        fast=True,
    ),
    Command(
        ("logout",),
        "login:logout",
        """Remove a login that `podbot login` made.

        It is removed from this machine and from running sessions. It is not revoked at its provider.

        Example: podbot logout codex
        """,
        (Argument("agent", "AGENT", _AGENTS, required=True, completes="agent"),),
        fast=True,
    ),
)
