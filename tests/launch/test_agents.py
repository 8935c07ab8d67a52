from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import tomllib
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.agents.gemini import BASHENV_TEXT
from podbot.agents.registry import AgentMode, agent, agents
from podbot.config.models import AgentConfig, AgentKind
from podbot.errors import MissingRequired
from podbot.launch.agent_plan import command_for

CODEX: tuple[str, ...] = ("codex", "-c", "analytics.enabled=false", "-c", "check_for_update_on_startup=false")
CODEX += ("-c", 'projects={"/"={trust_level="trusted"}}')
ASKS = ("-c", 'approval_policy="on-request"', "-c", 'sandbox_mode="read-only"')
NEVER = ("-c", 'approval_policy="never"', "-c", 'sandbox_mode="danger-full-access"')
EXPECTED: dict[tuple[AgentKind, AgentMode], tuple[str, ...]] = {
    ("claude", "podbot"): ("claude", "--dangerously-skip-permissions"),
    ("claude", "acp"): ("claude-agent-acp",),
    ("codex", "podbot"): (*CODEX, "--dangerously-bypass-approvals-and-sandbox"),
    ("codex", "acp"): ("codex-acp",),
    ("codex", "codex_app_server"): (*CODEX, *NEVER, "app-server", "--listen", "stdio://"),
    ("opencode", "podbot"): ("opencode",),
    ("opencode", "acp"): ("opencode", "acp"),
    ("gemini", "podbot"): ("gemini", "--yolo"),
    ("gemini", "acp"): ("gemini", "--acp", "--yolo"),
}
ASKING = EXPECTED | {
    ("claude", "podbot"): ("claude", "--permission-mode", "default"),
    ("codex", "podbot"): (*CODEX, *ASKS),
    ("codex", "codex_app_server"): (*CODEX, *ASKS, "app-server", "--listen", "stdio://"),
    ("gemini", "podbot"): ("gemini", "--approval-mode", "default"),
    ("gemini", "acp"): ("gemini", "--acp", "--approval-mode", "default"),
}


def test_these_agents_have_the_expected_modes_and_no_other() -> None:
    known = {(kind, mode) for kind, _ in EXPECTED for mode in agent(kind).commands}
    assert known == set(EXPECTED)
    assert set(agent("custom").commands) == set(get_args(AgentMode))


@pytest.mark.parametrize(("kind", "mode"), EXPECTED)
def test_known_kind_appends_the_words(kind: AgentKind, mode: AgentMode) -> None:
    config = AgentConfig(kind=kind, mode=mode, command="ignored", args=("ignored",))
    assert command_for(config) == EXPECTED[kind, mode]
    assert command_for(config, ("--model", "x y")) == (*EXPECTED[kind, mode], "--model", "x y")
    config = dataclasses.replace(config, permissions="ask")
    assert command_for(config, ("--model", "x y")) == (*ASKING[kind, mode], "--model", "x y")


def test_an_agent_that_asks_has_the_same_modes_and_nothing_dangerous() -> None:
    for kind, found in agents().items():
        if kind != "custom":
            assert set(found.asking) == set(found.commands)
        words = [word for command in found.asking.values() for word in command]
        values = [*found.permission_env.get("ask", {}).values(), *found.files.get("ask", {}).values()]
        assert not [word for word in (*words, *values) if re.search("dangerous|yolo|bypass|full|allow", word)]


@given(st.text().filter(lambda text: not any("\ud800" <= char <= "\udfff" for char in text)))
def test_the_trusted_directory_is_valid_toml_for_any_name(directory: str) -> None:
    command = command_for(AgentConfig(kind="codex"), directory=directory)
    (setting,) = (word for word in command if word.startswith("projects="))
    assert "\n" not in setting
    assert tomllib.loads(setting) == {"projects": {directory: {"trust_level": "trusted"}}}


def test_a_path_that_toml_cannot_represent_is_omitted() -> None:
    assert "projects={}" in command_for(AgentConfig(kind="codex"), directory="/srv/\udcff")
    assert tomllib.loads("projects={}") == {"projects": {}}


def test_opencode_gets_a_rule_for_everything_that_it_would_ask_about() -> None:
    full, ask = (json.loads(agent("opencode").permission_env[each]["OPENCODE_PERMISSION"]) for each in ("full", "ask"))
    assert set(full.values()) == {"allow"}
    assert set(ask.values()) == {"ask"}
    assert set(full) == {"*", *ask}


def test_geminis_shell_has_gits_variables_and_shells_below_are_unchanged(tmp_path: Path) -> None:
    """Issue 10.11: gemini removes the identity and the askpass helper from git in the commands that it runs."""
    (tmp_path / "bashenv").write_text(BASHENV_TEXT)
    env = {
        "PATH": os.environ["PATH"], "BASH_ENV": str(tmp_path / "bashenv"), "GEMINI_CLI": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
    }  # fmt: skip
    script = "export GIT_CONFIG_NOSYSTEM=1; env; echo --; GIT_CONFIG_SYSTEM=x bash -c env"
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, text=True, check=True)
    first, below = done.stdout.split("--\n")
    assert "GIT_CONFIG_SYSTEM=/run/podbot/gitconfig" in first.splitlines()
    assert "GIT_CONFIG_GLOBAL" not in first
    assert "BASH_ENV" not in first
    assert {"GIT_CONFIG_SYSTEM=x", "GIT_CONFIG_NOSYSTEM=1"} <= set(below.splitlines())
    del env["GEMINI_CLI"]  # a wrapper around gemini
    done = subprocess.run(["bash", "-c", "env"], env=env, capture_output=True, text=True, check=True)
    assert {"GIT_CONFIG_NOSYSTEM=1", f"BASH_ENV={tmp_path}/bashenv"} <= set(done.stdout.splitlines())


@pytest.mark.parametrize("mode", get_args(AgentMode))
def test_custom_words_are_the_whole_command(mode: AgentMode) -> None:
    config = AgentConfig(kind="custom", mode=mode, command="goose", args=("acp",))
    assert command_for(config, ("sh", "-c", "true")) == ("sh", "-c", "true")
    assert command_for(config) == ("goose", "acp")


@pytest.mark.parametrize("command", [None, "", "  "])
def test_custom_without_a_command_says_how_to_set_one(command: str | None) -> None:
    with pytest.raises(MissingRequired) as caught:
        command_for(AgentConfig(kind="custom", command=command, args=("left", "over")))
    assert caught.value.field == "agent.command"
    assert "Write the command's words after --" in str(caught.value)


def test_claude_needs_is_sandbox_to_be_exactly_one() -> None:
    assert agent("claude").env["IS_SANDBOX"] == "1"


def test_no_agent_updates_itself_or_asks_before_it_works() -> None:
    assert agent("claude").env["DISABLE_AUTOUPDATER"] == "1"
    assert agent("opencode").env == {"OPENCODE_DISABLE_AUTOUPDATE": "1"}
    assert agent("gemini").env == {
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "GEMINI_SANDBOX": "false",
        "BASH_ENV": "/run/podbot/bashenv",
    }
    assert not agent("codex").env  # it gets its settings as arguments
    assert not agent("custom").env
