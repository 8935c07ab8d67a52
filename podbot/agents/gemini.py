"""Gemini CLI, which supports the Agent Client Protocol itself. Measured with 0.61."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from podbot.agents.definition import (
    ASKPASS,
    GITCONFIG,
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

_DEFAULTS = "/run/podbot/gemini-defaults.json"
_SETTINGS = "/run/podbot/gemini-settings.json"
_SYSTEM = "GEMINI_CLI_SYSTEM_SETTINGS_PATH"  # names the settings that count most
_KEY = "GEMINI_API_KEY"
_BASHENV = "/run/podbot/bashenv"

# Undoes Gemini's change to git's environment in the shells that it starts. Gemini runs ``bash -c`` with
# GIT_CONFIG_SYSTEM and GIT_CONFIG_GLOBAL set to /dev/null, GIT_CONFIG_NOSYSTEM to 1 and an empty GIT_ASKPASS (0.61), so
# there is no identity, trusted workspace or token, and commits and pushes fail. bash reads the file that BASH_ENV names
# before the command. The file unsets BASH_ENV, so that scripts run by the command are not affected.
BASHENV_TEXT = f"""# Written by podbot, for the shells that Gemini starts; it marks those with GEMINI_CLI.
if [ -n "${{GEMINI_CLI-}}" ]; then
  unset BASH_ENV GIT_CONFIG_NOSYSTEM GIT_CONFIG_GLOBAL
  export GIT_CONFIG_SYSTEM={GITCONFIG}
  if [ -x {ASKPASS} ]; then export GIT_ASKPASS={ASKPASS}; fi
fi
"""
_ADDRESS = "GOOGLE_GEMINI_BASE_URL"  # selects a gateway
_LOGIN = "oauth_creds.json"
_CLOUDS = ("GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI", "CLOUD_SHELL", "GEMINI_CLI_USE_COMPUTE_ADC")
# session/load leaves an empty file with the conversation's id, and the clean-up at gemini's next start deletes every
# file with that id (measured with 0.61). So the clean-up is off, unless the user's settings enable it.
_SETTINGS_BELOW: dict[str, Any] = {"general": {"sessionRetention": {"enabled": False}}}
_BY_KEY = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
_FILES = {_BASHENV: BASHENV_TEXT, _DEFAULTS: json.dumps(_SETTINGS_BELOW) + "\n"}


def through_gateway(addresses: Mapping[str, str], variables: Mapping[str, str]) -> ThroughGateway:
    """With another address in its variable it otherwise selects a kind of login that it then refuses (0.61)."""
    del variables
    if "gemini" not in addresses:
        return ThroughGateway()
    return ThroughGateway({_SYSTEM: _SETTINGS}, files={_SETTINGS: json.dumps(_BY_KEY) + "\n"})


def judge(files: LoginFiles, env: Mapping[str, str], now: float, command: Command) -> LoginState:
    """See ``Login.judge``. In the order of Gemini's own choice; GOOGLE_API_KEY is for Vertex AI only (0.61)."""
    del command  # it has no word for a login
    if env.get(_SYSTEM) == _SETTINGS:  # for the gateway, which select the key, whatever else is there
        blank = LoginState("blank", _ADDRESS, reason=f"it needs the variable {_KEY!r}")
        return LoginState("key", _KEY) if is_filled(env.get(_KEY)) else blank
    for name in _CLOUDS:
        if env.get(name) == "true":
            return LoginState("cloud", name)
    if is_filled(env.get(_ADDRESS)):
        return LoginState("cloud", _ADDRESS)
    if is_filled(env.get(_KEY)):
        return LoginState("key", _KEY)
    return _in_file(files[_LOGIN], now) if _LOGIN in files else NONE


def _in_file(content: bytes | str, now: float) -> LoginState:
    try:
        login = document(content)
    except Unreadable as exc:
        return LoginState("unreadable", _LOGIN, reason=str(exc))
    end = seconds(login.get("expiry_date"), 1000)
    return account(_LOGIN, now, access=login.get("access_token"), refresh=login.get("refresh_token"), end=end)


