from __future__ import annotations

import json
import os
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.agents.registry import agents
from podbot.config.models import AGENT_KINDS, AgentKind, Origin
from podbot.launch.describe import describe
from podbot.launch.plan import plan_session
from podbot.launch.refused_paths import refusal, refused_sources, reserved_targets, within
from podbot.launch.resources.clone import ClonePlan
from podbot.launch.resources.history import HistoryPlan, plan_history, project_key
from podbot.launch.types import LaunchPlan, LaunchRequest
from tests.launch.build import config, directory, facts, resource, text_of, typed

CLONE = ClonePlan("octo/Hello", "main", "https://github.com/octo/Hello", "https://github.com", "/work/Hello")


def plan(values: dict[str, Any] | None = None, **changes: Any) -> LaunchPlan:
    return plan_session(config(values), typed(), facts(**changes))


def history(values: dict[str, Any] | None = None, clone: ClonePlan | None = None) -> HistoryPlan:
    source = {"workspace.source": "github_clone"} if clone is not None else {}
    found = plan_history(config({**source, **(values or {})}), facts(), "/home/ann/src/proj", clone)
    assert found is not None
    return found


STORES = {kind: found.conversations for kind, found in agents().items() if found.conversations is not None}


@pytest.mark.parametrize("kind", STORES)
def test_a_projects_store_is_mounted_where_its_agent_keeps_conversations(kind: AgentKind) -> None:
    made = plan({"agent.kind": kind})
    store = resource(made, HistoryPlan).store
    assert store.source == f"/home/ann/.local/state/podbot/history/{resource(made, HistoryPlan).key}/{kind}"
    assert (store.read_only, store.target) == (False, STORES[kind].target)
    assert store in made.sandbox.container.files
    assert made.sandbox.container.labels["io.podbot.history"] == resource(made, HistoryPlan).key
    assert made.sandbox.container.env.items() >= STORES[kind].env.items()
    # No other file of podbot's can be written.
    assert [mount.target for mount in made.sandbox.container.files if not mount.read_only] == [store.target]


def test_the_store_is_where_no_operator_can_mount_and_no_login_is() -> None:
    made = plan().sandbox.find(HistoryPlan)
    assert made is not None
    assert refusal(made.store.source, refused_sources(facts(), made.store.source))
    logins = (
        "/root/.claude/.credentials.json", "/root/.claude/settings.json", "/root/.codex/auth.json",
        "/root/.codex/config.toml", "/root/.gemini/oauth_creds.json", "/root/.local/share/opencode/auth.json",
    )  # fmt: skip
    for found in STORES.values():
        assert refusal(found.target, reserved_targets())
        assert not [login for login in logins if within(login, found.target)]


@pytest.mark.parametrize("values", [{"session.history": False}, {"agent.kind": "custom", "agent.command": "x"}])
def test_there_is_none_when_switched_off_or_for_a_custom_agent(values: dict[str, Any]) -> None:
    made = plan(values)
    assert made.sandbox.find(HistoryPlan) is None
    assert made.sandbox.container.labels["io.podbot.history"] == ""  # not absent: an image's own would be inherited
    assert all(mount.read_only for mount in made.sandbox.container.files)
    assert describe(made)["history"] is None


def test_the_operators_own_variable_is_used() -> None:
    made = plan({"agent.kind": "opencode", "sandbox.env": MappingProxyType({"OPENCODE_DB": "/mine"})})
    assert made.sandbox.container.env["OPENCODE_DB"] == "/mine"


def test_the_resume_command() -> None:
    assert history().resume == (
        "podbot", "run", "--workspace", "/home/ann/src/proj", "--agent", "claude", "--", "--continue",
    )  # fmt: skip
    assert history({"agent.kind": "gemini"}, CLONE).resume == (
        "podbot", "run", "--repo", "octo/Hello", "--branch", "main", "--agent", "gemini", "--", "--resume", "latest",
    )  # fmt: skip
    default_branch = CLONE.__class__(**{**vars(CLONE), "branch": None})
    assert "--branch" not in history(clone=default_branch).resume
    flagged = plan_history(config({"image": "mine"}, {"image": Origin("flag", "--image")}), facts(), "/p", None)
    assert flagged is not None
    assert flagged.resume[2:4] == ("--image", "mine")


@pytest.mark.parametrize("origin", [Origin("flag", "--x"), Origin("override")])
def test_the_resume_command_repeats_this_sessions_options(origin: Origin) -> None:
    """Without ``--ask`` the conversation would continue with full permissions."""
    values = {"agent.permissions": "ask", "engine_socket": "unix:///s", "image": "mine"}
    made = replace(config(values, dict.fromkeys(values, origin)), file="/home/ann/a b.toml")
    found = plan_history(made, facts(), "/p", None)
    assert found is not None
    assert found.resume[2:-2] == (
        "--config", "/home/ann/a b.toml", "--engine-socket", "unix:///s", "--image", "mine", "--ask",
        "--workspace", "/p", "--agent", "claude",
    )  # fmt: skip
    full = plan_history(config({"agent.permissions": "full"}, {"agent.permissions": origin}), facts(), "/p", None)
    assert full is not None
    assert "--ask" not in full.resume


def test_the_resume_command_omits_lasting_settings() -> None:
    values = {"agent.permissions": "ask", "engine_socket": "unix:///s", "image": "mine"}
    assert history(values).resume == history().resume
    set_in_shell = {key: Origin("environment", "X") for key in values}
    found = plan_history(config(values, set_in_shell), facts(), "/home/ann/src/proj", None)
    assert found is not None
    assert found.resume == history().resume


def test_a_dry_run_shows_it() -> None:
    odd = "/home/ann/a b"
    made = plan_session(config({"workspace.host_path": odd}), typed(), facts(workspace=directory(odd)))
    shown = describe(made)["history"]
    assert shown["project"] == odd
    assert "'/home/ann/a b'" in shown["resume"]
    assert shown["store"] == resource(made, HistoryPlan).store.source


def test_the_mode_of_an_agent_does_not_matter() -> None:
    asked = LaunchRequest(trusted_workspace=True)
    hosted = plan_session(
        config({"agent.kind": "codex", "agent.mode": "codex_app_server"}), asked, facts(), "host"
    ).sandbox.find(HistoryPlan)
    ran = plan({"agent.kind": "codex"}).sandbox.find(HistoryPlan)
    assert hosted is not None
    assert ran is not None
    assert hosted.store == ran.store


def test_gemini_is_configured_to_delete_no_conversation() -> None:
    made = plan({"agent.kind": "gemini"})
    text = text_of(made, made.sandbox.container.env["GEMINI_CLI_SYSTEM_DEFAULTS_PATH"])
    assert json.loads(text) == {"general": {"sessionRetention": {"enabled": False}}}


PATHS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30).map(lambda s: "/" + s)


@given(one=PATHS, other=PATHS)
def test_two_projects_never_share_a_store_and_a_key_is_no_path(one: str, other: str) -> None:
    keys = project_key("host_mount", one), project_key("host_mount", other)
    assert (keys[0] == keys[1]) == (one == other)
    assert os.path.basename(keys[0]) == keys[0]
    assert len(keys[0]) == 32
    assert project_key("github_clone", one) != keys[0]


def test_a_repository_is_one_project_however_it_is_spelled() -> None:
    assert project_key("github_clone", "https://github.com/Octo/A") == project_key(
        "github_clone", "https://github.com/octo/a"
    )
    assert project_key("host_mount", "/A") != project_key("host_mount", "/a")


def test_every_kind_except_custom_has_a_directory() -> None:
    assert {*STORES, "custom"} == set(AGENT_KINDS)
