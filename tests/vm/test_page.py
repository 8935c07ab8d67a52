"""The page "Tested on": a machine's report becomes a table, and none of it is trusted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from e2e.junit import placed
from e2e.vm.errors import VmError
from e2e.vm.page import BEGIN, PAGE, Result, keep, needed, table
from e2e.vm.parts import reported
from e2e.vm.suite import E2E, PARTS
from tests.test_junit import REPORT


def test_a_failure_shows() -> None:
    text = table(
        {
            "newcomer": Result(2, 700, "0a1b2c", "2026-11-22"),
            "limits": Result(0, 61, "0a1b2c", "2026-11-22", passed=5),
            "network": Result(1, 100, "0a1b2c", "2026-11-22", passed=1, failed=1, failures=("test_n::test_git",)),
        },
        {"Podman": "5.4.2"},
    )
    rows = {line.split(" | ")[0].removeprefix("| "): line for line in text.splitlines() if line.startswith("| ")}
    assert "**failed** (status 2) | 12 min" in rows[PARTS["newcomer"].title]
    assert "5 passed | 61 s" in rows[PARTS["limits"].title]
    assert "1 passed, **1 failed** | 2 min" in rows[PARTS["network"].title]
    assert "not run" in rows[PARTS["root"].title]
    assert "- network: `test_n::test_git`" in text
    assert text.startswith("Podman 5.4.2.\n")


def test_the_page_has_its_marks() -> None:
    assert placed(Path(PAGE).read_text(encoding="utf-8"), "x", BEGIN)


def test_results_of_several_runs_are_one_table(tmp_path: Path) -> None:
    written = tmp_path / "tested-on.md"
    written.write_text(f"{BEGIN}<!-- end -->", encoding="utf-8")
    files = {"page": str(written), "results": str(tmp_path / "kept.json")}
    keep("doctor", Result(0, 61, "0a1b2c", "2026-11-22", passed=7), {"Podman": "5.4.1"}, **files)
    keep("limits", Result(0, 61, "0a1b2c", "2026-11-22", passed=5), {"Podman": "5.4.2"}, **files)
    keep(
        "network", Result(1, 9, "0a1b2d", "2026-11-23", failed=1, failures=("test_n::x",)), {"Podman": "5.4.2"}, **files
    )
    text = written.read_text(encoding="utf-8")
    assert "Podman 5.4.2." in text
    assert "7 passed" not in text, "it was with another Podman"
    assert "5 passed | 61 s | 2026-11-22 | 0a1b2c" in text
    assert "**1 failed** | 9 s | 2026-11-23 | 0a1b2d" in text
    assert json.loads((tmp_path / "kept.json").read_text())["parts"].keys() == {"limits", "network"}


def test_a_missing_version_is_refused() -> None:
    with pytest.raises(VmError, match="pasta"):
        keep("limits", Result(0, 61, "0a1b2c", "2026-11-22", passed=5), {"Podman": "5.4.2", "pasta": ""})


def test_areported_that_is_a_link_or_broken_off(tmp_path: Path) -> None:
    (tmp_path / "link.xml").symlink_to(PAGE)
    (tmp_path / "half.xml").write_text(REPORT[:100], encoding="utf-8")
    (tmp_path / "whole.xml").write_text(REPORT, encoding="utf-8")
    assert reported(str(tmp_path / "link.xml")) == (0, ())
    assert reported(str(tmp_path / "none.xml")) == (0, ())
    assert "cannot be read" in reported(str(tmp_path / "half.xml"))[1][0]
    assert reported(str(tmp_path / "whole.xml"))[0] == 1


def test_a_parts_prerequisite_runs_before_it() -> None:
    assert list(needed(["limits"])) == ["newcomer", "limits"]
    assert list(needed(["root"])) == ["newcomer", "root"]
    assert list(needed(["newcomer"])) == ["newcomer"]
    assert list(needed([])) == list(PARTS)


def test_every_file_of_the_suite_exists() -> None:
    root = Path(PAGE).parents[2]
    for part in PARTS.values():
        for word in part.script.split():
            if word.startswith("e2e/"):
                assert (root / word).is_file(), word
    assert E2E
