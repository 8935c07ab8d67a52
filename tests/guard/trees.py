"""Real checkouts for tests of the guard, and changes that a session makes in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from podbot.guard.compare import compare
from podbot.guard.marks import GuardReport
from podbot.guard.tree import Limits
from podbot.guard.walk import Scan
from tests.waiting import HANG, wait_until

PATIENT = Limits(seconds=HANG)
Act = Callable[[Path], object]
ENV = {
    "PATH": os.environ.get("PATH", os.defpath),
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    **{
        f"GIT_{who}_{what}": value
        for who in ("AUTHOR", "COMMITTER")
        for what, value in (("NAME", "A"), ("EMAIL", "a@b.c"))
    },
}


def git(where: Path, *words: str) -> str:
    """git as the operator runs it; a hook that fails is not hidden."""
    done = subprocess.run(["git", *words], cwd=where, env=ENV, capture_output=True, text=True, check=True)
    return done.stdout


def write(path: Path, text: str = "x\n", mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return path


def append(path: Path, text: str) -> None:
    with open(path, "a", encoding="utf-8") as file:
        file.write(text)


def next_tick() -> None:
    """Wait until files are stamped later than everything written so far.

    Since kernel 6.13, a file's time may be taken from the fine clock, ahead of the coarse one that the next file gets.
    """
    coarse = 5  # CLOCK_REALTIME_COARSE, for which Python has no constant
    before = time.time_ns()
    wait_until(lambda: time.clock_gettime_ns(coarse) > before)


def checkout(at: Path) -> Path:
    """A repository as projects have them: sources, build files, instructions, its own hooks."""
    at.mkdir()
    git(at, "init", "-q", "-b", "main")
    write(at / "src" / "app.py")
    write(at / "Makefile", "all:\n\ttrue\n")
    write(at / "package.json", '{"name": "a", "scripts": {"test": "true"}}')
    write(at / "pyproject.toml", '[project]\nname = "a"\nversion = "1"\n[build-system]\nrequires = ["hatchling"]\n')
    write(at / "AGENTS.md")
    write(at / ".vscode" / "settings.json", "{}")
    write(at / "tools" / "hook.sh", "#!/bin/sh\n", 0o755)
    git(at, "add", ".")
    git(at, "commit", "-qm", "one")
    return at


def left_by(work: Path, act: Callable[[Path], object], *, linked: str = "", limits: Limits = PATIENT) -> GuardReport:
    """The guard's findings for ``act``, which is run between two scans."""
    before = Scan(limits, modes=False).directories(str(work), linked)
    act(work)
    return compare(before, Scan(limits, before.values).directories(str(work), linked))


def said(left: GuardReport) -> list[tuple[int, str]]:
    return [(found.danger, found.path) for found in left.findings]


def config(text: str) -> Act:
    return lambda work: append(work / ".git" / "config", text)


def file(path: str, text: str = "x\n", mode: int = 0o644) -> Act:
    return lambda work: write(work / path, text, mode)


def link(path: str, target: str) -> Act:
    def act(work: Path) -> None:
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(work / path):
            (work / path).unlink()
        (work / path).symlink_to(target)

    return act


def hooks_as_link(work: Path) -> None:
    shutil.rmtree(work / ".git" / "hooks")
    (work / ".git" / "hooks").symlink_to("../tools")


def submodule(work: Path) -> None:
    """Its branch has the name of a file that git reads."""
    checkout(work.parent / "lib")
    git(work, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", "../lib", "sub")
    git(work / "sub", "branch", "config")
    git(work / "sub", "branch", "topic/config")
    git(work, "worktree", "add", "-q", "--detach", ".claude/worktrees/b")
    git(work, "commit", "-qm", "a submodule")
