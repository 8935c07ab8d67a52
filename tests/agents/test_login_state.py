"""Whether a login works, as the real agents say it of the same files and variables."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.agents.login_state import LARGEST, LoginFiles, LoginState
from podbot.agents.registry import agent, known

NOW = 1_800_000_000.0
PAST, LATER = 1_700_000_000, 1_900_000_000
SECRET = "c4n4ry-token"


def judge(kind: str, files: LoginFiles, env: dict[str, str] | None = None, command: tuple[str, ...] = ()) -> LoginState:
    login = agent(kind).login
    assert login is not None
    assert login.judge is not None
    return login.judge(files, env or {}, NOW, command)


def jwt(**claims: Any) -> str:
    part = base64.urlsafe_b64encode(json.dumps(claims).encode()).decode().rstrip("=")
    return f"e30.{part}.{SECRET}"


def claude(**changes: Any) -> bytes:
    login = {"accessToken": SECRET, "refreshToken": SECRET, "expiresAt": PAST * 1000, "scopes": ["user:inference"]}
    return json.dumps({"claudeAiOauth": {**login, **changes}}).encode()


def codex(**tokens: Any) -> bytes:
    return json.dumps({"auth_mode": "chatgpt", "OPENAI_API_KEY": None, "tokens": tokens}).encode()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"{}", ("blank", None, False)),
        (b"", ("blank", None, False)),
        (claude(accessToken="", refreshToken=""), ("blank", None, False)),
        (b'{"claudeAiOauth": {"accessToken": "c4n', ("unreadable", None, False)),
        (b"[1]", ("unreadable", None, False)),
        (b'"' + b"a" * LARGEST, ("unreadable", None, False)),
        ("Permission denied", ("unreadable", None, False)),
        (claude(scopes=["org:create_api_key"]), ("unreadable", None, False)),
        (claude(refreshToken=""), ("expired", PAST, False)),
        (claude(refreshTokenExpiresAt=PAST * 1000), ("expired", PAST, False)),
        (claude(), ("usable", None, True)),  # at its first request it renews what has expired
        (claude(refreshTokenExpiresAt=LATER * 1000), ("usable", LATER, True)),
        (claude(refreshToken=None, expiresAt=LATER * 1000), ("usable", LATER, False)),
        (claude(refreshToken=None, expiresAt="soon"), ("usable", None, False)),
    ],
)
def test_the_file_of_claude(content: bytes | str, expected: tuple[str, float | None, bool]) -> None:
    found = judge("claude", {".credentials.json": content})
    assert (found.state, found.at, found.renews) == expected
    assert found.where == ".credentials.json"


@pytest.mark.parametrize(
    ("settings", "env", "expected"),
    [
        ({}, {}, ("none", "")),
        ({}, {"ANTHROPIC_API_KEY": ""}, ("none", "")),
        ({}, {"ANTHROPIC_API_KEY": "k"}, ("key", "ANTHROPIC_API_KEY")),
        ({}, {"CLAUDE_CODE_OAUTH_TOKEN": "k"}, ("key", "CLAUDE_CODE_OAUTH_TOKEN")),
        ({}, {"CLAUDE_CODE_USE_BEDROCK": "0"}, ("none", "")),
        ({}, {"CLAUDE_CODE_USE_BEDROCK": "1"}, ("cloud", "CLAUDE_CODE_USE_BEDROCK")),
        ({}, {"CLAUDE_CODE_USE_MANTLE": "true"}, ("cloud", "CLAUDE_CODE_USE_MANTLE")),
        ({}, {"CLAUDE_CODE_USE_ANTHROPIC_AWS": "1"}, ("cloud", "CLAUDE_CODE_USE_ANTHROPIC_AWS")),
        ({}, {"CLAUDE_CODE_USE_GATEWAY": "1"}, ("none", "")),
        ({"env": {"ANTHROPIC_API_KEY": "k"}}, {}, ("key", "settings.json: ANTHROPIC_API_KEY")),
        ({"env": {"ANTHROPIC_API_KEY": ""}}, {"ANTHROPIC_API_KEY": "k"}, ("none", "")),
        ({"env": {"CLAUDE_CODE_USE_VERTEX": "1"}}, {}, ("cloud", "settings.json: CLAUDE_CODE_USE_VERTEX")),
        ({"apiKeyHelper": "print-key"}, {}, ("key", "settings.json: apiKeyHelper")),
        ({"env": [1], "apiKeyHelper": 1}, {}, ("none", "")),
    ],
)
def test_the_settings_and_variables_of_claude(
    settings: dict[str, Any], env: dict[str, str], expected: tuple[str, str]
) -> None:
    found = judge("claude", {"settings.json": json.dumps(settings).encode()}, env)
    assert (found.state, found.where) == expected


def test_settings_that_are_not_json_hide_no_login() -> None:
    assert judge("claude", {"settings.json": b"{", ".credentials.json": claude()}).state == "usable"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"{}", ("blank", None, False)),
        (b'{"tokens": {"id', ("unreadable", None, False)),
        (codex(access_token="", refresh_token=""), ("blank", None, False)),
        (codex(access_token=jwt(exp=PAST), refresh_token=SECRET), ("usable", None, True)),
        (codex(access_token=jwt(exp=PAST), refresh_token=""), ("expired", PAST, False)),
        (codex(access_token=jwt(exp=LATER)), ("usable", LATER, False)),
        (codex(access_token="no.jwt!.x"), ("usable", None, False)),
        (b'{"OPENAI_API_KEY": "c4n4ry-token"}', ("key", None, False)),
        (b'{"OPENAI_API_KEY": ""}', ("blank", None, False)),
        (b'{"auth_mode": "apikey", "OPENAI_API_KEY": null}', ("blank", None, False)),
        (b'{"auth_mode": "personalAccessToken", "personal_access_token": "c4n4ry-token"}', ("usable", None, False)),
        (b'{"auth_mode": "personalAccessToken"}', ("blank", None, False)),
    ],
)
def test_the_file_of_codex(content: bytes, expected: tuple[str, float | None, bool]) -> None:
    found = judge("codex", {"auth.json": content})
    assert (found.state, found.at, found.renews) == expected


LOGIN = {"auth.json": codex(refresh_token=SECRET)}
STORE = b'cli_auth_credentials_store = "%s"'
OTHER = b'model_provider = "x"\n[model_providers.x]\n'


@pytest.mark.parametrize(
    ("files", "env", "expected"),
    [
        ({}, {"CODEX_ACCESS_TOKEN": SECRET}, ("key", "CODEX_ACCESS_TOKEN")),
        (LOGIN, {"CODEX_ACCESS_TOKEN": SECRET}, ("key", "CODEX_ACCESS_TOKEN")),
        ({}, {"OPENAI_API_KEY": SECRET}, ("key", "OPENAI_API_KEY")),
        ({"auth.json": b"{}"}, {"OPENAI_API_KEY": SECRET}, ("key", "OPENAI_API_KEY")),
        (LOGIN, {"OPENAI_API_KEY": SECRET}, ("usable", "auth.json")),  # as Codex chooses
        ({"auth.json": b"{}"}, {"OPENAI_API_KEY": " "}, ("blank", "auth.json")),
        ({"config.toml": OTHER + b'env_key = "X_KEY"'}, {"X_KEY": SECRET}, ("key", "X_KEY")),
        ({"config.toml": OTHER + b'env_key = "X_KEY"'}, {}, ("blank", "config.toml: model_provider")),
        ({"config.toml": OTHER}, {}, ("cloud", "config.toml: model_provider")),
        ({**LOGIN, "config.toml": OTHER + b"requires_openai_auth = true"}, {}, ("usable", "auth.json")),
        ({**LOGIN, "config.toml": b"model_provider = ["}, {}, ("usable", "auth.json")),
        ({"config.toml": STORE % b"keyring"}, {}, ("unreadable", "config.toml")),
        ({"config.toml": STORE % b"keyring"}, {"OPENAI_API_KEY": SECRET}, ("key", "OPENAI_API_KEY")),
        ({**LOGIN, "config.toml": STORE % b"keyring"}, {}, ("usable", "auth.json")),  # podbot overrides the setting
        ({"config.toml": STORE % b"auto"}, {}, ("none", "")),
    ],
)
def test_the_settings_and_variables_of_codex(
    files: dict[str, bytes], env: dict[str, str], expected: tuple[str, str]
) -> None:
    found = judge("codex", files, env)
    assert (found.state, found.where) == expected


PROVIDED = 'model_providers.x={name="x", env_key="X_KEY"}'


@pytest.mark.parametrize(
    ("words", "env", "expected"),
    [
        ((), {"X_KEY": SECRET}, ("usable", "auth.json")),
        (("-c", 'model_provider="x"', "-c", PROVIDED), {"X_KEY": SECRET}, ("key", "X_KEY")),
        (("-cmodel_provider=x", f"--config={PROVIDED}", "exec"), {"X_KEY": SECRET}, ("key", "X_KEY")),
        (("--config", "model_provider=x", "-c", "model_providers.x.env_key=X_KEY"), {}, ("blank", "model_provider")),
        (("-c", "model_provider='x'"), {"Y_KEY": SECRET}, ("key", "Y_KEY")),  # config.toml describes it
        (("-c", "model_provider=ollama"), {}, ("cloud", "model_provider")),
        (("-c", "model_provider=openai"), {}, ("usable", "auth.json")),
        (("-c", "model=x", "-c", "-c", "-c"), {}, ("usable", "auth.json")),
        (("--oss",), {}, ("usable", "auth.json")),
    ],
)
def test_a_provider_that_the_words_of_codex_choose(
    words: tuple[str, ...], env: dict[str, str], expected: tuple[str, str]
) -> None:
    config = b'[model_providers.x]\nenv_key = "Y_KEY"\n'
    found = judge("codex", {**LOGIN, "config.toml": config}, env, ("codex", *words))
    assert (found.state, found.where) == expected
    assert judge("codex", LOGIN, env, ("codex-acp", *words)).where == "auth.json", "the adapter ignores words"


def test_a_provider_that_the_words_of_codex_choose_over_the_settings() -> None:
    config = {**LOGIN, "config.toml": OTHER + b'env_key = "X_KEY"'}
    assert judge("codex", config, {}, ("codex",)).state == "blank"
    assert judge("codex", config, {}, ("codex", "-c", "model_provider=openai")).where == "auth.json"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--oss",), ("cloud", "--oss")),
        (("exec", "--profile", "mine"), ("cloud", "--profile")),
        (("--profile=mine",), ("cloud", "--profile")),
        (("exec", "hello"), ("none", "")),
    ],
)
def test_a_provider_that_podbot_cannot_find_out_is_no_missing_login(
    words: tuple[str, ...], expected: tuple[str, str]
) -> None:
    found = judge("codex", {}, {}, ("codex", *words))
    assert (found.state, found.where) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('{"model_provider": "x", "model_providers": {"x": {"env_key": "X_KEY"}}}', ("key", "X_KEY")),
        ('{"model_provider": "openai"}', ("none", "")),
        ("{", ("none", "")),
        ("[1]", ("none", "")),
        ("\udcff", ("none", "")),  # a byte that is not UTF-8, as Python has it in a variable
    ],
)
def test_a_provider_in_the_variable_of_codex_s_adapter(given: str, expected: tuple[str, str]) -> None:
    env = {"CODEX_CONFIG": given, "X_KEY": SECRET}
    found = judge("codex", {}, env, ("codex-acp",))
    assert (found.state, found.where) == expected
    assert judge("codex", {}, env, ("codex",)).state == "none", "Codex itself does not read it"


@given(words=st.lists(st.sampled_from(["-c", "--config", "codex"]) | st.text(max_size=9).map("model_provider".__add__)))
def test_no_words_fail(words: list[str]) -> None:
    assert judge("codex", {}, {}, ("codex", *words)).where != "auth.json"


@pytest.mark.parametrize(
    ("kind", "files", "env", "expected"),
    [
        ("gemini", {"oauth_creds.json": b'{"refresh_token": "r"}'}, {}, ("usable", None)),
        ("gemini", {"oauth_creds.json": b'{"access_token": "a", "expiry_date": 1700000000000}'}, {}, ("expired", PAST)),
        ("gemini", {"oauth_creds.json": b"{}"}, {}, ("blank", None)),
        ("gemini", {}, {"GEMINI_API_KEY": "k"}, ("key", None)),
        ("gemini", {}, {"GOOGLE_API_KEY": "k"}, ("none", None)),  # it asks for a login
        ("gemini", {}, {"GOOGLE_API_KEY": "k", "GOOGLE_GENAI_USE_VERTEXAI": "true"}, ("cloud", None)),
        ("gemini", {}, {"GOOGLE_GEMINI_BASE_URL": "http://127.0.0.1:1"}, ("cloud", None)),
        ("opencode", {"auth.json": b'{"a": {"type": "api", "key": ""}, "b": {"key": "k"}}'}, {}, ("key", None)),
        ("opencode", {"auth.json": b'{"a": {"access": "k", "expires": 1700000000000}}'}, {}, ("expired", PAST)),
        ("opencode", {"auth.json": b"{}"}, {}, ("blank", None)),
        ("opencode", {"auth.json": b"{}"}, {"X_API_KEY": "k"}, ("key", None)),  # of another provider
        ("opencode", {}, {"X_API_KEY": "k"}, ("key", None)),
        ("opencode", {}, {"X_API_KEY": " "}, ("none", None)),
        ("opencode", {}, {}, ("none", None)),
    ],
)
def test_the_others(
    kind: str, files: dict[str, bytes], env: dict[str, str], expected: tuple[str, float | None]
) -> None:
    found = judge(kind, files, env)
    assert (found.state, found.at) == expected


NAMES = [
    "claudeAiOauth", "tokens", "accessToken", "access_token", "refresh_token", "expiresAt", "scopes", "env",
    "auth_mode", "OPENAI_API_KEY", "expiry_date", "expires", "key", "refreshTokenExpiresAt", "apiKeyHelper",
]  # fmt: skip
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.just(10**400) | st.floats() | st.just(SECRET) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(NAMES),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("kind", known())
@given(content=st.binary(max_size=40) | VALUES.map(lambda value: json.dumps(value).encode()))
def test_no_file_fails_or_is_shown(kind: str, content: bytes) -> None:
    names = (".credentials.json", "settings.json", "auth.json", "config.toml", "oauth_creds.json")
    found = judge(kind, dict.fromkeys(names, content))
    assert SECRET not in json.dumps(found.described(), allow_nan=False)
    assert SECRET not in repr(found)


@pytest.mark.parametrize("end", [10**400, -(10**400), 1e308, -1, 0])
def test_a_time_that_is_none(end: float) -> None:
    """An agent can write any token into the login that podbot keeps."""
    claims = base64.urlsafe_b64encode(json.dumps({"exp": end}).encode()).decode()
    content = json.dumps({"tokens": {"access_token": f"h.{claims}.s"}}).encode()
    assert judge("codex", {"auth.json": content}) == LoginState("usable", "auth.json")
    login = {"claudeAiOauth": {"accessToken": "x", "expiresAt": end, "scopes": ["user:inference"]}}
    assert judge("claude", {".credentials.json": json.dumps(login).encode()}).at is None


def test_a_deep_document_is_not_followed() -> None:
    deep = b'{"a":' * 100_000
    for kind, name in (("claude", ".credentials.json"), ("codex", "auth.json")):
        assert judge(kind, {name: deep}).state == "unreadable"
