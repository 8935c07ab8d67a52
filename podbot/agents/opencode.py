"""opencode, which speaks the Agent Client Protocol itself. Measured with 1.18."""

from __future__ import annotations

import json

from podbot.agents.types import Agent, Build, Conversations, Login, Page, api_key_advice

_ASKS = {"edit": "ask", "bash": "ask", "webfetch": "ask", "external_directory": "ask", "doom_loop": "ask"}
_HISTORY = "/root/.local/share/opencode/history"

AGENT = Agent(
    commands={"podbot": ("opencode",), "acp": ("opencode", "acp")},
    asking={"podbot": ("opencode",), "acp": ("opencode", "acp")},
    # An image of the operator's own may not say it: the version is the image's.
    env={"OPENCODE_DISABLE_AUTOUPDATE": "1"},
    permission_env={
        # By default it asks before it leaves the workspace, and when it repeats itself.
        "full": {"OPENCODE_PERMISSION": json.dumps({"*": "allow", **dict.fromkeys(_ASKS, "allow")})},
        "ask": {"OPENCODE_PERMISSION": json.dumps(_ASKS)},
    },
    login=Login(
        variables=(),
        methods=frozenset(),
        others=frozenset({"opencode-login"}),
        advice=f"{api_key_advice('OPENROUTER_API_KEY')}, or that of another provider of yours",
        needed=False,
    ),
    settings=("opencode.json", "opencode.jsonc", ".opencode"),
    refused=(".local/share/opencode", ".config/opencode"),
    # Its database lies beside auth.json by default; alone in a directory it is mounted without that.
    conversations=Conversations(_HISTORY, ("--continue",), env={"OPENCODE_DB": f"{_HISTORY}/opencode.db"}),
    build=Build(
        "opencode-ai",
        "1.18.33",
        megabytes=185,
        # opencode.exe is a hard link to the one of these that fits this processor; the other is 185 MB.
        remove=("opencode-ai/node_modules/opencode-linux-*",),
    ),
    page=Page(
        permissions=(
            (
                "",
                "allows everything, leaving the workspace included",
                "asks before it edits, runs a command, fetches a page, leaves the workspace, or repeats itself",
            ),
        ),
        told=(
            ("`OPENCODE_DISABLE_AUTOUPDATE=1`", "its version is the image's"),
            ("`OPENCODE_PERMISSION`", "its [permissions](#permissions)"),
        ),
        left_alone=(
            (
                "`OPENCODE_DISABLE_MODELS_FETCH=1`",
                "none that stands out: 3 to 6 s either way; the fetch fails at once",
            ),
        ),
        store=", with `OPENCODE_DB`",
        resume="`--continue`",
        editor="list and load",
    ),
)
