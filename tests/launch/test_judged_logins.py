"""What a plan says of the agent's login, and the login that podbot makes of a key."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from podbot.agents.login_state import LoginState
from podbot.agents.registry import agents
from podbot.errors import MountRefused
from podbot.launch.describe import describe
from podbot.launch.plan import plan_session
from podbot.launch.resources.credentials import CredentialsPlan
from podbot.launch.types import CredentialSource, LaunchPlan
from podbot.session.plan_json import plan_from, public_part
from tests.launch.build import config, directory, facts, resource, text_of, typed

SECRET = "c4n4ry-key"
CODEX = CredentialSource("codex", "/home/ann/.codex", "/home/ann/.codex", "/root/.codex")
CLAUDE = CredentialSource("claude", "/home/ann/.claude", "/home/ann/.claude", "/root/.claude")
EXPIRED = {
    "claudeAiOauth": {"accessToken": SECRET, "expiresAt": 1_000_000_000_000, "scopes": ["user:inference"]},
}


def plan(kind: str, *, given: dict[str, str] | None = None, **known: Any) -> LaunchPlan:
    return plan_session(config({"agent.kind": kind}), typed(env=given or {}), facts(**known))


def notes_of(made: LaunchPlan) -> str:
    text = "\n".join(made.sandbox.notes)
    assert SECRET not in text
    return text


@pytest.mark.parametrize(
    ("content", "state", "words"),
    [
        (b"{}", "blank", "/home/ann/.claude/.credentials.json has no login: its tokens are missing or blank"),
        (json.dumps(EXPIRED).encode(), "expired", "expired at 2001-09-09T01:46:40Z, and has no token that renews it"),
        (b'{"claudeAi', "unreadable", "has no login that can be read: it is not JSON"),
        ("Permission denied", "unreadable", "has no login that can be read: Permission denied"),
    ],
)
def test_a_login_that_does_not_work_is_said_before_the_start(content: bytes | str, state: str, words: str) -> None:
    made = plan("claude", credentials=(replace(CLAUDE, files={".credentials.json": content}),))
    text = notes_of(made)
    assert "claude gets no login that works: " in text
    assert words in text
    assert "to give it one, run `podbot login claude`" in text
    assert "the agent can use that login" not in text
    assert "copying /home/ann/.claude to /root/.claude (creds.copy_claude); it has no login that works" in text
    assert describe(made)["agent_login"]["state"] == state
    assert made.agent.login is not None
    assert not made.agent.login.works


def test_a_key_that_is_set_on_the_host_and_not_passed_is_named() -> None:
    text = notes_of(plan("claude", login_variables=("CLAUDE_CODE_OAUTH_TOKEN",)))
    assert "to give it one, run `podbot login claude`" in text
    assert "; CLAUDE_CODE_OAUTH_TOKEN is set on this host, and not passed" in text
    text = notes_of(plan("claude", given={"ANTHROPIC_API_KEY": ""}, login_variables=("ANTHROPIC_API_KEY",)))
    assert "is set on this host" not in text
    own = plan("codex", own_logins=("codex",), own_login=b"{}", login_variables=("OPENAI_API_KEY",))
    assert "is set on this host" not in notes_of(own), "the agent would not use it"


OWN: dict[str, Any] = {"own_logins": ("codex",), "own_login": b"{}"}
PASS = 'pass in an API key: `-e OPENAI_API_KEY`, or agent.env_allowlist = ["OPENAI_API_KEY"]'


@pytest.mark.parametrize(
    ("values", "given", "known", "advice"),
    [
        ({"creds.copy_podbot": False}, {}, OWN,
         f"set creds.copy_podbot = true for the login that `podbot login codex` made, or {PASS}"),
        ({"creds.copy_podbot": False}, {}, {}, f"set creds.copy_podbot = true and run `podbot login codex`, or {PASS}"),
        ({}, {"CODEX_API_KEY": SECRET}, OWN,
         "run `podbot login codex` again, or `podbot logout codex` so that it uses CODEX_API_KEY"),
        ({}, {"OPENAI_API_KEY": ""}, OWN, f"run `podbot login codex` again, or `podbot logout codex` and {PASS}"),
        ({}, {}, {}, f"run `podbot login codex`, or {PASS}"),
    ],
)  # fmt: skip
def test_the_advice_has_an_effect(
    values: dict[str, Any], given: dict[str, str], known: dict[str, Any], advice: str
) -> None:
    made = plan_session(config({"agent.kind": "codex", **values}), typed(env=given), facts(**known))
    assert [note.partition("; to give it one, ")[2] for note in made.sandbox.notes if "to give it one" in note] == [
        advice
    ]
    assert SECRET not in notes_of(made)


def test_the_advice_of_each_agent_begins_with_podbot_s_own_login() -> None:
    """What is advised where that has no effect is made of the rest."""
    advice = {kind: login.advice for kind, found in agents().items() if (login := found.login) and found.own_login}
    assert sorted(advice) == ["claude", "codex", "gemini", "opencode"]
    assert all(text.startswith(f"run `podbot login {kind}`, or pass in") for kind, text in advice.items())


def test_a_dead_login_of_gemini_s_is_made_again_or_removed() -> None:
    text = notes_of(plan("gemini", given={"GEMINI_API_KEY": SECRET}, own_logins=("gemini",), own_login=b"{}"))
    assert "run `podbot login gemini` again, or `podbot logout gemini` so that it uses GEMINI_API_KEY" in text
    claude = notes_of(plan("claude", own_logins=("claude",), own_login=b"{}"))
    assert "to give it one, run `podbot login claude`, or pass in an API key" in claude, "it uses a key beside it"


def test_a_key_that_works_hides_the_file_and_an_empty_one_does_not() -> None:
    blank = replace(CLAUDE, files={".credentials.json": b"{}"})
    made = plan("claude", given={"ANTHROPIC_API_KEY": SECRET}, credentials=(blank,))
    assert "no login that works:" not in notes_of(made)
    assert describe(made)["agent_login"] == {
        "state": "key", "where": "ANTHROPIC_API_KEY", "at": None, "renews": False, "reason": "",
    }  # fmt: skip
    text = notes_of(plan("claude", given={"ANTHROPIC_API_KEY": ""}))
    assert "ANTHROPIC_API_KEY: the value is empty, so it does not log claude in" in text
    assert "no login for claude was found on this host; to give it one" in text


@pytest.mark.parametrize(
    ("kind", "name"),
    [("codex", "CODEX_ACCESS_TOKEN"), ("claude", "CLAUDE_CODE_USE_MANTLE"), ("opencode", "X_API_KEY")],
)
def test_a_login_by_another_variable_is_no_missing_one(kind: str, name: str) -> None:
    assert "no login" not in notes_of(plan(kind, given={name: "1"}))


def test_a_key_of_another_provider_is_no_login_for_codex_that_has_not_chosen_it() -> None:
    for name in ("ANTHROPIC_API_KEY", "BRAVE_API_KEY"):
        assert "no login for codex was found on this host" in notes_of(plan("codex", given={name: SECRET}))
    words = ("-c", "model_provider=x", "-c", 'model_providers.x.env_key="X_API_KEY"')
    found = config({"agent.kind": "codex"})
    made = plan_session(found, typed(env={"X_API_KEY": SECRET}, words=words), facts())
    assert "no login" not in notes_of(made)
    assert made.agent.login == LoginState("key", "X_API_KEY")
    text = notes_of(plan_session(found, typed(words=words), facts(credentials=(CODEX,))))
    assert "codex gets no login that works: model_provider has no login: it needs the variable 'X_API_KEY'" in text


@pytest.mark.parametrize(
    ("kind", "settings", "named"),
    [
        ("claude", (".claude/settings.json", ".mcp.json"), ".claude/settings.json"),
        ("gemini", (".gemini/settings.json", ".gemini/.env", ".env"), ".gemini/.env, .env"),
    ],
)
def test_a_login_that_the_workspace_may_have_is_not_said_to_be_missing(
    kind: str, settings: tuple[str, ...], named: str
) -> None:
    beside = f" (podbot does not look for one in the workspace's {named}); to give it one"
    assert f"no login for {kind} was found on this host{beside}" in notes_of(plan(kind, settings=settings))
    if kind == "claude":
        blank = replace(CLAUDE, files={".credentials.json": b"{}"})
        assert f"missing or blank{beside}" in notes_of(plan(kind, settings=settings, credentials=(blank,)))


def test_a_login_of_podbot_s_own_is_judged_too() -> None:
    made = plan("codex", own_logins=("codex",), own_login=b"{}")
    assert "the login that `podbot login codex` made has no login" in notes_of(made)
    key = plan("codex", own_logins=("codex",), own_login=b'{"OPENAI_API_KEY": "c4n4ry-key"}')
    assert "no login that works:" not in notes_of(key)


def test_gemini_uses_a_login_of_podbot_s_own_and_not_the_key_beside_it() -> None:
    """The settings that come with the login select it, and then Gemini asks no variable."""
    known: dict[str, Any] = {"own_logins": ("gemini",), "login_variables": ("GEMINI_API_KEY",)}
    for given in ({"GEMINI_API_KEY": SECRET}, {"GOOGLE_GENAI_USE_VERTEXAI": "true"}, {}):
        made = plan("gemini", given=given, own_login=b"{}", **known)
        assert "the login that `podbot login gemini` made has no login" in notes_of(made)
        assert "is set on this host, and not passed" not in notes_of(made)
        assert "selectedType" not in text_of(made, "/run/podbot/gemini-defaults.json")


def test_a_copied_login_is_usable_until_its_end() -> None:
    login = {"accessToken": SECRET, "expiresAt": 4_102_444_800_000, "scopes": ["user:inference"]}
    files = {".credentials.json": json.dumps({"claudeAiOauth": login}).encode()}
    made = plan("claude", credentials=(replace(CLAUDE, logged_in=True, files=files),))
    assert "the agent can use that login until 2100-01-01T00:00:00Z (creds.copy_claude)" in notes_of(made)


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "CODEX_API_KEY"])
@pytest.mark.parametrize("there", [(), (replace(CODEX, files={"auth.json": b"{}"}),)], ids=["no-file", "blank"])
def test_a_key_for_codex_becomes_the_login_that_codex_reads(variable: str, there: tuple[CredentialSource, ...]) -> None:
    made = plan("codex", given={variable: SECRET}, credentials=there)
    found = resource(made, CredentialsPlan)
    assert (found.keyed, found.key) == ("codex", SECRET)
    assert f"codex gets a login that podbot makes of {variable}" in notes_of(made)
    assert ("without its login" in notes_of(made)) == bool(there)
    record = json.dumps(public_part(made.sandbox))
    assert SECRET not in record + json.dumps(describe(made)) + repr(made)
    again = plan_from(json.loads(record)).find(CredentialsPlan)
    assert again is not None
    assert (again.refreshed(facts()).keyed, again.key) == ("codex", "")


@pytest.mark.parametrize(
    ("values", "given", "said"),
    [
        ({"sandbox.env": {"HOME": "/home/x"}}, {}, True),
        ({}, {"HOME": "/home/x"}, True),
        ({"sandbox.env": {"HOME": "/root/"}}, {}, False),
        ({}, {}, False),
    ],
)
def test_a_home_of_the_operator_s_in_which_no_login_is(
    values: dict[str, Any], given: dict[str, str], said: bool
) -> None:
    known = facts(credentials=(replace(CLAUDE, logged_in=True),))
    made = plan_session(config({"agent.kind": "claude", **values}), typed(env=given), known)
    notice = "HOME is '/home/x' for the agent, which may then not find its login: podbot puts it below /root"
    assert (notice in made.sandbox.notes) == said
    assert not any("HOME is" in note for note in plan("claude", given=given).sandbox.notes), "there is no login"


def test_codex_keeps_the_login_that_works_and_the_one_of_podbot_s_own() -> None:
    login = replace(CODEX, logged_in=True, files={"auth.json": b'{"tokens": {"refresh_token": "c4n4ry-key"}}'})
    each: tuple[dict[str, Any], ...] = ({"credentials": (login,)}, {"own_logins": ("codex",), "own_login": b"{}"})
    for known in each:
        made = plan("codex", given={"OPENAI_API_KEY": SECRET}, **known)
        assert resource(made, CredentialsPlan).keyed == ""
        assert made.agent.login is not None
        assert made.agent.login.where == "auth.json"


@pytest.mark.parametrize(("kind", "there"), [("codex", True), ("custom", True), ("claude", False)])
def test_codex_looks_for_its_login_in_the_file_whatever_its_copied_settings_name(kind: str, there: bool) -> None:
    made = plan_session(config({"agent.kind": kind, "agent.command": "codex"}), typed(), facts())
    found = {file.target: file.text for file in made.sandbox.files}
    wanted = 'cli_auth_credentials_store = "file"\n'
    assert found.get("/etc/codex/managed_config.toml") == (wanted if there else None)


def test_gemini_asks_for_no_kind_of_login_if_it_has_a_key() -> None:
    """It asked on its screen: "Existing API key detected. Select …"."""
    for given, chosen in (({"GEMINI_API_KEY": SECRET}, True), ({"GEMINI_API_KEY": " "}, False), ({}, False)):
        made = plan("gemini", given=given)
        settings = json.loads(text_of(made, made.sandbox.container.env["GEMINI_CLI_SYSTEM_DEFAULTS_PATH"]))
        assert settings["general"] == {"sessionRetention": {"enabled": False}}
        assert settings.get("security") == ({"auth": {"selectedType": "gemini-api-key"}} if chosen else None)


def test_no_other_agent_gets_a_login_made_of_a_key() -> None:
    for kind in ("claude", "gemini", "opencode"):
        assert resource(plan(kind, given={"OPENAI_API_KEY": SECRET}), CredentialsPlan).keyed == ""


def test_a_directory_that_an_agent_s_variable_names_is_never_mounted() -> None:
    named = replace(CLAUDE, given="/data/claude", source="/disk/claude")
    known: dict[str, Any] = {"credentials": (named,), "login_dirs": (("claude", "/data/claude"),)}
    for path in ("/data/claude", "/data/claude/skills", "/data", "/disk/claude"):
        with pytest.raises(MountRefused, match="where credentials or settings are"):
            plan_session(config({"workspace.host_path": path}), typed(), facts(workspace=directory(path), **known))
    made = plan("claude", given={"ANTHROPIC_API_KEY": SECRET}, **known)
    assert [source.source for source in resource(made, CredentialsPlan).first_run] == ["/data/claude/.claude.json"]
