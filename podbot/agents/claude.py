"""Claude Code, and its adapter for the Agent Client Protocol. Measured with 2.1.330 and 0.100.0."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from podbot.agents.definition import (
    CACHE,
    HOST,
    PAST,
    SETTINGS_OF_OTHERS,
    Agent,
    Build,
    Command,
    Conversations,
    Family,
    FirstRun,
    Login,
    OwnLogin,
    Page,
    api_key_advice,
)
from podbot.agents.login_state import (
    NONE,
    LoginFiles,
    LoginState,
    Unreadable,
    account,
    document,
    first,
    is_filled,
    is_on,
    seconds,
)

# The adapter has neither arguments nor variables for this. A managed setting overrides the operator's own settings and
# the repository's.
_MANAGED = "/etc/claude-code/managed-settings.d/podbot.json"
# Beside it, because Claude combines the files of that directory. Without it, Claude asks for the account's MCP servers
# (mail, drive) at each start (2.1.330).
_NO_CONNECTORS = "/etc/claude-code/managed-settings.d/podbot-connectors.json"
_LOGINS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")  # each logs claude in
# Each leaves the login to another provider (2.1.330); CLAUDE_CODE_USE_GATEWAY does not log in.
_CLOUDS = (
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
    "CLAUDE_CODE_USE_ANTHROPIC_AWS",
    "CLAUDE_CODE_USE_ANTHROPIC_GOOGLE_CLOUD",
    "CLAUDE_CODE_USE_MANTLE",
)
_LOGIN, _SETTINGS = ".credentials.json", "settings.json"
_SCOPE = "user:inference"  # without it in the file, Claude is not logged in (2.1.330)
PROJECT_SETTINGS = (".claude/settings.json", ".claude/settings.local.json", ".mcp.json")  # named in its trust question
_KEPT = ("theme", "lastOnboardingVersion")
_SHOWN = 20  # claude records an approved key by its last characters


def _mode(mode: str) -> Mapping[str, str]:
    return {_MANAGED: json.dumps({"permissions": {"defaultMode": mode}}) + "\n"}


def reduced(document: bytes, workspace: str | None, api_key: str | None) -> bytes:
    """The reduced ``~/.claude.json`` from the host's ``document``, which may be empty or not JSON.

    It has what Claude needs to show the prompt first, measured with ``--dangerously-skip-permissions`` and no network.
    Without the file it exits at its onboarding ("Unable to connect"). With ``hasCompletedOnboarding`` it asks whether
    the directory is trusted, then whether skipping permissions is accepted, then whether a key from the environment
    may be used. Each value below removes one of these screens. The rest of the host's file (other projects, their
    histories, tool servers with keys, ids, fragments of other keys) is not copied.

    ``workspace`` is the only project in it. With None, no directory is trusted, and Claude asks on its screen, where it
    names the hooks and tool servers of the workspace before any of them runs (measured). ``api_key``: the operator
    approved it by listing its variable.
    """
    host = _parsed(document)
    made: dict[str, Any] = {key: host[key] for key in _KEPT if isinstance(host.get(key), str)}
    account = host.get("oauthAccount")
    if isinstance(account, dict):  # the account of the login in ~/.claude/.credentials.json
        made["oauthAccount"] = {key: value for key, value in account.items() if isinstance(value, str | bool | int)}
    made["hasCompletedOnboarding"] = True
    made["bypassPermissionsModeAccepted"] = True
    made["projects"] = {workspace: {"hasTrustDialogAccepted": True}} if workspace is not None else {}
    if api_key:
        made["customApiKeyResponses"] = {"approved": [api_key[-_SHOWN:]], "rejected": []}
    return json.dumps(made, indent=2, sort_keys=True).encode()


def _parsed(document: bytes) -> dict[str, Any]:
    try:
        host = json.loads(document)
    except (ValueError, RecursionError):
        return {}
    return host if isinstance(host, dict) else {}


def judge(files: LoginFiles, env: Mapping[str, str], now: float, command: Command) -> LoginState:
    """See ``Login.judge``. As ``claude auth status`` says it of each (2.1.330)."""
    del command  # not read: `--settings`, which can name another file of settings
    try:
        settings = document(files.get(_SETTINGS, b""))
    except Unreadable:  # Claude starts without them
        settings = {}
    more = settings.get("env")
    more = more if isinstance(more, dict) else {}
    every = {**env, **more}
    cloud = next((name for name in _CLOUDS if is_on(every.get(name))), None)
    key = first(_LOGINS, every)
    if key is None and is_filled(settings.get("apiKeyHelper")):
        key, more = "apiKeyHelper", settings
    if name := cloud or key:
        return LoginState("cloud" if cloud else "key", f"{_SETTINGS}: {name}" if name in more else name)
    return _in_file(files[_LOGIN], now) if _LOGIN in files else NONE


def _in_file(content: bytes | str, now: float) -> LoginState:
    try:
        login = document(content).get("claudeAiOauth")
    except Unreadable as exc:
        return LoginState("unreadable", _LOGIN, reason=str(exc))
    if not isinstance(login, dict) or not is_filled(login.get("accessToken")):
        return LoginState("blank", _LOGIN)
    scopes = login.get("scopes")
    if not isinstance(scopes, list) or _SCOPE not in scopes:
        return LoginState("unreadable", _LOGIN, reason=f"it has no scope {_SCOPE}")
    return account(
        _LOGIN,
        now,
        access=login["accessToken"],
        refresh=login.get("refreshToken"),
        end=seconds(login.get("expiresAt"), 1000),
        last=seconds(login.get("refreshTokenExpiresAt"), 1000),
    )


AGENT = Agent(
    commands={"podbot": ("claude", "--dangerously-skip-permissions"), "acp": ("claude-agent-acp",)},
    asking={"podbot": ("claude", "--permission-mode", "default"), "acp": ("claude-agent-acp",)},
    env={
        # As root it refuses to skip permissions unless this is exactly "1".
        "IS_SANDBOX": "1",
        # An operator's own image may not set it; the image determines the version.
        "DISABLE_AUTOUPDATER": "1",
    },
    files={"full": _mode("bypassPermissions"), "ask": _mode("default")},
    no_connectors={_NO_CONNECTORS: json.dumps({"disableClaudeAiConnectors": True}) + "\n"},
    login=Login(
        variables=(*_LOGINS, *_CLOUDS),
        methods=frozenset({"gateway", "gateway-bedrock"}),
        others=frozenset({"claude-ai-login", "console-login", "claude-login"}),
        advice=f"run `podbot login claude`, or {api_key_advice('ANTHROPIC_API_KEY')}",
        instead="an API key (`-e ANTHROPIC_API_KEY`) or a token of `claude setup-token` (`-e CLAUDE_CODE_OAUTH_TOKEN`)",
        workspace=PROJECT_SETTINGS[:2],  # by their `env`
        judge=judge,
    ),
    family=Family(
        "claude",
        ".claude",
        ".credentials.json",
        {
            PAST: "projects sessions session-env history.jsonl file-history shell-snapshots todos tasks plans teams "
            "jobs agent-memory paste-cache image-cache uploads downloads traces shares debug dump-prompts feedback "
            "feedback-bundles usage-data",
            # .config.json is the older name of ~/.claude.json, which is in CLAUDE_CONFIG_DIR if that is set; backups
            # contains copies of it.
            SETTINGS_OF_OTHERS: "backups .config.json* .claude.json*",
            CACHE: "cache statsig telemetry startup-perf stats-cache.json *-discovery-cache gh-pr-status-cache.json",
            HOST: "ide chrome local daemon daemon.* remote-control *.lock .last-*",
        },
        variable="CLAUDE_CONFIG_DIR",
        files=(_LOGIN, _SETTINGS),
    ),
    # It replaces the file by a rename and does not follow a link there, but has a variable for the file's directory.
    own_login=OwnLogin(
        ".claude/.credentials.json",
        ("claude", "auth", "login"),
        # All that it writes (2.1.330). None of them names the account.
        kept=(
            "claudeAiOauth.accessToken",
            "claudeAiOauth.refreshToken",
            "claudeAiOauth.expiresAt",
            "claudeAiOauth.scopes",
            "claudeAiOauth.subscriptionType",
            "claudeAiOauth.rateLimitTier",
            "claudeAiOauth.clientId",
        ),
        tokens=("claudeAiOauth.accessToken", "claudeAiOauth.refreshToken"),
        refresh="claudeAiOauth.refreshToken",
        directory_variable="CLAUDE_SECURESTORAGE_CONFIG_DIR",
    ),
    # Claude asks about the key only on its screen; otherwise no part of the key should be in a file.
    first_run=FirstRun(".claude.json", variables=_LOGINS, key="ANTHROPIC_API_KEY", reduce=reduced),
    settings=PROJECT_SETTINGS,
    settings_asked="on a terminal Claude asks about them first, with -p and in `podbot host` it does not",
    refused=(".claude", ".claude.json"),
    conversations=Conversations("/root/.claude/projects", ("--continue",)),
    build=Build(
        "@anthropic-ai/claude-code",
        "2.1.330",
        megabytes=442,
        adapter="@agentclientprotocol/claude-agent-acp@0.100.0",
        # The adapter includes its own copy of the agent (330 MB; --omit=optional has no effect with -g), which is
        # removed: CLAUDE_CODE_EXECUTABLE names the installed one.
        remove=("@agentclientprotocol/*/node_modules/@anthropic-ai/claude-agent-sdk-linux-*",),
        env={"DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_EXECUTABLE": "/usr/local/bin/claude"},
        node=("claude-agent-acp",),
    ),
    page=Page(
        permissions=(
            (
                "`run`",
                "`--dangerously-skip-permissions`",
                "`--permission-mode default`: asks before commands and changes",
            ),
            (
                "`acp`",
                "starts in the mode `bypassPermissions`",
                "starts in the mode `default`: asks before commands and changes",
            ),
        ),
        fixed=(
            ("`IS_SANDBOX=1`", "without it claude refuses to skip permissions as root"),
            ("`DISABLE_AUTOUPDATER=1`", "the image determines its version; an update would be lost with the sandbox"),
        ),
        optional=(
            (
                "`CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1`",
                "`claude -p` ends after 0.69 s instead of 0.80 s",
            ),
        ),
        resume="`--continue`; `--resume` lets you choose",
        editor="list and load",
    ),
)