AGENT = Agent(
    commands={"podbot": ("gemini", "--yolo"), "acp": ("gemini", "--acp", "--yolo")},
    asking={
        "podbot": ("gemini", "--approval-mode", "default"),
        "acp": ("gemini", "--acp", "--approval-mode", "default"),
    },
    env={
        # Without it, gemini asks for permission despite --yolo, and without a terminal it exits with status 55.
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        # Otherwise a repository's settings could make it start its own container inside this one.
        "GEMINI_SANDBOX": "false",
        "BASH_ENV": _BASHENV,
    },
    # The workspace counts as trusted, so Gemini takes variables from its .env unless they are set, if only to nothing
    # (0.61): an address there got the operator's key.
    defaults={
        _ADDRESS: "",
        "GOOGLE_VERTEX_BASE_URL": "",
        "CODE_ASSIST_ENDPOINT": "https://cloudcode-pa.googleapis.com",  # its own; it would use an empty one
        "GEMINI_CLI_SYSTEM_DEFAULTS_PATH": _DEFAULTS,  # the settings that count least
    },
    files={"full": _FILES, "ask": _FILES},
    # On a terminal it otherwise asks which kind of login to use, although the key is there (0.61).
    key_files={"GEMINI_API_KEY": {_DEFAULTS: json.dumps({**_SETTINGS_BELOW, **_BY_KEY}) + "\n"}},
    login=Login(
        variables=("GEMINI_API_KEY", *_CLOUDS),
        methods=frozenset({"gemini-api-key", "vertex-ai", "gateway"}),
        others=frozenset({"oauth-personal"}),
        advice=f"run `podbot login gemini`, or {api_key_advice('GEMINI_API_KEY')}, and set it where podbot starts",
        workspace=(".gemini/.env", ".env"),
        judge=judge,
    ),
    # It writes into the file that a link leads to (0.61). On a terminal it asks for a kind of login, even if there is a
    # file, until its settings select one.
    own_login=OwnLogin(
        ".gemini/oauth_creds.json",
        ("gemini",),
        kept=("access_token", "refresh_token", "id_token", "scope", "token_type", "expiry_date"),
        tokens=("access_token", "refresh_token"),
        hint="when Gemini shows its prompt, the login is done: leave it with /quit",
        env={"NO_BROWSER": "true"},
        texts={".gemini/settings.json": '{"security": {"auth": {"selectedType": "oauth-personal"}}}\n'},
    ),
    settings=(".gemini/settings.json", ".gemini/extensions", ".gemini/.env", ".env"),
    refused=(".gemini",),
    through=through_gateway,
    conversations=Conversations("/root/.gemini/tmp", ("--resume", "latest")),
    build=Build("@google/gemini-cli", "0.61.0", megabytes=101, node=("gemini",)),
    page=Page(
        permissions=(("", "`--yolo`", "`--approval-mode default`: asks before commands and changes"),),
        fixed=(
            (
                "`GEMINI_CLI_TRUST_WORKSPACE=true`",
                "otherwise it asks despite `--yolo`, and without a terminal it exits with status 55",
            ),
            (
                f"`BASH_ENV={_BASHENV}`",
                (
                    "gemini hides git's configuration and askpass helper from the commands that it runs, so commits "
                    "and pushes fail; this small file restores them"
                ),
            ),
            (
                "`GOOGLE_GEMINI_BASE_URL` and `GOOGLE_VERTEX_BASE_URL` empty, `CODE_ASSIST_ENDPOINT` its own",
                (
                    "otherwise an address in the project's `.env` gets your key (0.61); here `sandbox.env`, `-e` and "
                    "`agent.env_allowlist` do override them, an image's own `ENV` does not"
                ),
            ),
            (
                "`GEMINI_CLI_SYSTEM_DEFAULTS_PATH`",
                (
                    "a file with the settings that count least: old conversations are not cleaned up, which deletes "
                    "continued ones (0.61); and with `GEMINI_API_KEY` its screen does not ask for a kind of login. It "
                    "stands for the image's own file of that kind"
                ),
            ),
            (
                "`GEMINI_SANDBOX=false`",
                (
                    "otherwise a repository's settings make it start its own container, from an image that does not "
                    "exist"
                ),
            ),
        ),
        optional=(
            (
                "`GEMINI_CLI_NO_RELAUNCH=true`",
                (
                    "`gemini -p` ends after 2.1 s instead of 3.8 s, without the larger heap for which it otherwise "
                    "restarts itself"
                ),
            ),
        ),
        resume="`--resume latest`",
        editor="load",
    ),
)
