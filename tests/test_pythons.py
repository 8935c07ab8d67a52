"""Which Pythons ``make test-pythons`` runs the tests with, and that CI runs the same."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from tests.pythons import MINORS, missing, supported

ROOT = Path(__file__).parents[1]


def test_only_those_that_podbot_runs_on() -> None:
    found = {"3.8.18": "/a", "3.10.2": "/b", "3.11.7": "/c", "3.14.0": "/d"}
    assert supported(found) == {"3.11.7": "/c", "3.14.0": "/d"}
    assert missing(supported(found)) == ["3.12", "3.13"]


def test_they_begin_with_the_lowest_that_podbot_requires() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["requires-python"] == f">=3.{min(MINORS)}"


def test_the_public_workflow_tests_with_all_of_them() -> None:
    text = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    matrix = re.search(r"(?m)^ *python: \[(.*)\]$", text)
    assert matrix is not None
    assert re.findall(r'"([\d.]+)"', matrix[1]) == [f"3.{minor}" for minor in MINORS]
