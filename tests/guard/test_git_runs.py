"""The catalogue is correct: the payloads in its class 1 run when the operator's git works in the directory.

Each payload leaves a file ``ran`` beside the checkout. In every case the guard also reports it.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guard.trees import ENV, append, checkout, git, left_by, said, write


def payload(work: Path, at: str = "payload.sh") -> str:
    """A program that leaves ``ran``; its absolute path."""
    return str(write(work / at, f"#!/bin/sh\ntouch '{work.parent}/ran'\n", 0o755))


def config(text: str) -> Callable[[Path], None]:
    return lambda work: append(work / ".git" / "config", text.format(payload(work)))


def commondir(work: Path) -> None:
    """A second git directory, in the tree: git reads its configuration as the repository's."""
    evil = work / ".evil"
    git(work.parent, "clone", "-q", "--bare", str(work), str(evil))
    append(evil / "config", f"[core]\n\tbare = false\n\tfsmonitor = {payload(work)}\n")
    write(work / ".git" / "commondir", "../.evil\n")


def nested(work: Path) -> None:
    git(work, "init", "-q", "lib")
    append(work / "lib" / ".git" / "config", f"[core]\n\tfsmonitor = {payload(work)}\n")


def bare(work: Path) -> None:
    git(work, "init", "-q", "--bare", "lib")
    append(work / "lib" / "config", f"[core]\n\tbare = false\n\tworktree = .\n\tfsmonitor = {payload(work)}\n")


def included(work: Path) -> None:
    write(work / "team.cfg", f"[core]\n\tfsmonitor = {payload(work)}\n")
    append(work / ".git" / "config", "[include]\n\tpath = ../team.cfg\n")


def filtered(work: Path) -> None:
    config('[filter "x"]\n\tclean = {}; cat\n')(work)
    write(work / ".gitattributes", "* filter=x\n")
    write(work / "src" / "app.py", "z\n")  # the same length as before: git must compare the content


def git_file(work: Path) -> None:
    git(work.parent, "clone", "-q", "--bare", str(work), str(work / ".evil"))
    append(work / ".evil" / "config", f"[core]\n\tbare = false\n\tfsmonitor = {payload(work)}\n")
    (work / ".git").rename(work.parent / "aside")
    write(work / ".git", "gitdir: .evil\n")


def hook(work: Path) -> None:
    payload(work, ".git/hooks/post-index-change")


def hooks_path(work: Path) -> None:
    payload(work, ".hooks/post-index-change")
    append(work / ".git" / "config", "[core]\n\thooksPath = .hooks\n")


def laid_out(where: Path, work: Path, tree: Path) -> None:
    """A git directory, and the payload in its configuration."""
    write(where / "HEAD", "ref: refs/heads/main\n")
    text = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
    write(where / "config", f"{text}\tworktree = {tree}\n\tfsmonitor = {payload(work)}\n")


def linked_parts(where: Path) -> None:
    (where / "z").mkdir()
    (where / "objects").symlink_to("z")
    (where / "refs").symlink_to("z")


def bare_of_links(work: Path) -> None:
    laid_out(work / "src", work, work / "src")
    linked_parts(work / "src")
    (work / "src" / "HEAD").unlink()
    (work / "src" / "HEAD").symlink_to("refs/heads/main")


def bare_of_programs(work: Path) -> None:
    laid_out(work / "src", work, work / "src")
    write(work / "src" / "objects", "", 0o755)
    write(work / "src" / "refs", "", 0o755)


def bare_beside_empty(work: Path) -> None:
    laid_out(work / "src", work, work / "src")
    for name in ("objects", "refs", ".git"):
        (work / "src" / name).mkdir()


def kept(place: str) -> Callable[[Path], None]:
    """Paths where git keeps its own directories, and a ``.git`` file that leads there."""

    def act(work: Path) -> None:
        where = work / ".git" / place
        laid_out(where, work, work / "src")
        linked_parts(where)
        write(work / "src" / ".git", f"gitdir: ../.git/{place}\n")

    return act


def headless_module(work: Path) -> None:
    place = work / ".git" / "modules" / "e" / "refs"
    laid_out(place, work, work / "src")
    (place / "HEAD").unlink()
    for name in ("objects", "refs"):
        (place / name).mkdir()
    write(place / "worktrees" / "x" / "HEAD", "ref: refs/heads/main\n")
    write(place / "worktrees" / "x" / "commondir", "../..\n")
    text = (place / "config").read_text().replace(f"\tworktree = {work / 'src'}\n", "")
    write(place / "config", text)
    write(work / "src" / ".git", "gitdir: ../.git/modules/e/refs/worktrees/x\n")


