"""The completion in real shells: bash, zsh and fish, each with its own script."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pexpect
import pytest

SECONDS = 60
MODULES = 150  # that an answer may load, beside those of Python's start; 81 to 137 with Python 3.11
PODBOT = os.path.join(os.path.dirname(sys.executable), "podbot")


@pytest.fixture
def environ(tmp_path: Path) -> Iterator[dict[str, str]]:
    """A home with two sessions, a directory and a file; the current directory is the one with these."""
    root = tmp_path / "run" / "podbot"
    for name in ("podbot-shop-1a2b3c", "notes"):
        (root / name).mkdir(parents=True)
        (root / name / "lock").touch()
    for path in (tmp_path / "run", root):
        path.chmod(0o700)
    work = tmp_path / "work"
    (work / "source").mkdir(parents=True)
    (work / "readme.txt").touch()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "podbot").symlink_to(PODBOT)
    # A hostile repository's program, which completion must not run.
    (work / "podbot").write_text(f"#!/bin/sh\ntouch {shlex.quote(str(tmp_path / 'ran'))}\n")
    (work / "podbot").chmod(0o755)
    found = {
        "PATH": f"{tmp_path / 'bin'}:/usr/local/bin:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "XDG_RUNTIME_DIR": str(tmp_path / "run"),
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
        "WORK": str(work),
    }
    yield found
    assert not (tmp_path / "ran").exists()


CASES = [
    ("podbot sto", "podbot stop "),
    ("podbot exec pod", "podbot exec podbot-shop-1a2b3c "),
    ("podbot run --agent op", "podbot run --agent opencode "),
    ("podbot --log-format=j", "podbot --log-format=json "),
    ("podbot --config rea", "podbot --config readme.txt "),
    ("podbot run sou", "podbot run source/"),
    ("podbot stop --r", "podbot stop --rm "),
    ("podbot image ls --js", "podbot image ls --json "),
    ("podbot run --allow @con", "podbot run --allow @containers "),
    ("podbot ps --filter sta", "podbot ps --filter state="),
    ("podbot ps --filter state=ru", "podbot ps --filter state=running "),
    ("podbot run --github-auth env:WO", "podbot run --github-auth env:WORK "),
    ("podbot config set sandbox.profile mi", "podbot config set sandbox.profile minimal "),
    ("./podbot sto", "./podbot stop "),
]
STARTS = {
    "bash": (
        ["--norc", "--noprofile"],
        "PS1='REA''DY> '; bind 'set enable-bracketed-paste off'; . <(podbot completion bash)",
    ),
    "zsh": (["-f"], "PS1='REA''DY> '; autoload -U compinit; compinit -u -D; . <(podbot completion zsh)"),
}


@pytest.mark.parametrize("shell", STARTS)
@pytest.mark.parametrize(("typed", "completed"), CASES)
def test_tab_completes(environ: Mapping[str, str], shell: str, typed: str, completed: str) -> None:
    arguments, start = STARTS[shell]
    child = pexpect.spawn(
        shell,
        arguments,
        env=dict(environ),
        cwd=environ["WORK"],
        encoding="utf-8",
        timeout=SECONDS,
        dimensions=(40, 200),
    )
    try:
        child.sendline(start)
        child.expect_exact("READY> ")
        child.send(typed + "\t")
        child.expect(re.escape(typed) + "\a?" + re.escape(completed.removeprefix(typed)))  # zsh may ring the bell
    finally:
        child.close(force=True)


@pytest.mark.parametrize(("typed", "completed"), CASES)
def test_fish_offers_the_same(environ: Mapping[str, str], typed: str, completed: str) -> None:
    script = f"podbot completion fish | source; complete -C {shlex.quote(typed)}"
    done = subprocess.run(
        ["fish", "--no-config", "-c", script], env=dict(environ), cwd=environ["WORK"], capture_output=True, text=True,
        timeout=SECONDS, check=True,
    )  # fmt: skip
    words = [line.partition("\t")[0] for line in done.stdout.splitlines()]
    assert completed.rsplit(maxsplit=1)[-1] in words


def test_an_answer_loads_few_modules(environ: Mapping[str, str]) -> None:
    """They are most of its time, which `make bench` measures beside a start of Python alone."""

    def loaded(*words: str) -> int:
        done = subprocess.run(
            [sys.executable, "-X", "importtime", *words], env=dict(environ), capture_output=True, check=True, text=True
        )
        return done.stderr.count("import time:")

    python = loaded("-c", "pass")
    for line in ("podbot ", "podbot exec ", "podbot --image ", "podbot run --agent ", "podbot history rm ",
                 "podbot ps --filter ", "podbot config set session.keep ", "podbot run --allow "):  # fmt: skip
        assert loaded("-m", "podbot", "__complete", "bash", line) - python <= MODULES, line
