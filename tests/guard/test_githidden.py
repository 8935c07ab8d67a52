"""What hides changes from git: with real git, that it hides them, and that the guard says so in one line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.guard.trees import PATIENT, Act, append, checkout, config, file, git, left_by, said, write

INDEX = (1, ".git/index")


def status(work: Path) -> str:
    return git(work, "status", "--porcelain")


def flagged(option: str, *names: str) -> Act:
    return lambda work: git(work, "update-index", option, *names)


def edited(work: Path) -> None:
    write(work / "src" / "app.py", "evil, of another length\n")
    write(work / "Makefile", "evil\n")


@pytest.mark.parametrize("version", ["2", "4"])
@pytest.mark.parametrize("option", ["--assume-unchanged", "--skip-worktree"])
def test_entries_that_git_does_not_compare_are_one_finding(work: Path, option: str, version: str) -> None:
    git(work, "update-index", f"--index-version={version}")
    left = left_by(work, flagged(option, "src/app.py", "Makefile"))
    kind = option.removeprefix("--")
    assert [found[:4] for found in left.findings] == [
        (
            1,
            ".git/index",
            f"hides changes of 2 files: Makefile, src/app.py from git status and git diff ({kind})",
            "new",
        )
    ]
    edited(work)
    assert (status(work), git(work, "diff")) == ("", "")


def test_those_that_were_there_are_not_reported_until_there_are_others(work: Path) -> None:
    git(work, "update-index", "--assume-unchanged", "Makefile")
    git(work, "update-index", "--skip-worktree", "AGENTS.md")

    def act(work: Path) -> None:
        write(work / "new")
        git(work, "add", "new")
        git(work, "commit", "-qm", "two")

    assert said(left_by(work, act)) == []
    left = left_by(work, flagged("--assume-unchanged", "src/app.py"))
    assert [(found.path, found.change) for found in left.findings] == [(".git/index", "changed")]


def test_many_are_counted_and_three_are_named(work: Path) -> None:
    names = sorted(git(work, "ls-files").split())
    (found,) = left_by(work, flagged("--skip-worktree", *names)).findings
    assert found.what.startswith(
        f"hides changes of {len(names)} files: {', '.join(names[:3])} and {len(names) - 3} more"
    )


def test_what_a_sparse_checkout_leaves_out_is_not_hidden_but_what_is_there_all_the_same_is(work: Path) -> None:
    git(work, "sparse-checkout", "set", "src")
    assert said(left_by(work, lambda work: git(work, "sparse-checkout", "set", "tools"))) == []
    git(work, "sparse-checkout", "set", "src")

    def act(work: Path) -> None:
        """The index is as it was: a file is made where none is expected."""
        write(work / "tools" / "hook.sh", "evil\n")

    (found,) = left_by(work, act).findings
    assert found.path == ".git/index"
    assert "1 file: tools/hook.sh" in found.what


def test_a_sparse_checkout_elsewhere_says_nothing_of_the_files_here(work: Path) -> None:
    """The session is in a linked worktree, which has the files that the main checkout left out."""
    git(work, "worktree", "add", "-q", "--detach", "../linked")
    git(work, "sparse-checkout", "set", "src")
    (work.parent / "linked" / "tools" / "hook.sh").unlink()

    def act(linked: Path) -> None:
        git(linked, "checkout", "-q", "--", "tools")

    assert said(left_by(work.parent / "linked", act, linked=str(work / ".git"))) == []


def test_without_the_setting_the_files_that_it_left_out_count(work: Path) -> None:
    git(work, "sparse-checkout", "set", "src")
    left = left_by(work, lambda work: git(work, "config", "--worktree", "core.sparseCheckout", "false"))
    assert said(left) == [INDEX]


def test_the_index_of_each_repository_is_read(work: Path) -> None:
    checkout(work.parent / "lib")
    git(work, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../lib", "sub")
    git(work, "worktree", "add", "-q", "--detach", "wt")
    checkout(work / "nested")

    def act(work: Path) -> None:
        for place in ("sub", "wt", "nested"):
            git(work / place, "update-index", "--assume-unchanged", "src/app.py")

    assert said(left_by(work, act)) == [
        (1, ".git/modules/sub/index"),
        (1, ".git/worktrees/wt/index"),
        (1, "nested/.git/index"),
    ]


def test_a_sparse_checkout_of_a_linked_worktree_is_ordinary(work: Path) -> None:
    git(work, "worktree", "add", "-q", "--detach", "wt")
    assert said(left_by(work, lambda work: git(work / "wt", "sparse-checkout", "set", "src"))) == []


def test_longer_ids_also_in_a_linked_worktree(tmp_path: Path) -> None:
    work = tmp_path / "work"
    git(tmp_path, "init", "-q", "--object-format=sha256", "work")
    write(work / "a")
    write(work / "b")
    git(work, "add", ".")
    git(work, "commit", "-qm", "one")
    git(work, "worktree", "add", "-q", "--detach", "wt")
    assert said(left_by(work, lambda work: git(work, "commit", "-q", "--allow-empty", "-m", "two"))) == []

    def act(work: Path) -> None:
        git(work, "update-index", "--assume-unchanged", "a")
        git(work / "wt", "update-index", "--skip-worktree", "b")

    assert sorted(said(left_by(work, act))) == [INDEX, (1, ".git/worktrees/wt/index")]


def test_an_index_in_two_parts(work: Path) -> None:
    git(work, "update-index", "--assume-unchanged", "Makefile")
    git(work, "update-index", "--split-index")
    git(work, "config", "splitIndex.maxPercentChange", "100")
    assert said(left_by(work, flagged("--assume-unchanged", "src/app.py"))) == [INDEX]
    edited(work)
    assert status(work) == ""

    def without_the_other_part(work: Path) -> None:
        for shared in (work / ".git").glob("sharedindex.*"):
            shared.unlink()

    (found,) = left_by(work, without_the_other_part).findings
    assert "podbot cannot read it" in found.what


@pytest.mark.parametrize("data", [b"", b"DIRC\0\0\0\2\0\0\0\x09" + bytes(200)])
def test_an_index_that_cannot_be_read_is_a_finding(work: Path, data: bytes) -> None:
    (found,) = left_by(work, lambda work: (work / ".git" / "index").write_bytes(data)).findings
    assert (found.path, found.what) == (".git/index", "podbot cannot read it, so it may hide changes")


def test_an_index_behind_a_link_is_read(work: Path) -> None:
    os.rename(work / ".git" / "index", work / "index")
    (work / ".git" / "index").symlink_to("../index")
    other = work.parent / "other"

    def act(work: Path) -> None:
        other.write_bytes((work / "index").read_bytes())
        (work / ".git" / "index").unlink()
        (work / ".git" / "index").write_bytes((work / "index").read_bytes())
        git(work, "update-index", "--assume-unchanged", "Makefile")
        (work / "index").write_bytes((work / ".git" / "index").read_bytes())
        (work / ".git" / "index").unlink()
        (work / ".git" / "index").symlink_to("../index")

    left = left_by(work, act)
    assert [found.what for found in left.findings if found.path == ".git/index"] == [
        "hides changes of 1 file: Makefile from git status and git diff (assume-unchanged)"
    ]


def test_indexes_have_a_limit_of_their_own(work: Path) -> None:
    left = left_by(work, file("AGENTS.md", "evil\n"), limits=PATIENT._replace(data=100))
    assert "more of git's indexes and references than are read" in left.gaps


def test_a_cache_of_untracked_files_is_reported_when_it_is_new(work: Path) -> None:
    assert said(left_by(work, flagged("--untracked-cache"))) == [INDEX]

    def act(work: Path) -> None:
        write(work / "new")
        git(work, "status")

    assert said(left_by(work, act)) == []


@pytest.mark.parametrize("packed", [False, True])
def test_an_object_that_stands_for_another_is_reported(work: Path, packed: bool) -> None:
    """`git status` and `git diff` then compare with the other one."""
    write(work / "src" / "app.py", "evil\n")

    def act(work: Path) -> None:
        tree = git(work, "rev-parse", "HEAD^{tree}").strip()
        git(work, "add", ".")
        git(work, "replace", tree, git(work, "write-tree").strip())
        if packed:
            git(work, "pack-refs", "--all")

    assert said(left_by(work, act)) == [(1, ".git/refs/replace")]
    assert status(work) == ""


def test_packing_what_was_there_is_ordinary(work: Path) -> None:
    write(work / "more")
    git(work, "add", ".")
    git(work, "commit", "-qm", "two")
    git(work, "replace", "HEAD~1", "HEAD")
    git(work, "branch", "refs/replace/x")
    assert said(left_by(work, lambda work: git(work, "pack-refs", "--all"))) == []


def test_other_parents_of_a_commit_are_reported(work: Path) -> None:
    write(work / "more")
    git(work, "add", ".")
    git(work, "commit", "-qm", "two")
    head = git(work, "rev-parse", "HEAD")
    assert said(left_by(work, file(".git/info/grafts", head))) == [(1, ".git/info/grafts")]
    assert len(git(work, "log", "--oneline").splitlines()) == 1


@pytest.mark.parametrize("text", ["evil.py\n", "/src/*\r\n", " \t# \n"])
def test_patterns_of_files_that_are_not_shown_are_reported(work: Path, text: str) -> None:
    left = left_by(work, lambda work: append(work / ".git" / "info" / "exclude", text))
    assert [found[:2] for found in left.findings] == [(1, ".git/info/exclude")]
    assert left.findings[0].what.startswith("hides new files from git status: ")


def test_patterns_that_were_there_are_not_reported_until_they_change(work: Path) -> None:
    write(work / ".git" / "info" / "exclude", "*.log\n")
    assert said(left_by(work, lambda work: append(work / ".git" / "info" / "exclude", "# *.txt\n"))) == []
    assert said(left_by(work, lambda work: append(work / ".git" / "info" / "exclude", "x"))) == [
        (1, ".git/info/exclude")
    ]


def test_a_list_of_patterns_that_the_configuration_names_is_followed(work: Path) -> None:
    write(work / "hidden.txt", "*.log\n")
    git(work, "config", "core.excludesFile", "hidden.txt")
    (found,) = [one for one in left_by(work, file("hidden.txt", "*\n")).findings if one.danger == 1]
    assert (found.path, found.why) == ("hidden.txt", "it does not show all changes, or shows other ones")


HIDING: dict[str, tuple[str, Act]] = {
    "untracked files": ("[status]\n\tshowUntrackedFiles = no\n", lambda work: write(work / "new")),
    "modes": ("[core]\n\tfileMode = false\n", lambda work: (work / "Makefile").chmod(0o755)),
    "untracked files of a list": ("[core]\n\texcludesFile = {work}/../x\n", file("y")),
    "names in another case": ("[core]\n\tignoreCase = true\n", file("makefile")),
}


@pytest.mark.parametrize("name", HIDING)
def test_a_key_that_hides_changes_is_reported(name: str, work: Path) -> None:
    text, change = HIDING[name]
    write(work.parent / "x", "y\n")
    (found,) = left_by(work, config(text.format(work=work))).findings
    assert (found.danger, found.path, found.why) == (
        1,
        ".git/config",
        "it does not show all changes, or shows other ones",
    )
    change(work)
    assert status(work) == ""
