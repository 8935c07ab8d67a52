"""The public CI: least permissions, actions by commit, and the steps of ``.ci/run``."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")


def test_it_may_read_the_repository_and_nothing_else() -> None:
    assert re.findall(r"(?m)^ *permissions:\n((?: +\S.*\n)*)", TEXT) == ["  contents: read\n"]
    assert "secrets." not in TEXT
    assert "pull_request_target" not in TEXT


def test_each_action_is_named_by_its_commit() -> None:
    used = re.findall(r"uses: (\S+)", TEXT)
    assert used
    assert [name for name in used if not re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", name)] == []


def test_the_token_is_not_left_in_the_clone() -> None:
    assert TEXT.count("actions/checkout@") == TEXT.count("persist-credentials: false")


def test_it_runs_every_step() -> None:
    run = [name for words in re.findall(r"\.ci/run ([a-z0-9 ]+)$", TEXT, re.MULTILINE) for name in words.split()]
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    steps = re.findall(r"\[(\w+)\]=\d+", script)
    root, other = re.findall(r"set -- ([a-z ]+);", script)
    assert sorted([*run, "user"]) == sorted(steps), "user is test and smoke"
    assert (root.split(), other.split()) == (["check", "smoke", "user"], ["check", "test", "smoke"])


def test_an_unknown_step_is_refused_before_anything_runs() -> None:
    done = subprocess.run([ROOT / ".ci" / "run", "chek"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == ".ci/run: no step chek; there are check, site, test, smoke and user\n"


def test_the_whole_suite_runs_at_least_once_a_week() -> None:
    assert re.search(r'- cron: "\d+ \d+ \* \* \d"', TEXT)
    assert "run: sudo scripts/e2e-both" in TEXT
