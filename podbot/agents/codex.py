"""Codex, its App Server, and its adapter for the Agent Client Protocol. Measured with 0.169 and 2.6."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from podbot.agents.definition import (
    CACHE,
    HOST,
    PAST,
    TRUSTED,
    Agent,
    Build,
    Command,
    Conversations,
    Family,
    KeyLogin,
    Login,
    OwnLogin,
    Page,
    ThroughGateway,
    api_key_advice,
)
from podbot.agents.login_state import (
    LARGEST,
    NONE,
    LoginFiles,
    LoginState,
    Unreadable,
    account,
    document,
    first,
    is_filled,
    jwt_end,
)

# Measured without a network: `codex exec` takes 0.4 s with analytics off, 5.4 s with them (it waits to send them at its
# end). An update would be lost with the sandbox, so it is not offered. `-c` is an option of the program, so it precedes
# the subcommand.
_CODEX: Command = (
    "codex", "-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false", "-c", TRUSTED,
)  # fmt: skip
_NEVER: Command = ("-c", 'approval_policy="never"', "-c", 'sandbox_mode="danger-full-access"')
# Codex asks only if its own sandbox forbids something: with danger-full-access and on-request it never asks, and it no
# longer has "untrusted" (0.169).
_CODEX_ASKS: Command = (*_CODEX, "-c", 'approval_policy="on-request"', "-c", 'sandbox_mode="read-only"')
# Neither the operator's settings nor `-c` override it (0.169).
_REQUIREMENTS = "/etc/codex/requirements.toml"
# It overrides the operator's settings, also for the adapter, which takes no words (0.169). If the copied ones name a
# keyring, and there is none inside, Codex ignores the login's file: "no secret service provider".
_MANAGED = "/etc/codex/managed_config.toml"
_LOGIN, _CONFIG = "auth.json", "config.toml"
_STORE = "cli_auth_credentials_store"
_TOKEN = "CODEX_ACCESS_TOKEN"  # noqa: S105 - a variable's name
_KEYS = ("CODEX_API_KEY", "OPENAI_API_KEY")
_PROVIDER = "model_provider"  # the setting that selects one, and the beginning of the name of their table
_ADAPTER_CONFIG = "CODEX_CONFIG"  # settings for its adapter, which ignores the words
# Words by which Codex may use another provider, and podbot does not find out which: it reads no profile's file.
_OTHER_PROVIDERS = ("--oss", "--local-provider", "--profile", "-p")
_APP_SERVER = ("app-server", "--listen", "stdio://")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def trusted(directory: str | None) -> str:
    """Codex's setting that a directory is trusted, so that it does not ask; the dotted form has no effect.

    With None, no directory is trusted: Codex asks on its screen, and until then ignores the folder's ``.codex``
    (0.169).
    """
    key = _inline_string(directory) if directory is not None else None
    return f'projects={{{key}={{trust_level="trusted"}}}}' if key is not None else "projects={}"


def _inline_string(text: str) -> str | None:
    """``text`` as a TOML string on one line; None for a path that is not UTF-8, which TOML cannot contain."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return f"\\u{ord(char):04X}" if char < " " or "\x7f" <= char <= "\x9f" else char


def through_gateway(addresses: Mapping[str, str], variables: Mapping[str, str]) -> ThroughGateway:
    """A provider of models of its own: with the built-in one, Codex tries WebSockets six times first (0.169)."""
    if "openai" not in addresses:
        return ThroughGateway()
    provider = {
        "name": "podbot",
        "base_url": addresses["openai"],
        "env_key": variables["openai"],
        "wire_api": "responses",
        "supports_websockets": False,
    }
    inline = ", ".join(f"{key}={json.dumps(value)}" for key, value in provider.items())  # JSON's strings are TOML's
    return ThroughGateway(
        {_ADAPTER_CONFIG: json.dumps({"model_provider": "podbot", "model_providers": {"podbot": provider}})},
        ("-c", 'model_provider="podbot"', "-c", f"model_providers.podbot={{{inline}}}"),
    )


