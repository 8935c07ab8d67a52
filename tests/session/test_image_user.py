"""An agent in an image whose user is not root."""

from __future__ import annotations

import dataclasses

import pytest

from podbot.launch.plan import normalize, plan_sandbox
from podbot.launch.types import CredentialSource, LaunchRequest
from podbot.session.image_user import other_user
from tests.launch.build import config, facts, typed

LOGIN = CredentialSource("claude", "/home/ann/.claude", "/home/ann/.claude", "/root/.claude", True)


@pytest.mark.parametrize("user", ["1000", "1000:1000", "node"])
def test_it_is_said_what_that_user_cannot_do(user: str) -> None:
    """Issue 29.23: the workspace could not be written, nor the login be read, and nothing was said."""
    made = normalize(config(), typed(), facts(credentials=(LOGIN,))).sandbox
    event = other_user(made, user)
    assert event is not None
    assert (event.level, event.fields["user"]) == ("warning", user)
    assert "login" in event.message
    assert "workspace" in event.message
    assert "USER root" in event.message


@pytest.mark.parametrize("user", ["", "0", "root", "0:0", "root:wheel"])
def test_root_can_do_everything(user: str) -> None:
    made = normalize(config(), typed(), facts(credentials=(LOGIN,))).sandbox
    assert other_user(made, user) is None


def test_only_what_the_session_has_is_named() -> None:
    made = normalize(config({"workspace.read_only": True}), typed(), facts()).sandbox
    assert other_user(made, "1000") is None
    made = normalize(config({"workspace.read_only": True}), typed(), facts(credentials=(LOGIN,))).sandbox
    event = other_user(made, "1000")
    assert event is not None
    assert "workspace" not in event.message


def test_a_sandbox_without_an_agent_has_the_user_that_its_caller_chose() -> None:
    request = dataclasses.replace(LaunchRequest(trusted_workspace=True), subcommand="sandbox")
    assert other_user(plan_sandbox(config(), request, facts()), "1000") is None
