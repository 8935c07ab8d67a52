"""Codex, its App Server, and its adapter for the Agent Client Protocol. Measured with 0.169 and 2.6."""

from __future__ import annotations

from podbot.agents.types import (
    CACHE,
    HOST,
    PAST,
    TRUSTED,
    Agent,
    Build,
    Command,
    Conversations,
    Family,
    Login,
    Page,
    api_key_advice,
)

# Measured without a network: `codex exec` takes 0.4 s with analytics off, 5.4 s without (it waits to send them at its
# end). An update would be thrown away with the sandbox, so it is not offered. `-c` is an option of the program, so it
# stands before the subcommand.
_CODEX: Command = (
    "codex", "-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false", "-c", TRUSTED,
)  # fmt: skip
_NEVER: Command = ("-c", 'approval_policy="never"', "-c", 'sandbox_mode="danger-full-access"')
# Codex asks only where its own sandbox forbids something: with danger-full-access and on-request it never does, and
# it has no "untrusted" any more (0.169).
_CODEX_ASKS: Command = (*_CODEX, "-c", 'approval_policy="on-request"', "-c", 'sandbox_mode="read-only"')
_APP_SERVER = ("app-server", "--listen", "stdio://")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def trusted(directory: str | None) -> str:
    """Codex's setting that removes its question whether the folder is trusted; the dotted form has no effect.

    None: for none. Codex then asks on its screen, and takes nothing from the folder's ``.codex`` without one (0.169).
    """
    key = _inline_string(directory) if directory is not None else None
    return f'projects={{{key}={{trust_level="trusted"}}}}' if key is not None else "projects={}"


def _inline_string(text: str) -> str | None:
    """``text`` as a TOML string on one line; None for a path that is not UTF-8, which TOML cannot hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return f"\\u{ord(char):04X}" if char < " " or "\x7f" <= char <= "\x9f" else char


AGENT = Agent(
    commands={
        "podbot": (*_CODEX, "--dangerously-bypass-approvals-and-sandbox"),
        "acp": ("codex-acp",),
        "codex_app_server": (*_CODEX, *_NEVER, *_APP_SERVER),
    },
    asking={"podbot": _CODEX_ASKS, "acp": ("codex-acp",), "codex_app_server": (*_CODEX_ASKS, *_APP_SERVER)},
    trust=trusted,
    permission_env={"full": {"INITIAL_AGENT_MODE": "agent-full-access"}, "ask": {"INITIAL_AGENT_MODE": "read-only"}},
    login=Login(
        variables=("OPENAI_API_KEY", "CODEX_API_KEY"),
        # The code of the second is entered in the client's browser, the agent only waits for it.
        methods=frozenset({"api-key", "chat-gpt-device-code", "gateway"}),
        others=frozenset({"chat-gpt"}),
        advice=f"run `codex login` on the host, or {api_key_advice('OPENAI_API_KEY')}",
    ),
    family=Family(
        "codex",
        ".codex",
        "auth.json",
        {
            PAST: "sessions archived_sessions session_index.jsonl history.jsonl log logs shell_snapshots memories "
            "memories_* attachments generated_images worktrees *.sqlite *.sqlite-*",
            CACHE: "cache .tmp tmp models_cache.json version.json",
            HOST: "packages *.lock",
        },
    ),
    settings=(".codex",),
    settings_asked="on a terminal Codex asks about them first, and `codex exec` takes none",
    refused=(".codex",),
    # Its databases beside this directory are an index, which it makes again from the files here (measured).
    conversations=Conversations("/root/.codex/sessions", ("resume", "--last", "--include-non-interactive")),
    build=Build(
        "@openai/codex",
        "0.169.0",
        megabytes=442,
        adapter="@agentclientprotocol/codex-acp@2.6.0",
        # The adapter brings an agent of its own (440 MB); it uses the one that CODEX_PATH names.
        remove=("@agentclientprotocol/*/node_modules/@openai",),
        env={"CODEX_PATH": "/usr/local/bin/codex"},
        node=("codex", "codex-acp"),
    ),
    page=Page(
        permissions=(
            (
                "`run`",
                "`--dangerously-bypass-approvals-and-sandbox`",
                '`-c approval_policy="on-request" -c sandbox_mode="read-only"`',
            ),
            ("`acp`", "starts in the mode `agent-full-access`", "starts in the mode `read-only`"),
            (
                "`codex_app_server`",
                (
                    "what a thread has when the client sends no `approvalPolicy` and `sandbox`: "
                    "`never`, `danger-full-access`"
                ),
                "the same with `on-request`, `read-only`",
            ),
        ),
        told=(
            ("`-c analytics.enabled=false`", "without a network, `codex exec` ends after 0.4 s instead of 5.4 s"),
            ("`-c check_for_update_on_startup=false`", "its version is the image's"),
            (
                '`-c \'projects={"DIRECTORY"={trust_level="trusted"}}\'`',
                "else its screen begins with the question whether you trust the directory",
            ),
            ("`INITIAL_AGENT_MODE`", "the [permissions](#permissions) of `codex-acp`"),
        ),
        resume="`resume --last --include-non-interactive`; `resume` lets you choose",
        editor="list and load over ACP; resume with the App Server, whose list of turns is not kept "
        "([measured](clients.md))",
    ),
)
