"""The agents that podbot knows, as data: kind x mode -> command, and what each needs, may get, and can log in with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from podbot.config.models import AgentConfig, AgentKind, AgentMode, Permissions
from podbot.errors import MissingRequired
from podbot.launch import bashenv
from podbot.launch.toml import inline_string

CUSTOM_HINT = "Name it after --: `podbot run --agent custom -- CMD ARGS…`, or set agent.command."
_KEY = "pass in an API key: agent.env_allowlist = "

Command = tuple[str, ...]
TRUSTED = "<trusted>"  # a word that ``command_for`` replaces by Codex's trust in the directory that it starts in


class Login(NamedTuple):
    """How a kind logs in from inside a sandbox, where no browser can be opened.

    ``variables``: each is a login, or says where one is. ``methods``: ids of the ACP login methods that can finish
    inside. ``advice``: what the operator does on the host instead.
    ``needed`` false: it has a model without a login.
    """

    variables: tuple[str, ...]
    methods: frozenset[str]
    advice: str
    needed: bool = True


class Agent(NamedTuple):
    """A kind of agent.

    ``commands`` and ``asking``: what starts it for agent.permissions = "full" and "ask". ``env`` is what it needs
    inside, ``permission_env`` what else it needs for either; neither the operator nor a repository can change them.
    ``files``: text of read-only files, by their places inside. ``credentials``: the families that it can use.
    ``login`` None: podbot does not know. ``settings``: where it takes settings from the workspace that run commands.
    """

    commands: Mapping[AgentMode, Command]
    asking: Mapping[AgentMode, Command]
    env: Mapping[str, str] = {}
    permission_env: Mapping[Permissions, Mapping[str, str]] = {}
    files: Mapping[Permissions, Mapping[str, str]] = {}
    credentials: tuple[str, ...] = ()
    login: Login | None = None
    settings: tuple[str, ...] = ()


def trusted(directory: str | None) -> str:
    """Codex's setting that removes its question whether the folder is trusted; the dotted form has no effect.

    None: for none. Codex then asks on its screen, and takes nothing from the folder's ``.codex`` without one (0.169).
    """
    key = inline_string(directory) if directory is not None else None
    return f'projects={{{key}={{trust_level="trusted"}}}}' if key is not None else "projects={}"


# Measured without a network: `codex exec` takes 0.4 s with analytics off, 5.4 s without (it waits to send them at its
# end). An update would be thrown away with the sandbox, so it is not offered. `-c` is an option of the program, so it
# stands before the subcommand.
_CODEX: Command = (
    "codex", "-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false", "-c", TRUSTED,
)  # fmt: skip
# Codex asks only where its own sandbox forbids something: with danger-full-access and on-request it never does, and
# it has no "untrusted" any more (0.169).
_CODEX_ASKS: Command = (*_CODEX, "-c", 'approval_policy="on-request"', "-c", 'sandbox_mode="read-only"')
_APP_SERVER = ("app-server", "--listen", "stdio://")

# Claude's adapter takes neither words nor variables for this. A managed setting goes before the operator's own
# settings and the repository's.
_CLAUDE_SETTINGS = "/etc/claude-code/managed-settings.d/podbot.json"


# What Claude names when it asks whether a folder is trusted (2.1.330).
_CLAUDE_PROJECT = (".claude/settings.json", ".claude/settings.local.json", ".mcp.json")


def _claude_mode(mode: str) -> Mapping[str, str]:
    return {_CLAUDE_SETTINGS: json.dumps({"permissions": {"defaultMode": mode}}) + "\n"}


_OPENCODE_ASKS = {"edit": "ask", "bash": "ask", "webfetch": "ask", "external_directory": "ask", "doom_loop": "ask"}
_BASHENV = {bashenv.TARGET: bashenv.TEXT}
_CUSTOM: Mapping[AgentMode, Command] = {"podbot": (), "acp": (), "codex_app_server": ()}  # the operator's own words

AGENTS: Mapping[AgentKind, Agent] = {
    "claude": Agent(
        {"podbot": ("claude", "--dangerously-skip-permissions"), "acp": ("claude-agent-acp",)},
        asking={"podbot": ("claude", "--permission-mode", "default"), "acp": ("claude-agent-acp",)},
        env={
            # It refuses to skip permissions as root unless this is exactly "1".
            "IS_SANDBOX": "1",
            # An image of the operator's own may not say it: the version is the image's.
            "DISABLE_AUTOUPDATER": "1",
        },
        files={"full": _claude_mode("bypassPermissions"), "ask": _claude_mode("default")},
        credentials=("claude",),
        settings=_CLAUDE_PROJECT,
        login=Login(
            variables=(
                "ANTHROPIC_API_KEY",
                "ANTHROPIC_AUTH_TOKEN",
                "CLAUDE_CODE_OAUTH_TOKEN",
                "CLAUDE_CODE_USE_BEDROCK",
                "CLAUDE_CODE_USE_VERTEX",
                "CLAUDE_CODE_USE_FOUNDRY",
            ),
            methods=frozenset({"gateway", "gateway-bedrock"}),
            advice=f'run `claude` on the host and log in there, or {_KEY}["ANTHROPIC_API_KEY"]',
        ),
    ),
    "codex": Agent(
        {
            "podbot": (*_CODEX, "--dangerously-bypass-approvals-and-sandbox"),
            "acp": ("codex-acp",),
            "codex_app_server": (
                *_CODEX,
                "-c",
                'approval_policy="never"',
                "-c",
                'sandbox_mode="danger-full-access"',
                *_APP_SERVER,
            ),
        },
        asking={"podbot": _CODEX_ASKS, "acp": ("codex-acp",), "codex_app_server": (*_CODEX_ASKS, *_APP_SERVER)},
        permission_env={
            "full": {"INITIAL_AGENT_MODE": "agent-full-access"},
            "ask": {"INITIAL_AGENT_MODE": "read-only"},
        },
        credentials=("codex",),
        settings=(".codex",),
        login=Login(
            variables=("OPENAI_API_KEY", "CODEX_API_KEY"),
            # The code of the second is entered in the client's browser, the agent only waits for it.
            methods=frozenset({"api-key", "chat-gpt-device-code", "gateway"}),
            advice=f'run `codex login` on the host, or {_KEY}["OPENAI_API_KEY"]',
        ),
    ),
    "opencode": Agent(
        {"podbot": ("opencode",), "acp": ("opencode", "acp")},
        asking={"podbot": ("opencode",), "acp": ("opencode", "acp")},
        env={"OPENCODE_DISABLE_AUTOUPDATE": "1"},  # as for claude
        permission_env={
            # By default it asks before it leaves the workspace, and when it repeats itself.
            "full": {"OPENCODE_PERMISSION": json.dumps({"*": "allow", **dict.fromkeys(_OPENCODE_ASKS, "allow")})},
            "ask": {"OPENCODE_PERMISSION": json.dumps(_OPENCODE_ASKS)},
        },
        settings=("opencode.json", "opencode.jsonc", ".opencode"),
        login=Login(
            variables=(),
            methods=frozenset(),
            advice=f'{_KEY}["OPENROUTER_API_KEY"], or that of another provider of yours',
            needed=False,
        ),
    ),
    "gemini": Agent(
        {"podbot": ("gemini", "--yolo"), "acp": ("gemini", "--acp", "--yolo")},
        asking={
            "podbot": ("gemini", "--approval-mode", "default"),
            "acp": ("gemini", "--acp", "--approval-mode", "default"),
        },
        env={
            # Without it, --yolo asks for permission nevertheless, and without a terminal gemini ends with status 55.
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            # A repository's settings could have it start a container of its own inside this one.
            "GEMINI_SANDBOX": "false",
            **bashenv.ENV,
        },
        files={"full": _BASHENV, "ask": _BASHENV},
        settings=(".gemini/settings.json", ".gemini/extensions"),
        login=Login(
            variables=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"),
            methods=frozenset({"gemini-api-key", "vertex-ai", "gateway"}),
            advice=f'{_KEY}["GEMINI_API_KEY"], and set it where podbot starts',
        ),
    ),
    # What it can use is the operator's to say: creds.copy_claude, creds.copy_codex.
    "custom": Agent(_CUSTOM, asking={}, credentials=("claude", "codex"), settings=_CLAUDE_PROJECT),
}


def agent_env(agent: AgentConfig) -> dict[str, str]:
    """The variables that podbot sets for ``agent``, whatever else sets them."""
    row = AGENTS[agent.kind]
    return {**row.env, **row.permission_env.get(agent.permissions, {})}


def agent_files(agent: AgentConfig) -> Mapping[str, str]:
    """Text of the files that podbot mounts for ``agent``, by their places inside."""
    return AGENTS[agent.kind].files.get(agent.permissions, {})


def command_for(agent: AgentConfig, words: tuple[str, ...] = (), directory: str | None = "/") -> tuple[str, ...]:
    """The command that ``agent`` is started by; ``words`` stood after ``--``. ``directory``: which one it is to trust.

    They are appended to a known kind's command and are the whole of a custom one's. The kind must
    have the mode (``legality.check`` sees to it). Raises MissingRequired for custom without any.
    """
    if agent.kind != "custom":
        row = AGENTS[agent.kind]
        command = (row.asking if agent.permissions == "ask" else row.commands)[agent.mode]
        return (*(trusted(directory) if word == TRUSTED else word for word in command), *words)
    if words:
        return words
    if agent.command and agent.command.strip():
        return (agent.command, *agent.args)
    raise MissingRequired(field="agent.command", hint=CUSTOM_HINT)
