"""Bare repositories inside a workspace: git works in them at a mere `cd`, and writes through their links."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podbot.guard.walk import Scan
from tests.guard.trees import PATIENT, append, checkout, file, git, left_by, link, said, write

HOOK = "#!/bin/sh\ntrue\n"


def replaced(path: str, target: str) -> object:
    def act(work: Path) -> None:
        if (work / path).is_dir() and not (work / path).is_symlink():
            os.rename(work / path, work.parent / "aside")
        link(path, target)(work)

    return act


@pytest.fixture
def hub(work: Path) -> Path:
    git(work, "clone", "-q", "--bare", ".", "hub")
    git(work / "hub", "config", "core.logAllRefUpdates", "true")
    return work / "hub"


def test_git_appends_to_a_file_of_the_workspace_behind_a_link_and_that_is_reported(work: Path, hub: Path) -> None:
    """The link stays in the workspace, and what it leads to runs at the next checkout outside of the repository."""
    hook = write(work / ".git" / "hooks" / "post-checkout", HOOK, 0o755)

    def act(work: Path) -> None:
        write(hub / "logs" / "refs" / "heads" / "x")
        link("hub/logs/refs/heads/main", "../../../../.git/hooks/post-checkout")(work)

    assert said(left_by(work, act)) == [(1, "hub/logs/refs/heads/main")]
    git(
        hub,
        "update-ref",
        "-m",
        "touch ran",
        "refs/heads/main",
        git(hub, "commit-tree", "-m", "x", "HEAD^{tree}").strip(),
    )
    assert "touch ran" in hook.read_text()


@pytest.mark.parametrize(
    "path",
    ["HEAD", "FETCH_HEAD", "COMMIT_EDITMSG", "packed-refs", "config", "objects", "refs", "refs/heads/docs/x", "logs",
     "refs/heads/Makefile", "objects/info", "info", "hooks", "logs/refs/heads/tools/bazel", "worktrees", "Makefile",
     "worktrees/wt/ORIG_HEAD", "description"],
)  # fmt: skip
@pytest.mark.parametrize("target", ["/home/ada/x", "../src", "x"])
@pytest.mark.parametrize("place", ["hub", "a/b/hub", "node_modules/a"])
def test_any_link_in_a_bare_repository_is_reported_in_the_first_class(
    work: Path, path: str, target: str, place: str
) -> None:
    git(work, "clone", "-q", "--bare", ".", place)
    git(work / place, "worktree", "add", "-q", "--detach", str(work / "wt"))
    left = left_by(work, replaced(f"{place}/{path}", target))  # type: ignore[arg-type]
    assert [danger for danger, found in said(left) if found == f"{place}/{path}"] == [1]


def test_links_that_were_there_and_those_of_a_worktree_in_it_are_not_reported(work: Path, hub: Path) -> None:
    """Some keep their worktrees beside the files of a bare repository."""
    git(hub, "worktree", "add", "-q", "--detach", "feature")
    link("hub/objects/info/x", "../../x")(work)

    def act(work: Path) -> None:
        git(hub, "pack-refs", "--all")
        link("hub/feature/latest", "src")(work)
        link("hub/feature/node_modules/.bin/x", "../x/cli.js")(work)
        link("hub/HEAD", "refs/heads/main")(work)

    assert said(left_by(work, act)) == []


def test_what_git_keeps_for_a_worktree_of_it_is_read(work: Path, hub: Path) -> None:
    git(hub, "worktree", "add", "-q", "--detach", "feature")

    def act(work: Path) -> None:
        git(hub / "feature", "update-index", "--assume-unchanged", "Makefile")
        records = hub / "worktrees" / "feature"
        write(records / "config.worktree", "[core]\n\tpager = x\n")
        write(records / "rebase-merge" / "git-rebase-todo", "exec x\n")
        write(records / "commondir", "../../../evil\n")
        write(hub / "info" / "exclude", "*\n")
        git(hub, "update-ref", "refs/replace/" + git(hub, "rev-parse", "HEAD").strip(), "HEAD")

    assert sorted(path for danger, path in said(left_by(work, act)) if danger == 1) == [
        "hub/info/exclude",
        "hub/refs/replace",
        "hub/worktrees/feature/commondir",
        "hub/worktrees/feature/config.worktree",
        "hub/worktrees/feature/index",
        "hub/worktrees/feature/rebase-merge/git-rebase-todo",
    ]


def test_a_directory_that_looks_like_a_repository_does_not_stop_other_rules(work: Path) -> None:
    """Otherwise two empty directories at the top would hide everything in `modules` or `info`."""
    for name in ("objects", "refs", "modules/a", "info/.vscode"):
        (work / name).mkdir(parents=True)
    write(work / "HEAD", "ref: refs/heads/main\n")

    def act(work: Path) -> None:
        file("modules/a/Makefile")(work)
        file("info/.vscode/tasks.json")(work)
        file("modules/CLAUDE.md")(work)
        write(work / "objects" / "tool", mode=0o4755)

    assert said(left_by(work, act)) == [
        (2, "info/.vscode/tasks.json"),
        (3, "modules/CLAUDE.md"),
        (4, "modules/a/Makefile"),
        (5, "objects/tool"),
    ]


def test_a_copy_by_hard_links_is_ordinary(work: Path) -> None:
    left = left_by(work, lambda work: git(work, "clone", "-q", "--bare", "--local", ".", "copy"))
    assert said(left) == [(1, "copy")]


@pytest.mark.parametrize("place", ["hub", "a/b"])
def test_two_processes_find_the_same_in_it(work: Path, place: str) -> None:
    git(work, "clone", "-q", "--bare", ".", place)
    for number in range(8):
        link(f"{place}/refs/heads/x{number}/Makefile", "../../config")(work)
        link(f"{place}/{number}", "config")(work)
    checkout(work / "other")
    append(work / place / "config", "[core]\n\tpager = x\n")
    one = Scan(PATIENT).directories(str(work))
    both = Scan(PATIENT, beside=True).directories(str(work))
    assert both.marks == one.marks
    assert len([mark for mark in one.marks.values() if mark.rule == "git.link"]) == 16
