"""The section for the library weakincentives, in prompts of it on a real engine.

``podbot[weakincentives]`` needs a Python >= 3.13. This file is collected only where there is one: see
``e2e/conftest.py``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from e2e.harness import World
from e2e.integrations.extra import ROOT, interpreter, newer_python, run

SECONDS = 300
IMPORT = "from podbot.integrations.weakincentives import PodbotSection"


@pytest.fixture(scope="session")
def python() -> str:
    return interpreter("weakincentives", "pytest", python=str(newer_python(13)))


def environment(world: World) -> dict[str, str]:
    return {**world.sealed_env, "PYTHONPATH": str(ROOT)}


def test_its_prompts_and_sessions(world: World, python: str, tmp_path: Path) -> None:
    checks, report = str(ROOT / "e2e" / "integrations" / "weakincentives_checks.py"), tmp_path / "report.xml"
    words = [python, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(tmp_path), "--noconftest"]
    words += ["-W", "error::ResourceWarning", "-p", "no:cacheprovider", f"--junitxml={report}"]
    run([*words, checks], environment(world), SECONDS)
    suite: Any = next(ET.parse(report).iter("testsuite"))
    assert (suite.get("skipped"), int(suite.get("tests")) >= 10) == ("0", True)


def test_an_import_without_the_library_is_one_error_with_a_remedy(world: World) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT], env=environment(world), capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("podbot.errors.base.ExtraUnusable: podbot[weakincentives] cannot be used: ")
    assert "Use Python 3.13 or later" in last or "pip install '.[weakincentives]'" in last
