"""The plan of a sandbox without an agent."""

from __future__ import annotations

from typing import Any

import pytest

from podbot.config.models import AppConfig, Origin
from podbot.errors import IllegalCombination, MissingRequired, MountRefused
from podbot.launch.plan import plan_sandbox, plan_session
from podbot.launch.resources.guard import GuardPlan
from podbot.launch.resources.token import TokenPlan
from podbot.launch.types import CredentialSource, LaunchRequest, SandboxPlan
from tests.launch.build import FLAG, config, directory, facts, typed
from tests.launch.resources.test_token import APP

BOX = typed()


def plan(values: dict[str, Any] | None = None, request: LaunchRequest = BOX, **changes: Any) -> SandboxPlan:
    return plan_sandbox(config(values), request, facts(**changes))


def test_it_has_everything_of_a_session_except_the_agent() -> None:
    login = CredentialSource("claude", "/home/ann/.claude", "/home/ann/.claude", "/root/.claude")
    made = plan({"agent.kind": "claude"}, env={"ANTHROPIC_API_KEY": "k"}, credentials=(login,))
    session = plan_session(config({"agent.kind": "claude"}), typed(), facts(credentials=(login,))).sandbox
    assert list(made.resources) == ["guard", "git_identity", "guest"]
    assert made.image_agent is None
    assert (made.container.mounts, made.container.security) == (session.container.mounts, session.container.security)
    assert (made.container.limits, made.keep, made.runtime_dir) == (
        session.container.limits, session.keep, session.runtime_dir,
    )  # fmt: skip
    assert {file.target for file in made.container.files} == {
        "/run/podbot/gitconfig", "/run/podbot/guest",
    }  # fmt: skip
    assert "IS_SANDBOX" not in made.container.env


def test_a_sealed_one_has_no_network_unless_one_is_named_and_a_home_that_can_be_written() -> None:
    made = plan({"sandbox.profile": "sealed"}).container
    assert (made.network, made.env["HOME"]) == ("none", "/tmp")
    named = plan_sandbox(
        config({"sandbox.profile": "sealed", "sandbox.network": "default"}, {"sandbox.network": FLAG}), BOX, facts()
    )
    assert named.container.network == "default"


def test_its_labels_override_all_of_the_images() -> None:
    labels = plan().container.labels
    assert labels.keys() == plan_session(config(), typed(), facts()).sandbox.container.labels.keys()
    assert (labels["io.podbot.agent"], labels["io.podbot.mode"]) == ("", "sandbox")


def test_the_mount_policy_applies() -> None:
    with pytest.raises(MountRefused):
        plan(workspace=directory("/etc"))
    with pytest.raises(MountRefused):
        plan(request=LaunchRequest(), workspace=directory("/srv/untyped"))


def test_a_token_and_a_clone_work_in_the_same_way() -> None:
    made = plan(APP, typed(github_access="octo/shop"))
    assert made.find(TokenPlan) is not None
    assert made.find(GuardPlan) is not None
    cloning = APP | {"workspace.source": "github_clone", "workspace.host_path": None}
    made = plan(cloning, LaunchRequest(repo="octo/shop"))
    assert list(made.resources) == ["clone", "token", "git_identity", "guest"]
    assert (made.keep, made.container.workdir) == ("when_unsaved", f"{AppConfig().workspace.base_dir}/shop")


@pytest.mark.parametrize("changes", [{"words": ("true",)}, {"tty": True}, {"env": {"A": "s3cret"}}])
def test_parameters_that_only_an_agent_uses_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(IllegalCombination) as caught:
        plan(request=typed(**changes))
    assert caught.value.field in changes
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("values", [{"workspace.host_path": None}, {"workspace.source": "github_clone"}])
def test_hints_name_no_command_line(values: dict[str, Any]) -> None:
    with pytest.raises((MissingRequired, IllegalCombination)) as caught:
        plan(values, LaunchRequest(), workspace=None)
    assert "--" not in caught.value.remedy


def test_settings_of_the_agent_are_ignored_and_others_are_not() -> None:
    assert plan({"agent.command": "x", "agent.mode": "acp"}).notes == plan().notes
    with pytest.raises(IllegalCombination):
        plan_sandbox(config({"workspace.base_dir": "/w"}, {"workspace.base_dir": FLAG}), BOX, facts())


def test_a_sandbox_may_have_no_workspace() -> None:
    made = plan({"workspace.source": "none"}, LaunchRequest(), workspace=None)
    assert (made.workspace, made.container.workdir, made.container.mounts) == (None, None, ())
    assert (made.keep, made.container.labels["io.podbot.workspace"]) == ("never", "none")
    assert list(made.resources) == ["git_identity", "guest"]
    extra = {"workspace.source": "none", "sandbox.extra_mounts": ("/srv/data:/data:ro",)}
    allowed = {"extra_mounts": (directory("/srv/data"),), "allowed_roots": (directory("/srv"),)}
    mounted = plan(extra, LaunchRequest(), workspace=None, **allowed)
    assert [(mount.source, mount.target) for mount in mounted.container.mounts] == [("/srv/data", "/data")]
    with pytest.raises(MountRefused):
        plan(extra, LaunchRequest(), workspace=None, **{**allowed, "allowed_roots": ()})


@pytest.mark.parametrize("subcommand", ["run", "host"])
def test_an_agent_needs_a_workspace(subcommand: Any) -> None:
    with pytest.raises(IllegalCombination) as caught:
        plan_session(config({"workspace.source": "none"}), typed(), facts(workspace=None), subcommand)
    assert caught.value.field == "workspace.source"


@pytest.mark.parametrize("origin", [Origin("file", "/f"), Origin("environment", "X")])
def test_no_file_opens_the_network_of_a_sealed_one(origin: Origin) -> None:
    made = config({"sandbox.profile": "sealed", "sandbox.network": "shop"}, {"sandbox.network": origin})
    assert plan_sandbox(made, BOX, facts()).container.network == "none"


def test_a_sealed_one_refuses_what_needs_a_network() -> None:
    with pytest.raises(IllegalCombination) as caught:
        plan(APP | {"sandbox.profile": "sealed"}, typed(github_access="octo/shop"))
    assert caught.value.field == "sandbox.profile"
    cloning = APP | {"workspace.source": "github_clone", "workspace.host_path": None, "sandbox.profile": "sealed"}
    with pytest.raises(IllegalCombination):
        plan(cloning, LaunchRequest(repo="octo/shop"))
