"""Files at the top that look like settings are listed, after everything that a rule names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podbot.guard.render import lines
from podbot.guard.unnamed import is_settings
from tests.guard.trees import append, checkout, git, left_by, link, next_tick, said, write


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


def test_a_file_that_is_new_makes_no_other_one_a_finding(tmp_path: Path) -> None:
    """One more at the beginning, and another one is the last that is read."""
    for number in range(2005):
        write(tmp_path / f".a{number:04}")
    next_tick()
    assert said(left_by(tmp_path, lambda work: write(work / ".0new"))) == [(6, ".0new")]


@pytest.mark.parametrize("kind", [".bash_history", ".nfs0001", ".~lock.a.odt#", ".#a.py", ".ninja_log", ".dirstamp"])
def test_what_programs_leave_is_not_listed(tmp_path: Path, kind: str) -> None:
    work = checkout(tmp_path / "shop")
    assert said(left_by(work, lambda work: write(work / kind))) == []


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


def test_a_directory_without_a_manifest_has_none(tmp_path: Path) -> None:
    work = checkout(tmp_path / "shop")
    assert said(left_by(work, lambda work: write(work / "src" / ".xrc"))) == []


def test_a_project_below_the_top_has_them(tmp_path: Path) -> None:
    work = checkout(tmp_path / "shop")
    write(work / "packages" / "api" / "package.json", "{}")

    def act(work: Path) -> None:
        write(work / "packages" / "api" / ".xrc")
        write(work / "packages" / "api" / "src" / ".xrc")
        write(work / "packages" / "web" / "Cargo.toml", '[package]\nname = "a"\n')
        link("packages/web/.yrc", "../../tools/hook.sh")(work)
        write(work / "packages" / "web" / "tasks.py")

    assert said(left_by(work, act)) == [(6, "packages/api/.xrc"), (6, "packages/web/.yrc")]


def test_more_than_are_noted_of_projects_is_a_gap(tmp_path: Path) -> None:
    """Projects that come later are not looked at."""
    work = checkout(tmp_path / "shop")

    def act(work: Path) -> None:
        write(work / "packages" / "api" / "package.json", "{}")
        for number in range(8001):
            os.symlink("x.y", work / "packages" / "api" / f".{number}rc")

    assert left_by(work, act).gaps == ("more than 8000 files that look like settings",)


def test_directories_and_documents_of_projects_do_not_use_up_the_limit(tmp_path: Path) -> None:
    work = checkout(tmp_path / "shop")
    write(work / "packages" / "api" / "package.json", "{}")
    for number in range(8001):
        (work / "packages" / "api" / f"d{number}").mkdir()

    left = left_by(work, lambda work: write(work / "packages" / "api" / ".xrc"))
    assert (said(left), left.gaps) == ([(6, "packages/api/.xrc")], ())


def test_a_project_with_many_files_has_them(tmp_path: Path) -> None:
    work = checkout(tmp_path / "shop")
    for number in range(1100):
        write(work / "packages" / "api" / f"{number}.ts")
    write(work / "packages" / "api" / "package.json", "{}")
    assert said(left_by(work, lambda work: write(work / "packages" / "api" / ".xrc"))) == [(6, "packages/api/.xrc")]


def test_hidden_directories_at_the_top_have_them_two_levels_deep(tmp_path: Path) -> None:
    work = checkout(tmp_path / "shop")

    def act(work: Path) -> None:
        for path in ("start.js", "conf/a.yml", "hooks/run", "one/two/x.yml", "README.md", "notes/a.png", ".gitignore"):
            write(work / ".tool" / path)
        write(work / ".x" / ".y" / "z.rb")

    assert said(left_by(work, act)) == [
        (6, ".tool/start.js"),
        (6, ".tool/conf/a.yml"),
        (6, ".tool/hooks/run"),
        (6, ".x/.y/z.rb"),
    ]


def test_what_a_rule_names_in_a_hidden_directory_is_not_listed_twice(tmp_path: Path) -> None:
    work = checkout(tmp_path / "shop")

    def act(work: Path) -> None:
        write(work / ".vscode" / "tasks.json")
        write(work / ".vscode" / "other.json")
        write(work / ".config" / "mise" / "config.toml")
        write(work / ".cursor" / "rules" / "a.mdc")

    assert said(left_by(work, act)) == [
        (1, ".config/mise/config.toml"),
        (2, ".vscode/tasks.json"),
        (3, ".cursor/rules/a.mdc"),
        (6, ".vscode/other.json"),
    ]


@pytest.mark.parametrize(
    "path",
    [
        ".turbo/turbo.json",
        ".x-cache/a.js",
        ".x.tags.cache.v4/a",
        ".deps/x.Po",
        ".x/state/a.js",
        ".venv/pyvenv.cfg",
        ".git/xrc",
        ".hg/store.x",
        ".x/.venv/a.cfg",
    ],
)
def test_caches_and_version_control_have_none(tmp_path: Path, path: str) -> None:
    work = checkout(tmp_path / "shop")
    assert said(left_by(work, lambda work: write(work / path))) == []


def test_a_program_of_tasks_counts_at_the_top(tmp_path: Path) -> None:
    work = checkout(tmp_path / "shop")

    def act(work: Path) -> None:
        write(work / "tasks.py")
        write(work / "src" / "tasks.py")

    assert said(left_by(work, act)) == [(6, "tasks.py")]


def test_a_large_file_counts_by_its_times(tmp_path: Path) -> None:
    work = checkout(tmp_path / "shop")
    write(work / "a.toml", "#" * 70_000)
    write(work / "b.toml", "#" * 70_000)
    next_tick()
    left = left_by(work, lambda work: append(work / "a.toml", "#"))
    assert [(one.path, one.change) for one in left.findings] == [("a.toml", "changed")]


def test_after_many_files_those_that_are_left_count_by_their_times(tmp_path: Path) -> None:
    for number in range(2010):
        write(tmp_path / f".a{number:04}")
    next_tick()
    left = left_by(tmp_path, lambda work: append(work / ".a2009", "#"))
    assert [(one.path, one.change) for one in left.findings] == [(".a2009", "changed")]


def test_a_changed_one_is_listed_and_one_that_was_there_is_not(tmp_path: Path) -> None:
    work = checkout(tmp_path / "shop")
    write(work / ".xrc", "a")
    write(work / ".yrc", "a")
    left = left_by(work, lambda work: write(work / ".xrc", "b"))
    assert [(one.path, one.change) for one in left.findings] == [(".xrc", "changed")]


def test_more_than_are_compared_is_a_gap(tmp_path: Path) -> None:
    def act(work: Path) -> None:
        (work / ".x").mkdir()
        for number in range(8010):
            os.symlink("x.y", work / ".x" / f"{number}.y")

    left = left_by(tmp_path, act)
    assert left.gaps == ("more than 8000 files that look like settings",)
    assert len(left.findings) == 8000


def test_gits_own_files_at_the_top_of_a_bare_repository_have_no_finding(tmp_path: Path) -> None:
    git(checkout(tmp_path / "shop"), "clone", "-q", "--bare", "--no-hardlinks", ".", str(tmp_path / "bare"))
    work = tmp_path / "bare"
    assert said(left_by(work, lambda work: git(work, "symbolic-ref", "HEAD", "refs/heads/other"))) == []