def judge(files: LoginFiles, env: Mapping[str, str], now: float, command: Command) -> LoginState:
    """See ``Login.judge``. Of its variables, Codex takes only the token at every start (0.169); podbot turns a key into
    the login's file, if that has no login. A key of another provider is its login only if that provider is chosen."""
    if is_filled(env.get(_TOKEN)):
        return LoginState("key", _TOKEN)
    of_file = settings = _settings(files.get(_CONFIG))
    for chosen in _of_words(command) if command[:1] == _CODEX[:1] else _of_adapter(env):
        settings = _merged(settings, chosen)
    where = _PROVIDER if settings.get(_PROVIDER) != of_file.get(_PROVIDER) else f"{_CONFIG}: {_PROVIDER}"
    if (provider := _other_provider(settings, env, where)) is not None:
        return provider
    found = _in_file(files[_LOGIN], now) if _LOGIN in files else NONE
    if _LOGIN not in files and settings.get(_STORE) == "keyring":
        found = LoginState("unreadable", _CONFIG, reason=f"{_STORE} puts it into a keyring of this host")
    if found.works:
        return found
    if (key := first(_KEYS, env)) is not None:
        return LoginState("key", key)
    other = next((word for word in command if word.partition("=")[0] in _OTHER_PROVIDERS), None)
    return LoginState("cloud", other.partition("=")[0]) if other is not None else found


def _settings(config: bytes | str | None) -> dict[str, Any]:
    """Those of the operator, if they can matter for a login; empty if they cannot be read."""
    if not isinstance(config, bytes) or len(config) > LARGEST:
        return {}
    if _PROVIDER.encode() not in config and _STORE.encode() not in config:
        return {}
    import tomllib

    try:
        return tomllib.loads(config.decode())
    except (ValueError, RecursionError):
        return {}


def _of_words(command: Command) -> Iterator[Mapping[str, Any]]:
    """The settings in its words that can select a provider: ``-c`` with a dotted key, ``=``, and TOML or bare text."""
    for word, following in zip(command, (*command[1:], ""), strict=True):
        text = following if word in ("-c", "--config") else word.removeprefix("--config=").removeprefix("-c")
        key, _, value = text.removeprefix("=").partition("=")
        if not word.startswith(("-c", "--config")) or not key.startswith(_PROVIDER):
            continue
        found = _value(value)
        for name in reversed(key.split(".")):
            found = {name.strip(): found}
        yield found


def _value(text: str) -> Any:
    import tomllib

    try:
        return tomllib.loads(f"value={text}")["value"]
    except (ValueError, RecursionError):
        return text.strip().strip("\"'")


def _of_adapter(env: Mapping[str, str]) -> Iterator[Mapping[str, Any]]:
    try:
        yield document(env.get(_ADAPTER_CONFIG, "").encode("utf-8", "surrogateescape"))
    except Unreadable:  # the adapter's to report
        return


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Settings, of which those ``above`` count more."""
    both = {name for name in above if isinstance(below.get(name), dict) and isinstance(above[name], dict)}
    return {**below, **above, **{name: _merged(below[name], above[name]) for name in both}}


def _other_provider(settings: Mapping[str, Any], env: Mapping[str, str], where: str) -> LoginState | None:
    """The login of the provider of models that the settings select, if it is another one than OpenAI."""
    name = settings.get(_PROVIDER)
    table = settings.get("model_providers")
    table = table.get(name) if isinstance(table, dict) and isinstance(name, str) else None
    if not isinstance(name, str) or name == "openai" or (isinstance(table, dict) and table.get("requires_openai_auth")):
        return None
    variable = table.get("env_key") if isinstance(table, dict) else None
    if not isinstance(variable, str):
        return LoginState("cloud", where)
    if is_filled(env.get(variable)):
        return LoginState("key", variable)
    return LoginState("blank", where, reason=f"it needs the variable {variable[:80]!r}")


def _in_file(content: bytes | str, now: float) -> LoginState:
    try:
        login = document(content)
    except Unreadable as exc:
        return LoginState("unreadable", _LOGIN, reason=str(exc))
    mode, key, tokens = login.get("auth_mode"), login.get("OPENAI_API_KEY"), login.get("tokens")
    if mode == "apikey" or (mode is None and key is not None):
        return LoginState("key" if is_filled(key) else "blank", _LOGIN)
    if mode not in (None, "chatgpt"):  # of a kind that Codex has besides these
        others = (value for name, value in login.items() if name not in ("auth_mode", "last_refresh"))
        return LoginState(
            "usable" if any(is_filled(v) or (isinstance(v, dict) and v) for v in others) else "blank", _LOGIN
        )
    tokens = tokens if isinstance(tokens, dict) else {}
    access = tokens.get("access_token")
    end = jwt_end(access) if isinstance(access, str) else None
    return account(_LOGIN, now, access=access, refresh=tokens.get("refresh_token"), end=end)


def key_login(key: str) -> str:
    """The login's file of a key."""
    return json.dumps({"auth_mode": "apikey", "OPENAI_API_KEY": key}) + "\n"


