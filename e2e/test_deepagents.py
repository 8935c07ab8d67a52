"""The backend for LangChain's deepagents: LangChain's own suite for sandboxes, and an agent, on a real engine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from e2e.harness import World
from e2e.integrations.extra import ROOT, interpreter, run
from e2e.shells import image_with

CASES = 86  # 85, and one that looks whether any was replaced
CHANGED = 7  # of them, since deepagents 0.7
USERS = ("TestAsRoot", "TestAsAnotherUser")
SUITE = "langchain-tests==1.1.9"
SECONDS = 500
IMPORT = "from podbot.integrations.deepagents_backend import PodbotBackend"


@pytest.mark.parametrize(("version", "expected"), [("0.6.12", 0), ("0.7.32", 2 * CHANGED)])
def test_langchains_suite_passes_as_root_and_as_another_user(
    world: World, version: str, expected: int, tmp_path: Path
) -> None:
    """The suite describes deepagents 0.6; see ``CHANGED`` for what later ones do otherwise."""
    python = interpreter("langchain", SUITE, f"deepagents=={version}", name=f"langchain-{version}")
    checks, report = str(ROOT / "e2e" / "integrations" / "deepagents_checks.py"), tmp_path / "report.xml"
    words = [python, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(tmp_path), "--noconftest"]
    words += ["-o", "asyncio_mode=auto", "-p", "no:cacheprovider", f"--junitxml={report}", checks]
    env = {**world.env, "PYTHONPATH": str(ROOT), "CHECK_WORKSPACE": world.workspace(), "LANGSMITH_TRACING": "false"}
    with image_with(world, "deepagents", "RUN ln -s python3 /usr/bin/python") as ref:  # the suite calls it so
        run(words, {**env, "PODBOT_IMAGE": ref}, SECONDS)
    suite: Any = next(ET.parse(report).iter("testsuite"))
    assert int(suite.get("skipped")) == expected
    theirs = [case for case in suite.iter("testcase") if case.get("classname").rpartition(".")[2] in USERS]
    assert len(theirs) == len(USERS) * CASES


def test_an_import_without_the_library_is_one_error_with_a_remedy(world: World) -> None:
    done = subprocess.run([sys.executable, "-c", IMPORT], env=world.env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("podbot.errors.base.ExtraUnusable: podbot[langchain] cannot be used: deepagents is not")
    assert "pip install '.[langchain]'" in last
