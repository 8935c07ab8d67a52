"""Files at the top that look like settings are listed, after everything that a rule names."""

from __future__ import annotations

from pathlib import Path

import pytest

from podbot.guard.render import lines
from podbot.guard.unnamed import is_settings
from tests.guard.trees import checkout, git, left_by, said, write


@pytest.mark.parametrize("name", [".x", ".xrc", "xrc", "a.toml", "a.json5", "Procfile", "a-b_c", ".env.local"])
def test_names_of_settings(name: str) -> None:
    assert is_settings(name)


@pytest.mark.parametrize(
    "name",
    [
        "a.py",
        "a.md",
        "README",
        "LICENSE",
        ".gitignore",
        "a b",
        "é",
        ".coverage.host.1",
        ".coverage",
        "LICENSE-MIT",
        ".x.swp",
        "tags",
    ],
)
def test_other_names(name: str) -> None:
    assert not is_settings(name)


def test_they_have_one_line_at_the_end(tmp_path: Path) -> None:
    work = checkout(tmp_path / "shop")

    def act(work: Path) -> None:
        for number in range(20):
            write(work / f".a{number}rc")
        write(work / "Makefile", "all:\n\tcurl\n")

    left = left_by(work, act)
    assert said(left)[0] == (4, "Makefile")
    shown = lines(left, "/w")
    assert len(shown) == 3
    assert shown[2].startswith("  perhaps, if a tool takes it for its settings: .a0rc, .a10rc, ")
    assert shown[2].endswith(" and 16 more")


def test_a_word_is_listed_if_it_has_a_capital_letter_or_is_a_script(tmp_path: Path) -> None:
    work = checkout(tmp_path / "shop")

    def act(work: Path) -> None:
        write(work / "notes")
        write(work / "Procfile")
        write(work / "run", "#!/bin/sh\n", 0o755)
        write(work / ".empty", "")

    assert said(left_by(work, act)) == [(6, "Procfile"), (6, "run")]


def test_what_a_build_makes_is_not_listed(tmp_path: Path) -> None:
    work = checkout(tmp_path / "shop")
    left = left_by(work, lambda work: write(work / "shop", "\x7fELF\x02", 0o755))
    assert said(left) == []


def test_only_the_top_has_them(tmp_path: Path) -> None:
    work = checkout(tmp_path / "shop")
    assert said(left_by(work, lambda work: write(work / "src" / ".xrc"))) == []


def test_a_changed_one_is_listed_and_one_that_was_there_is_not(tmp_path: Path) -> None:
    work = checkout(tmp_path / "shop")
    write(work / ".xrc", "a")
    write(work / ".yrc", "a")
    left = left_by(work, lambda work: write(work / ".xrc", "b"))
    assert [(one.path, one.change) for one in left.findings] == [(".xrc", "changed")]


def test_more_than_are_compared_is_a_gap(tmp_path: Path) -> None:
    def act(work: Path) -> None:
        for number in range(2010):
            write(work / f".a{number}")

    assert left_by(tmp_path, act).gaps == ("more than 2000 files at the top that look like settings",)


def test_gits_own_files_at_the_top_of_a_bare_repository_have_no_finding(tmp_path: Path) -> None:
    git(checkout(tmp_path / "shop"), "clone", "-q", "--bare", "--no-hardlinks", ".", str(tmp_path / "bare"))
    work = tmp_path / "bare"
    assert said(left_by(work, lambda work: git(work, "symbolic-ref", "HEAD", "refs/heads/other"))) == []
