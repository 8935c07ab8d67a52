"""The tests of a filesystem that the library weakincentives ships, on podbot's filesystems: Podman and local.

They need a Python >= 3.13. This file is collected only where there is one: see ``e2e/conftest.py``.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from e2e.harness import World
from e2e.integrations.extra import ROOT, interpreter, newer_python, run
from e2e.patience import patient

VERSION = "0.27.0"
CASES = 129
SECONDS = 500
PAGE = ROOT / "docs" / "reference" / "conformance.md"
# What the two tests say that cannot run with this version; the page says why.
NO_MODULE = "No module named 'weakincentives.contrib.tools'"


@pytest.fixture(scope="session")
def python() -> str:
    """The same as that of ``e2e/test_weakincentives.py``."""
    return interpreter("weakincentives", "pytest", python=str(newer_python(13)))


@pytest.fixture(scope="session")
def theirs(python: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library's source distribution, which has its tests; the installed library is what they import."""
    place = tmp_path_factory.mktemp("theirs")
    assert (
        run([python, "-m", "pip", "show", "weakincentives"], os.environ, SECONDS).splitlines()[1]
        == f"Version: {VERSION}"
    )
    words = [python, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "--ignore-requires-python"]
    run([*words, f"weakincentives=={VERSION}", "-d", str(place)], os.environ, SECONDS)
    run(["tar", "-xzf", f"{place}/weakincentives-{VERSION}.tar.gz", "-C", str(place)], os.environ, SECONDS)
    return place / f"weakincentives-{VERSION}"


def listed() -> set[str]:
    """The tests that do not pass, by the page."""
    section = PAGE.read_text(encoding="utf-8").partition("## weakincentives' tests of a filesystem")[2]
    return set(re.findall(r"(?m)^\| `(test_\w+)` \|", section.partition("\n## ")[0]))


@pytest.mark.parametrize("kind", ["podman", "local", "host"])
def test_their_tests_of_a_filesystem(world: World, python: str, theirs: Path, tmp_path: Path, kind: str) -> None:
    checks, report = ROOT / "e2e" / "integrations" / "weakincentives_filesystem_checks.py", tmp_path / "report.xml"
    words = [python, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(tmp_path), "--noconftest"]
    words += ["--import-mode=importlib", "-p", "no:cacheprovider", f"--junitxml={report}", str(checks)]
    # Theirs first: both have a package `tests`.
    env = {**world.sealed_env, "PYTHONPATH": f"{theirs}:{ROOT}", "CHECK_KIND": kind}
    done = subprocess.run(
        words, env=env, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=patient(SECONDS)
    )
    assert report.exists(), done.stdout + done.stderr
    suite = next(ET.parse(report).iter("testsuite"))
    assert (suite.get("tests"), suite.get("skipped"), suite.get("errors")) == (str(CASES), "0", "0"), done.stdout
    failed = {case.get("name"): case.find("failure") for case in suite.iter("testcase") if len(case)}
    assert set(failed) == listed(), done.stdout
    assert all(NO_MODULE in str(said.text) for said in failed.values() if said is not None)
