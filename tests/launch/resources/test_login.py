"""A login of podbot's own in a session, and the line about a copy of the host's."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from podbot.container_spec import Mount
from podbot.launch.plan import plan_session
from podbot.launch.resources.credentials import CredentialsPlan
from podbot.launch.resources.login import LoginPlan, own_login
from podbot.launch.types import CredentialSource, LaunchPlan
from podbot.session.plan_json import plan_from, public_part
from tests.launch.build import config, facts, resource, typed

KINDS = ["claude", "codex", "gemini", "opencode"]
STORE = "/home/ann/.local/state/podbot/logins"
KEY = b'{"OPENAI_API_KEY": "k"}'
CODEX = CredentialSource("codex", "/home/ann/.codex", "/home/ann/.codex", "/root/.codex", logged_in=True, renews=True)
CLAUDE = replace(CODEX, family="claude", given="/home/ann/.claude", source="/home/ann/.claude", target="/root/.claude")


def plan(kind: str, values: dict[str, Any] | None = None, **known: Any) -> LaunchPlan:
    return plan_session(config({"agent.kind": kind, **(values or {})}), typed(), facts(**known))


@pytest.mark.parametrize("kind", KINDS)
def test_a_session_mounts_a_directory_of_its_own_and_nothing_of_another_session(kind: str) -> None:
    made = plan(kind, own_logins=(kind,))
    login = resource(made, LoginPlan)
    assert login.store == f"{STORE}/{kind}"
    assert login.mounted == f"{STORE}/{kind}/sessions/{made.sandbox.session}-20260801T120000Z/login"
    mounts = [mount for mount in made.sandbox.container.files if mount.source.startswith(STORE)]
    assert mounts == [Mount(login.mounted, "/run/podbot/login")]
    assert resource(made, CredentialsPlan).own == kind
    assert login.described() == {"agent": kind, "directory": login.mounted, "of_host": False}
    assert f"the agent gets the login that `podbot login {kind}` made (creds.copy_podbot)" in made.sandbox.notes
    spec = own_login(kind)
    assert spec is not None
    variable = spec.directory_variable
    assert not variable or made.sandbox.container.env[variable] == "/run/podbot/login"


def test_the_agent_s_variable_cannot_be_changed_by_the_configuration() -> None:
    values = {"sandbox.env": {"CLAUDE_SECURESTORAGE_CONFIG_DIR": "/elsewhere"}}
    made = plan("claude", values, own_logins=("claude",))
    assert made.sandbox.container.env["CLAUDE_SECURESTORAGE_CONFIG_DIR"] == "/run/podbot/login"


@pytest.mark.parametrize(
    ("kind", "values"),
    [("codex", {}), ("custom", {"agent.command": "x"}), ("claude", {"creds.copy_podbot": False})],
    ids=["none-kept", "custom", "switched-off"],
)
def test_without_one_nothing_is_mounted(kind: str, values: dict[str, Any]) -> None:
    made = plan(kind, values, own_logins=("claude",))
    assert made.sandbox.find(LoginPlan) is None
    assert resource(made, CredentialsPlan).own == ""
    assert not any("/logins/" in mount.source for mount in made.sandbox.container.files)


def test_it_replaces_the_host_s_login() -> None:
    made = plan("codex", credentials=(CODEX,), own_logins=("codex",))
    assert "copying /home/ann/.codex without its login to /root/.codex (creds.copy_codex)" in made.sandbox.notes
    assert not any("share one codex login" in note for note in made.sandbox.notes)


@pytest.mark.parametrize(
    ("found", "instead"),
    [
        (CODEX, ("`podbot login codex`", "an API key (`-e OPENAI_API_KEY`)")),
        (CLAUDE, ("`podbot login claude`", "an API key", "`claude setup-token` (`-e CLAUDE_CODE_OAUTH_TOKEN`)")),
    ],
)
def test_a_copy_that_can_end_the_host_s_login_is_announced_once(
    found: CredentialSource, instead: tuple[str, ...]
) -> None:
    for kind in (found.family, "custom"):
        made = plan(kind, {"agent.command": "x"} if kind == "custom" else {}, credentials=(found,))
        (note,) = [note for note in made.sandbox.notes if f"share one {found.family} login" in note]
        assert all(words in note for words in ("creds.copy_refresh_tokens = false", "`--no-creds`", *instead))


def test_a_copy_that_cannot_end_it_is_not_announced() -> None:
    key = plan("codex", credentials=(replace(CODEX, renews=False),))
    assert not any("share one" in note for note in key.sandbox.notes)


HOSTS = replace(CODEX, alone=True)


@pytest.mark.parametrize("renewable", [True, False])
def test_the_host_s_login_is_mounted_apart_from_the_copied_files(renewable: bool) -> None:
    made = plan("codex", {"creds.copy_refresh_tokens": renewable}, credentials=(HOSTS,))
    login = resource(made, LoginPlan)
    assert (login.of_host, login.source, login.renewable) == (True, "/home/ann/.codex/auth.json", renewable)
    assert login.store == f"{STORE}/codex.host/{login.name}"
    assert login.name == f"{made.sandbox.session}-20260801T120000Z"
    assert Mount(login.mounted, "/run/podbot/login") in made.sandbox.container.files
    copied = resource(made, CredentialsPlan)
    assert (copied.own, copied.renewable, copied.sources) == ("codex", renewable, (HOSTS,))
    assert any(
        "copying /home/ann/.codex to /root/.codex: the agent can use that login" in n for n in made.sandbox.notes
    )


@pytest.mark.parametrize(
    ("kind", "values", "known"),
    [
        ("codex", {}, {"credentials": (CODEX,)}),
        ("codex", {"creds.copy_codex": False}, {"credentials": (HOSTS,)}),
        ("claude", {}, {"credentials": (HOSTS,)}),
        ("gemini", {}, {"credentials": (HOSTS,)}),
        ("custom", {"agent.command": "x"}, {"credentials": (HOSTS,)}),
    ],
    ids=["of-another-form", "switched-off", "another-agent", "no-family", "custom"],
)
def test_otherwise_nothing_of_the_host_s_login_is_mounted(
    kind: str, values: dict[str, Any], known: dict[str, Any]
) -> None:
    assert plan(kind, values, **known).sandbox.find(LoginPlan) is None


def test_a_login_that_does_not_work_is_mounted_unless_a_key_may_take_its_place() -> None:
    expired = replace(HOSTS, logged_in=False)
    assert plan("codex", credentials=(expired,)).sandbox.find(LoginPlan) is None
    claude = CredentialSource("claude", "/home/ann/.claude", "/home/ann/.claude", "/root/.claude", alone=True)
    assert resource(plan("claude", credentials=(claude,)), LoginPlan).of_host


def test_a_restarted_session_reads_the_host_s_login_only_where_it_was() -> None:
    made = plan("codex", credentials=(HOSTS,)).sandbox
    login = made.find(LoginPlan)
    assert login is not None
    assert login.agrees_with(made, facts())
    for changed in (replace(login, of_host=False), replace(login, name="another"), replace(login, kind="claude")):
        assert not changed.agrees_with(made, facts())
    assert login.refreshed(facts(credentials=(HOSTS,))).is_there
    assert not login.refreshed(facts()).is_there
    assert not replace(login, source="/home/ann/.ssh/id_rsa").refreshed(facts(credentials=(HOSTS,))).is_there


def test_without_any_other_login_the_agent_is_not_said_to_have_none() -> None:
    assert not any("no login for" in note for note in plan("codex", own_logins=("codex",), own_login=KEY).sandbox.notes)
    assert any("no login for codex" in note for note in plan("codex").sandbox.notes)


def test_claude_s_first_screen_needs_its_reduced_file_with_this_login_too() -> None:
    made = plan("claude", own_logins=("claude",))
    assert [source.target for source in resource(made, CredentialsPlan).first_run] == ["/root/.claude.json"]
    assert resource(plan("claude"), CredentialsPlan).first_run == ()


def test_a_record_that_names_another_directory_is_not_believed() -> None:
    made = plan("codex", own_logins=("codex",)).sandbox
    assert plan_from(public_part(made)).resources == made.resources
    login = made.find(LoginPlan)
    assert login is not None
    assert login.agrees_with(made, facts())
    for changed in (
        LoginPlan("codex", "/home/ann/.codex", login.name),
        LoginPlan("codex", login.store, "another-session"),
        LoginPlan("claude", login.store, login.name),
    ):
        assert not changed.agrees_with(made, facts())
