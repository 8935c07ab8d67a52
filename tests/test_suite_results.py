"""The page shows when which whole suite was last green, from committed results."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.junit import counted, placed
from e2e.suite_results import BEGIN, KEPT, PAGE, ROOT, SUITES, Run, changes, report, table, with_run, write
from tests.test_junit import REPORT

GREEN = Run("0a1b2c", "2026-11-22", "Debian 12, Podman 4.3.1", passed=3390, failed=0, seconds=1500, green=True)
RED = Run("0a1b2d", "2026-11-23", "Debian 12, Podman 4.3.1", passed=3388, failed=2, seconds=1500, green=False)


def row(text: str, suite: str) -> str:
    (found,) = (line for line in text.splitlines() if f"`make {suite}`" in line)
    return found


def test_a_suite_that_was_never_recorded_has_a_row() -> None:
    assert "not recorded" in row(table({}), "test-e2e")


def test_a_failure_does_not_hide_the_last_green_run() -> None:
    shown = row(table(with_run(with_run({}, "test-e2e", GREEN), "test-e2e", RED)), "test-e2e")
    assert "2026-11-22, 0a1b2c | Debian 12, Podman 4.3.1 | 3390 | 25 min" in shown
    assert "2026-11-23, 0a1b2d: **2 failed**" in shown


def test_a_green_run_removes_the_failure() -> None:
    shown = row(table(with_run(with_run({}, "test-e2e", RED), "test-e2e", GREEN)), "test-e2e")
    assert "failed" not in shown


def test_runs_of_several_suites_are_kept(tmp_path: Path) -> None:
    page, kept = tmp_path / "page.md", tmp_path / "kept.json"
    page.write_text(f"before\n{BEGIN}\na longer old text {'x' * 2000}\n<!-- end -->\nafter\n", encoding="utf-8")
    write("test-e2e", GREEN, page=str(page), kept=str(kept))
    write("test-deep", RED, page=str(page), kept=str(kept))
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("<!-- end -->\nafter\n")
    assert "3390" in row(text, "test-e2e")
    assert "2 failed" in row(text, "test-deep")
    assert json.loads(kept.read_text()).keys() == {"test-e2e", "test-deep"}


def test_the_page_has_its_marks() -> None:
    assert placed((Path(ROOT) / PAGE).read_text(encoding="utf-8"), "x", BEGIN)


def test_only_what_it_writes_itself_may_have_changed() -> None:
    assert changes(f" M {PAGE}\n?? {KEPT}\n M docs/reference/tested-on.json") == []
    assert changes(" M podbot/api/sessions.py\n?? new.py") == ["podbot/api/sessions.py", "new.py"]


def test_the_slowest_tests_come_first() -> None:
    assert report(counted(REPORT)).splitlines()[0] == "     9.0 s  test_a::test_two"


def test_each_suite_is_a_target_of_make() -> None:
    makefile = (Path(ROOT) / "Makefile").read_text(encoding="utf-8")
    for suite in SUITES:
        assert f"scripts/recorded {suite} " in makefile


@pytest.mark.parametrize("status", [0, 3])
def test_the_command_s_status_is_that_of_the_suite(tmp_path: Path, status: int) -> None:
    """In a clone whose recording is a stand-in: the real one would write into this tree."""
    for name, text in {
        "scripts/recorded": (Path(ROOT) / "scripts" / "recorded").read_text(encoding="utf-8"),
        ".venv/bin/python": '#!/bin/sh\necho "recorded: $*"\n',
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
    words = ["demo", "sh", "-c", f'ls -d "$PODBOT_E2E_RESULTS"; exit {status}']
    command = [str(tmp_path / "scripts" / "recorded"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    place = f"{tmp_path}/.results/demo"
    assert done.returncode == status, done.stderr
    assert done.stdout.splitlines()[0] == place
    assert done.stdout.splitlines()[1].startswith(f"recorded: -m e2e.suite_results demo {status} ")


def test_a_run_that_was_broken_off_is_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "one.xml").write_text(REPORT, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "e2e.suite_results", "test-e2e", "2", "1", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "test-e2e: 1 passed, 2 failed" in done.stdout
    assert "the run was broken off (status 2)" in done.stdout
    assert "test_a::test_two" in (tmp_path / "slowest.txt").read_text()


def test_an_unknown_suite_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "e2e.suite_results", "test-all", "0", "1", "."],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "no suite test-all; there are test-pythons" in done.stderr
