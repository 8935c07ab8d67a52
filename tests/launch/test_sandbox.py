"""The plan of a sandbox without an agent."""

from __future__ import annotations

from typing import Any

import pytest

from podbot.config.models import AppConfig
from podbot.errors import IllegalCombination, MissingRequired, MountRefused
from podbot.launch.plan import normalize, plan_sandbox
from podbot.launch.resources.guard import GuardPlan
from podbot.launch.resources.token import TokenPlan
from podbot.launch.types import CredentialSource, LaunchRequest, SandboxPlan
from tests.launch.build import FLAG, config, directory, facts, typed
from tests.launch.resources.test_token import APP

BOX = typed(subcommand="sandbox")


def plan(values: dict[str, Any] | None = None, request: LaunchRequest = BOX, **changes: Any) -> SandboxPlan:
    return plan_sandbox(config(values), request, facts(**changes))


def test_it_has_what_a_session_has_but_for_the_agent() -> None:
    login = CredentialSource("claude", "/home/ann/.claude", "/home/ann/.claude", "/root/.claude")
    made = plan({"agent.kind": "claude"}, env={"ANTHROPIC_API_KEY": "k"}, credentials=(login,))
    session = normalize(config({"agent.kind": "claude"}), typed(), facts(credentials=(login,))).sandbox
    assert list(made.resources) == ["streams", "guard", "git_identity"]
    assert made.image_agent is None
    assert (made.container.mounts, made.container.security) == (session.container.mounts, session.container.security)
    assert (made.container.limits, made.keep, made.runtime_dir) == (
        session.container.limits, session.keep, session.runtime_dir,
    )  # fmt: skip
    assert {file.target for file in made.container.files} == {"/run/podbot/gitconfig", "/run/podbot/pipes"}
    assert "IS_SANDBOX" not in made.container.env


def test_its_labels_leave_nothing_to_the_image() -> None:
    labels = plan().container.labels
    assert labels.keys() == normalize(config(), typed(), facts()).sandbox.container.labels.keys()
    assert (labels["io.podbot.agent"], labels["io.podbot.mode"]) == ("", "sandbox")


def test_the_mount_policy_holds() -> None:
    with pytest.raises(MountRefused):
        plan(workspace=directory("/etc"))
    with pytest.raises(MountRefused):
        plan(request=LaunchRequest(subcommand="sandbox"), workspace=directory("/srv/untyped"))


def test_a_token_and_a_clone_are_had_the_same_way() -> None:
    made = plan(APP, typed(subcommand="sandbox", github_access="octo/shop"))
    assert made.find(TokenPlan) is not None
    assert made.find(GuardPlan) is not None
    cloning = APP | {"workspace.source": "github_clone", "workspace.host_path": None}
    made = plan(cloning, LaunchRequest(subcommand="sandbox", repo="octo/shop"))
    assert list(made.resources) == ["clone", "streams", "token", "git_identity"]
    assert (made.keep, made.container.workdir) == ("when_unsaved", f"{AppConfig().workspace.base_dir}/shop")


@pytest.mark.parametrize("changes", [{"words": ("true",)}, {"tty": True}])
def test_what_only_an_agent_uses_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(IllegalCombination) as caught:
        plan(request=typed(subcommand="sandbox", **changes))
    assert caught.value.field in changes


@pytest.mark.parametrize("values", [{"workspace.host_path": None}, {"workspace.source": "github_clone"}])
def test_hints_name_no_command_line(values: dict[str, Any]) -> None:
    with pytest.raises((MissingRequired, IllegalCombination)) as caught:
        plan(values, LaunchRequest(subcommand="sandbox"), workspace=None)
    assert "--" not in caught.value.remedy


def test_settings_of_the_agent_are_no_matter_and_others_are() -> None:
    assert plan({"agent.command": "x", "agent.mode": "acp"}).notes == plan().notes
    with pytest.raises(IllegalCombination):
        plan_sandbox(config({"workspace.base_dir": "/w"}, {"workspace.base_dir": FLAG}), BOX, facts())