AT_STATUS: dict[str, tuple[Callable[[Path], None], str]] = {
    "fsmonitor": (config("[core]\n\tfsmonitor = {}\n"), "."),
    "fsmonitor behind a NUL byte": (config('[core "fsmonitor\0"]\n\tx = {}\n'), "."),
    "an included file": (included, "."),
    "commondir": (commondir, "."),
    "a filter": (filtered, "."),
    "a .git file": (git_file, "."),
    "a hook": (hook, "."),
    "hooksPath": (hooks_path, "."),
    "a nested repository": (nested, "lib"),
    "a bare repository": (bare, "lib"),
    "a bare repository of links": (bare_of_links, "src"),
    "a bare repository of programs": (bare_of_programs, "src"),
    "a bare repository beside an empty .git": (bare_beside_empty, "src"),
    "a directory among the submodules'": (kept("modules/e"), "src"),
    "a directory among the worktrees'": (kept("worktrees/e"), "src"),
    "a worktree of what has no HEAD": (headless_module, "src"),
}


@pytest.mark.parametrize("name", AT_STATUS)
def test_a_payload_runs_at_git_status_and_is_reported_as_class_1(name: str, tmp_path: Path) -> None:
    act, where = AT_STATUS[name]
    work = checkout(tmp_path / "work")
    (work / "src" / "app.py").touch()  # the index is to be refreshed, as after any edit
    left = left_by(work, act)
    assert not (tmp_path / "ran").exists(), "the guard itself ran it"
    git(work / where, "status")
    assert (tmp_path / "ran").exists()
    assert any(found.danger == 1 for found in left.findings)


@pytest.mark.parametrize("empty", [False, True])
def test_a_bare_repository_at_the_top_of_a_workspace_without_git(tmp_path: Path, empty: bool) -> None:
    work = tmp_path / "work"
    write(work / "a")

    def act(work: Path) -> None:
        laid_out(work, work, work)
        linked_parts(work)
        if empty:
            (work / ".git").mkdir()

    left = left_by(work, act)
    git(work, "status")
    assert (tmp_path / "ran").exists()
    assert any(found.danger == 1 for found in left.findings)