AGENT = Agent(
    commands={
        "podbot": (*_CODEX, "--dangerously-bypass-approvals-and-sandbox"),
        "acp": ("codex-acp",),
        "codex_app_server": (*_CODEX, *_NEVER, *_APP_SERVER),
    },
    asking={"podbot": _CODEX_ASKS, "acp": ("codex-acp",), "codex_app_server": (*_CODEX_ASKS, *_APP_SERVER)},
    trust=trusted,
    permission_env={"full": {"INITIAL_AGENT_MODE": "agent-full-access"}, "ask": {"INITIAL_AGENT_MODE": "read-only"}},
    login_files={_MANAGED: f'{_STORE} = "file"\n'},
    no_connectors={_REQUIREMENTS: "[features]\napps = false\n"},
    login=Login(
        variables=(*_KEYS, _TOKEN),
        # The code of the second method is entered in the client's browser; the agent only waits for it.
        methods=frozenset({"api-key", "chat-gpt-device-code", "gateway"}),
        others=frozenset({"chat-gpt"}),
        advice=f"run `podbot login codex`, or {api_key_advice('OPENAI_API_KEY')}",
        instead="an API key (`-e OPENAI_API_KEY`)",
        judge=judge,
    ),
    # `codex exec` takes CODEX_API_KEY, and nothing takes OPENAI_API_KEY: Codex, its App Server and its adapter say
    # "not logged in" with it (0.169).
    key_login=KeyLogin(_KEYS, ".codex/auth.json", key_login),
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
        variable="CODEX_HOME",
        files=(_LOGIN, _CONFIG),
    ),
    # It replaces the file by a rename in the directory that a link at its path leads to (0.169). The other flow waits
    # for a browser on a port of its own machine.
    own_login=OwnLogin(
        ".codex/auth.json",
        ("codex", "-c", 'cli_auth_credentials_store="file"', "login", "--device-auth"),
        kept=(
            "auth_mode",
            "OPENAI_API_KEY",
            "last_refresh",
            "tokens.id_token",
            "tokens.access_token",
            "tokens.refresh_token",
            "tokens.account_id",
        ),
        fixed=("auth_mode", "OPENAI_API_KEY", "tokens.account_id"),
        tokens=("OPENAI_API_KEY", "tokens.access_token", "tokens.refresh_token"),
        refresh="tokens.refresh_token",
    ),
    settings=(".codex",),
    settings_asked="on a terminal Codex asks about them first, and `codex exec` takes none",
    refused=(".codex",),
    through=through_gateway,
    # Its databases beside this directory are an index, which it rebuilds from the files here (measured).
    conversations=Conversations("/root/.codex/sessions", ("resume", "--last", "--include-non-interactive")),
    build=Build(
        "@openai/codex",
        "0.169.0",
        megabytes=442,
        adapter="@agentclientprotocol/codex-acp@2.6.0",
        # The adapter includes its own copy of the agent (440 MB), which is removed: CODEX_PATH names the installed one.
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
                    "the defaults of a thread when the client sends no `approvalPolicy` and `sandbox` are "
                    "`never` and `danger-full-access`"
                ),
                "the same with `on-request` and `read-only`",
            ),
        ),
        fixed=(
            ("`-c analytics.enabled=false`", "without a network, `codex exec` ends after 0.4 s instead of 5.4 s"),
            ("`-c check_for_update_on_startup=false`", "the image determines its version"),
            (
                '`-c \'projects={"DIRECTORY"={trust_level="trusted"}}\'`',
                "otherwise its screen begins with the question whether you trust the directory",
            ),
            ("`INITIAL_AGENT_MODE`", "the [permissions](#permissions) of `codex-acp`"),
        ),
        resume="`resume --last --include-non-interactive`; `resume` lets you choose",
        editor="list and load over ACP; resume with the App Server, whose list of turns is not kept "
        "([measured](clients.md))",
    ),
)
