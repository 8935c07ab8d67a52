"""opencode, which supports the Agent Client Protocol itself. Measured with 1.18."""

from __future__ import annotations

import json
from collections.abc import Mapping

from podbot.agents.definition import (
    Agent,
    Build,
    Command,
    Conversations,
    Login,
    OwnLogin,
    Page,
    ThroughGateway,
    api_key_advice,
)
from podbot.agents.login_state import NONE, LoginFiles, LoginState, Unreadable, account, document, is_filled, seconds

_ASKS = {"edit": "ask", "bash": "ask", "webfetch": "ask", "external_directory": "ask", "doom_loop": "ask"}
# Provider -> the API, and the path that the provider's own address has.
_PROVIDERS = {"anthropic": ("anthropic", "/v1"), "openai": ("openai", ""), "google": ("gemini", "/v1beta"),
              "openrouter": ("openrouter", "")}  # fmt: skip
_LOGIN = "auth.json"
_KEY = "_API_KEY"  # the end of the name that providers give the variable of their key
_HISTORY = "/root/.local/share/opencode/history"


def through_gateway(addresses: Mapping[str, str], variables: Mapping[str, str]) -> ThroughGateway:
    """Addresses of its providers; it takes the keys from their variables."""
    del variables
    providers = {
        name: {"options": {"baseURL": addresses[api] + path}}
        for name, (api, path) in _PROVIDERS.items()
        if api in addresses
    }
    return ThroughGateway({"OPENCODE_CONFIG_CONTENT": json.dumps({"provider": providers})} if providers else {})


def judge(files: LoginFiles, env: Mapping[str, str], now: float, command: Command) -> LoginState:
    """See ``Login.judge``. The best of its providers' logins: it has a hundred, each with a variable for its key."""
    del command  # it chooses among the models of those that have a login
    found = _in_file(files[_LOGIN], now) if _LOGIN in files else NONE
    key = next((name for name in sorted(env) if name.endswith(_KEY) and is_filled(env[name])), None)
    return found if found.works or key is None else LoginState("key", key)


def _in_file(content: bytes | str, now: float) -> LoginState:
    try:
        found = [_entry(entry, now) for entry in document(content).values() if isinstance(entry, dict)]
    except Unreadable as exc:
        return LoginState("unreadable", _LOGIN, reason=str(exc))
    blank = LoginState("blank", _LOGIN)
    return next((state for state in found if state.works), found[0] if found else blank)


def _entry(entry: Mapping[str, object], now: float) -> LoginState:
    if is_filled(entry.get("key")):
        return LoginState("key", _LOGIN)
    end = seconds(entry.get("expires"), 1000)
    return account(_LOGIN, now, access=entry.get("access"), refresh=entry.get("refresh"), end=end)


AGENT = Agent(
    commands={"podbot": ("opencode",), "acp": ("opencode", "acp")},
    asking={"podbot": ("opencode",), "acp": ("opencode", "acp")},
    # An operator's own image may not set it; the image determines the version.
    env={"OPENCODE_DISABLE_AUTOUPDATE": "1"},
    permission_env={
        # By default it asks before it leaves the workspace, and if it repeats itself.
        "full": {"OPENCODE_PERMISSION": json.dumps({"*": "allow", **dict.fromkeys(_ASKS, "allow")})},
        "ask": {"OPENCODE_PERMISSION": json.dumps(_ASKS)},
    },
    login=Login(
        variables=(),
        methods=frozenset(),
        others=frozenset({"opencode-login"}),
        advice=f"run `podbot login opencode`, or {api_key_advice('OPENROUTER_API_KEY')}, or that of another provider",
        needed=False,
        judge=judge,
    ),
    # It writes into the file that a link leads to (1.18). An entry of the type "wellknown" would make it fetch
    # settings, with tool servers, from the address in its name. Its token is not kept, and without one it is ignored.
    own_login=OwnLogin(
        ".local/share/opencode/auth.json",
        ("opencode", "auth", "login"),
        kept=(
            "*.type",
            "*.key",
            "*.access",
            "*.refresh",
            "*.expires",
            "*.accountId",
            "*.enterpriseUrl",
            "*.metadata.*",
        ),
        fixed=("*.type", "*.key", "*.accountId", "*.enterpriseUrl", "*.metadata.*"),
        tokens=("*.key", "*.access", "*.refresh"),
    ),
    settings=("opencode.json", "opencode.jsonc", ".opencode", "tui.json", "tui.jsonc"),
    through=through_gateway,
    refused=(".local/share/opencode", ".config/opencode"),
    # By default its database is beside auth.json; in a directory of its own it is mounted without that file.
    conversations=Conversations(_HISTORY, ("--continue",), env={"OPENCODE_DB": f"{_HISTORY}/opencode.db"}),
    build=Build(
        "opencode-ai",
        "1.18.33",
        megabytes=185,
        # opencode.exe is a hard link to the one of these for this processor; the other takes 185 MB.
        remove=("opencode-ai/node_modules/opencode-linux-*",),
    ),
    page=Page(
        permissions=(
            (
                "",
                "allows everything, including leaving the workspace",
                "asks before it edits, runs a command, fetches a page, leaves the workspace, or repeats itself",
            ),
        ),
        fixed=(
            ("`OPENCODE_DISABLE_AUTOUPDATE=1`", "the image determines its version"),
            ("`OPENCODE_PERMISSION`", "its [permissions](#permissions)"),
        ),
        optional=(
            (
                "`OPENCODE_DISABLE_MODELS_FETCH=1`",
                "no significant effect: 3 to 6 s with and without it; the fetch fails at once",
            ),
        ),
        store=", with `OPENCODE_DB`",
        resume="`--continue`",
        editor="list and load",
    ),
)
