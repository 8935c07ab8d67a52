"""The environment for mini-swe-agent: its own command line with a model of fixed answers, on a real engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from e2e.harness import World
from e2e.integrations.extra import ROOT, interpreter, run

VERSION = "2.4.6"
SECONDS = 500
CLASS = "podbot.integrations.mini_swe_agent.PodbotEnvironment"


@pytest.fixture(scope="session")
def python() -> str:
    return interpreter("mini-swe-agent", f"mini-swe-agent=={VERSION}")


def answer(command: str) -> dict[str, Any]:
    return {"role": "assistant", "content": "", "extra": {"actions": [{"command": command}], "cost": 0.0}}


def trajectory(world: World, python: str, place: Path, environment: dict[str, Any], *commands: str) -> dict[str, Any]:
    """What ``mini`` writes when its model asks for these commands. Its prompts and options are its own."""
    model = {
        "model_name": "fixed",
        "model_class": "minisweagent.models.test_models.DeterministicModel",
        "outputs": [answer(command) for command in commands],
    }
    config, written = place / "config.yaml", place / "trajectory.json"
    config.write_text(json.dumps({"model": model, "environment": environment}))  # JSON is YAML
    words = [str(Path(python).with_name("mini")), "--environment-class", CLASS, "-c", "mini.yaml", "-c", str(config)]
    words += ["--task", "test", "--yolo", "--exit-immediately", "--output", str(written)]
    own = {"MSWEA_CONFIGURED": "true", "MSWEA_GLOBAL_CONFIG_DIR": str(place), "MSWEA_COST_TRACKING": "ignore_errors"}
    run(words, {**world.env, **own, "PYTHONPATH": str(ROOT)}, SECONDS)
    found: dict[str, Any] = json.loads(written.read_text())
    return found


def outputs(found: dict[str, Any]) -> list[str]:
    return [message["extra"]["raw_output"] for message in found["messages"] if "raw_output" in message.get("extra", {})]


def test_one_option_runs_an_agents_commands_in_a_sandbox(world: World, python: str, tmp_path: Path) -> None:
    submits = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo the patch"
    commands = ("echo $PAGER; id -un >&2; exit 3", "ls /sys/class/net", submits)
    before = world.sessions()
    found = trajectory(world, python, tmp_path, {"user": "agent"}, *commands)
    assert outputs(found) == ["cat\nagent\n", "lo\n"], "mini.yaml's variable, and no network"
    assert (found["info"]["exit_status"], found["info"]["submission"]) == ("Submitted", "the patch\n")
    assert found["info"]["config"]["environment_type"] == CLASS
    world.settled()
    assert world.sessions() == before, "the sandbox is removed"


def test_a_workspace_is_changed_in_place(world: World, python: str, tmp_path: Path) -> None:
    workspace = world.workspace()
    commands = ("pwd; echo made > made", "sleep 4714", "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT")
    found = trajectory(world, python, tmp_path, {"workspace": workspace, "timeout": 1}, *commands)
    assert outputs(found) == [f"{workspace}\n", ""]
    assert Path(workspace, "made").read_text() == "made\n"
