"""That the catalogue is honest: what it puts into class 1 runs when the operator's git works in the directory.

Each payload leaves a file ``ran`` beside the checkout. In every case the guard reports it as well.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.guard.trees import append, checkout, git, left_by, write


def payload(work: Path, at: str = "payload.sh") -> str:
    """A program that leaves ``ran``; its absolute path."""
    return str(write(work / at, f"#!/bin/sh\ntouch '{work.parent}/ran'\n", 0o755))


def config(text: str) -> Callable[[Path], None]:
    return lambda work: append(work / ".git" / "config", text.format(payload(work)))


def commondir(work: Path) -> None:
    """A second git directory, in the tree: git takes its configuration for the repository's."""
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
    write(work / "src" / "app.py", "z\n")  # as long as before: git must look at the content


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
}


@pytest.mark.parametrize("name", AT_STATUS)
def test_it_runs_at_git_status_and_is_reported_as_class_1(name: str, tmp_path: Path) -> None:
    act, where = AT_STATUS[name]
    work = checkout(tmp_path / "work")
    (work / "src" / "app.py").touch()  # the index is to be refreshed, as after any edit
    left = left_by(work, act)
    assert not (tmp_path / "ran").exists(), "the guard itself ran it"
    git(work / where, "status")
    assert (tmp_path / "ran").exists()
    assert any(found.danger == 1 for found in left.findings)


OTHERS: dict[str, tuple[str, list[str]]] = {
    "a pager": ("[core]\n\tpager = {}\n[pager]\n\tlog = true\n", ["-c", "core.bare=false", "-p", "log"]),
    "an external diff": ("[diff]\n\texternal = {}\n", ["diff", "HEAD", "--", "src/app.py"]),
    "an alias": ("[alias]\n\tst = !{}\n", ["st"]),
    "an editor": ("[core]\n\teditor = {}\n", ["commit", "--allow-empty", "--amend"]),
    "a transport": ('[remote "origin"]\n\turl = ext::{}\n[protocol "ext"]\n\tallow = always\n', ["ls-remote"]),
}


@pytest.mark.parametrize("name", OTHERS)
def test_it_runs_with_another_command(name: str, tmp_path: Path) -> None:
    import pty
    import subprocess

    from tests.guard.trees import ENV

    text, words = OTHERS[name]
    work = checkout(tmp_path / "work")
    write(work / "src" / "app.py", "other\n")
    left = left_by(work, config(text))
    assert any(found.danger == 1 for found in left.findings)
    leader, follower = pty.openpty()  # a pager wants a terminal
    with open(leader, "rb"), open(follower, "rb") as terminal:
        subprocess.run(
            ["git", *words], cwd=work, env={**ENV, "PAGER": "cat"}, stdin=terminal, stdout=terminal, stderr=terminal,
            check=False, timeout=30,
        )  # fmt: skip
    assert (tmp_path / "ran").exists()