def test_the_configuration_of_a_submodule_whose_objects_are_a_link(tmp_path: Path) -> None:
    checkout(tmp_path / "lib")
    work = checkout(tmp_path / "work")
    git(work, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../lib", "sub")
    git(work, "branch", "config")

    def act(work: Path) -> None:
        place = work / ".git" / "modules" / "sub"
        (place / "objects").rename(place / "o2")
        (place / "objects").symlink_to("o2")
        append(place / "config", f"[core]\n\tfsmonitor = {payload(work)}\n")

    left = left_by(work, act)
    git(work, "status")
    assert (tmp_path / "ran").exists()
    assert any(found.danger == 1 for found in left.findings)


STEPS: dict[str, tuple[str, str, list[str]]] = {
    "a command of a rebase": ("rebase-merge/git-rebase-todo", "\t x\t{}\n", ["rebase", "--continue"]),
    "a command of a rebase, spelled out": ("rebase-merge/git-rebase-todo", "exec {}\r\n", ["rebase", "--continue"]),
    "a command behind a comment": ("rebase-merge/git-rebase-todo", "# x\nnoop\nexec {}", ["rebase", "--continue"]),
    "a rebase's strategy": ("rebase-merge/strategy", "a/x\n", ["rebase", "--continue"]),
    "a cherry-pick's strategy": ("sequencer/opts", "[options]\nstrategy = a/x\n", ["cherry-pick", "--continue"]),
}


@pytest.mark.parametrize("name", STEPS)
def test_unfinished_steps_run_when_continued_and_are_reported_as_class_1(name: str, tmp_path: Path) -> None:
    path, text, words = STEPS[name]
    work = checkout(tmp_path / "work")
    write(work / "src" / "app.py", "two\n")
    git(work, "commit", "-qam", "two")
    two = git(work, "rev-parse", "HEAD").strip()
    git(work, "reset", "-q", "--hard", "HEAD~1")
    write(work / "src" / "more.py")
    git(work, "add", ".")
    git(work, "commit", "-qm", "three")
    three = git(work, "rev-parse", "HEAD").strip()

    def act(work: Path) -> None:
        program = payload(work, "git-merge-a/x")
        states = {"rebase-merge/onto": three, "rebase-merge/orig-head": three, "rebase-merge/interactive": ""}
        states |= {"rebase-merge/head-name": "refs/heads/main", "rebase-merge/git-rebase-todo": f"pick {two}\n"}
        if path.startswith("sequencer/"):
            states = {"sequencer/head": three, "sequencer/todo": f"pick {two}\npick {two}\n"}
        for state, content in (states | {path: text.format(program)}).items():
            write(work / ".git" / state, content)

    left = left_by(work, act)
    assert [(found.danger, found.path) for found in left.findings] == [(1, f".git/{path}")]
    subprocess.run(["git", *words], cwd=work, env=ENV, capture_output=True, check=False)
    assert (tmp_path / "ran").exists()


OTHERS: dict[str, tuple[str, list[str]]] = {
    "a pager": ("[core]\n\tpager = {}\n[pager]\n\tlog = true\n", ["-c", "core.bare=false", "-p", "log"]),
    "an external diff": ("[diff]\n\texternal = {}\n", ["diff", "HEAD", "--", "src/app.py"]),
    "an alias": ("[alias]\n\tst = !{}\n", ["st"]),
    "an editor": ("[core]\n\teditor = {}\n", ["commit", "--allow-empty", "--amend"]),
    "a transport": ('[remote "origin"]\n\turl = ext::{}\n[protocol "ext"]\n\tallow = always\n', ["ls-remote"]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_payload_runs_with_another_command(name: str, tmp_path: Path) -> None:
    import pty

    text, words = OTHERS[name]
    work = checkout(tmp_path / "work")
    write(work / "src" / "app.py", "other\n")
    left = left_by(work, config(text))
    assert any(found.danger == 1 for found in left.findings)
    leader, follower = pty.openpty()  # a pager wants a terminal
    with open(leader, "rb"), open(follower, "rb") as terminal:
        subprocess.run(
            ["git", *words], cwd=work, env={**ENV, "PAGER": "cat"}, stdin=terminal, stdout=terminal, stderr=terminal,
            check=False, timeout=120,
        )  # fmt: skip
    assert (tmp_path / "ran").exists()


RUN = "touch '{}/ran'\n"


def two_branches(work: Path) -> None:
    """On ``topic``, which is one commit ahead of ``main``; both change the same file."""
    for name in ("topic", "main"):
        git(work, "checkout", "-q", *([name] if name == "main" else ["-b", name]))
        write(work / "src" / "app.py", f"{name}\n")
        git(work, "commit", "-qam", name)
    git(work, "checkout", "-q", "topic")


def a_tool(work: Path) -> str:
    """A file of the workspace as the name of a tool: git's script reads the file of that name beside its own tools."""
    tools = Path(git(work, "--exec-path").strip()) / "mergetools"
    payload = write(work / "tool", RUN.format(work.parent))
    return os.path.relpath(payload.resolve(), tools.resolve())


BRANCHES: dict[str, tuple[Callable[[Path], str], list[str]]] = {
    "the format of a rebase's steps": (
        lambda work: f"[rebase]\n\tinstructionFormat = %s%nexec {payload(work)}\n",
        ["rebase", "-X", "ours", "main"],
    ),
    "a tool that is a file, for a merge": (lambda work: f"[merge]\n\ttool = {a_tool(work)}\n", ["mergetool", "-y"]),
    "a tool that is a file, for a diff": (
        lambda work: f"[diff]\n\ttool = {a_tool(work)}\n",
        ["difftool", "-y", "main", "topic"],
    ),
    "a layout of vimdiff": (
        lambda work: (
            f'[mergetool "vimdiff"]\n\tlayout = "LOCAL,`sh<{write(work / "tool", RUN.format(work.parent)).name}`"\n'
        ),
        ["-c", "mergetool.vimdiff.path=true", "mergetool", "-y", "-t", "vimdiff"],
    ),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_a_payload_runs_when_branches_are_joined_or_compared(name: str, tmp_path: Path) -> None:
    text, words = BRANCHES[name]
    work = checkout(tmp_path / "work")
    two_branches(work)
    if "mergetool" in words:
        subprocess.run(["git", "merge", "main"], cwd=work, env=ENV, capture_output=True, check=False)
    left = left_by(work, lambda work: append(work / ".git" / "config", text(work)))
    assert (1, ".git/config") in said(left)
    assert not (tmp_path / "ran").exists()
    subprocess.run(
        ["git", *words], cwd=work, env=ENV, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=120
    )
    assert (tmp_path / "ran").exists()


LEAKS: dict[str, tuple[str, list[str], list[str]]] = {
    "the options of a merge": (
        '[branch "topic"]\n\tmergeOptions = -F {}\n',
        ["merge", "-X", "ours", "main"],
        ["log", "-1", "--format=%B"],
    ),
    "the signature of patches": ("[format]\n\tsignatureFile = {}\n", ["status"], ["format-patch", "--stdout", "-1"]),
    "the template of a message": (
        "[commit]\n\ttemplate = {}\n",
        ["-c", "core.editor=echo x >>", "commit", "--allow-empty"],
        ["log", "-1", "--format=%B"],
    ),
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_key_puts_a_file_of_the_home_into_what_is_published(name: str, tmp_path: Path) -> None:
    text, words, show = LEAKS[name]
    work = checkout(tmp_path / "work")
    two_branches(work)
    secret = write(tmp_path / "secret", "my key\n")
    left = left_by(work, lambda work: append(work / ".git" / "config", text.format(secret)))
    assert said(left) == [(1, ".git/config")]
    git(work, *words)
    assert "my key" in git(work, *show)


def test_patches_are_written_into_another_directory(tmp_path: Path) -> None:
    work = checkout(tmp_path / "work")
    left = left_by(work, config(f"[format]\n\toutputDirectory = {tmp_path}/bashrc.d\n\tsuffix = .sh\n"))
    (found,) = left.findings
    assert found.what.startswith("format.outputdirectory = /")
    git(work, "format-patch", "-q", "--root")
    assert (tmp_path / "bashrc.d" / "0001-one.sh").exists()
