"""The sandbox provider for Inspect: Inspect's self check, and an evaluation, on a real engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from e2e.harness import TAG, World, running, wait_for
from e2e.integrations.extra import ROOT, interpreter, run
from e2e.shells import image_with

CASES = 44
SECONDS = 500


@pytest.fixture(scope="session")
def python() -> str:
    return interpreter("inspect", "pytest", "trio")


@pytest.fixture(scope="module")
def user_image(shared_world: World) -> Iterator[str]:
    with image_with(shared_world, "inspect", "USER 1000") as ref:
        yield ref


def environment(world: World, **more: str) -> dict[str, str]:
    return {**world.env, "PYTHONPATH": str(ROOT), "PODBOT_SANDBOX_MEMORY": "1g", "E2E_TAG": TAG, **more}


@pytest.mark.parametrize("loop", ["asyncio", "trio"])
def test_inspects_self_check_passes_as_root_and_as_other_users(
    world: World, python: str, user_image: str, tmp_path: Path, loop: str
) -> None:
    report = tmp_path / "report.xml"
    checks = str(ROOT / "e2e" / "integrations" / "inspect_checks.py")
    words = [python, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(tmp_path), "--noconftest"]
    few = [] if loop == "asyncio" else ["-k", "cancelled or exec_output or large or cannot or gone"]
    env = environment(world, CHECK_IMAGE=user_image, INSPECT_ASYNC_BACKEND=loop)
    run([*words, "-p", "no:cacheprovider", f"--junitxml={report}", *few, checks], env, SECONDS)
    suite: Any = next(ET.parse(report).iter("testsuite"))
    assert suite.get("skipped") == "0"  # none is excused
    if loop == "asyncio":
        assert int(suite.get("tests")) >= 3 * CASES


def test_an_evaluation_with_a_mock_model(world: World, python: str, tmp_path: Path) -> None:
    log = evaluated(world, python, tmp_path, samples=2)
    assert log["status"] == "success", log.get("error")
    assert log["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 1.0
    first = log["samples"][0]
    said = [message["content"] for message in first["messages"] if message["role"] == "tool"]
    assert said[0] == "file of 0\nmade by setup\n0\n"
    assert said[1] == "42\n"
    failed = [message["error"] for message in first["messages"] if message.get("error")]
    assert [error["type"] for error in failed] == ["timeout"]


def test_every_block_of_the_page_runs(world: World, python: str, tmp_path: Path) -> None:
    page, program = ROOT / "docs" / "how-to" / "inspect.md", ROOT / "e2e" / "integrations" / "inspect_page.py"
    env = environment(world, PODBOT_IMAGE=world.image)
    task, chosen = json.loads(run([python, str(program), str(page), str(tmp_path)], env, SECONDS).splitlines()[-1])
    assert task == {"status": "success", "accuracy": 1.0, "printed": ["42\n"]}
    assert (chosen["status"], chosen["accuracy"]) == ("success", 1.0)
    user, directory, *_ = chosen["printed"][0].splitlines()
    assert (user, directory) == ("1000", "/home/app")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_evaluation_that_is_ended_leaves_nothing(world: World, python: str, tmp_path: Path, number: int) -> None:
    words = [*command(python, "waiting"), "--log-dir", str(tmp_path), "--display", "plain"]
    with subprocess.Popen(words, env=environment(world), cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True) as evaluation:  # fmt: skip
        try:
            wait_for(lambda: running(f"sleep 48445.{TAG}"), what="the sample's command", seconds=60)
        finally:
            evaluation.send_signal(number)
        evaluation.communicate(timeout=60)
    wait_for(lambda: not running(f"sleep 48445.{TAG}"), what="the command to end")
    world.cleaned()
    assert "inspect-" not in world.podbot("ps", "--all", "--json", check=True).stdout


def command(python: str, task: str) -> list[str]:
    """Inspect's command line, which takes relative paths only."""
    return [str(Path(python).with_name("inspect")), "eval", f"e2e/integrations/inspect_eval.py@{task}"]


def evaluated(world: World, python: str, tmp_path: Path, *, samples: int) -> dict[str, Any]:
    """The log of an evaluation by Inspect's command line, one sample after another as the model's script goes."""
    words = [*command(python, "sandboxed"), "-T", f"samples={samples}", "--max-samples", "1"]
    run([*words, "--log-format", "json", "--log-dir", str(tmp_path), "--display", "plain"], environment(world), SECONDS)
    (log,) = tmp_path.glob("*.json")
    found: dict[str, Any] = json.loads(log.read_text())
    return found
