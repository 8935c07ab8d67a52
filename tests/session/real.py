"""Commands of a fake engine that run for real, and repositories for them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

from podbot.testing import STDERR, STDOUT, Command, ExecPeer, FakeEngine

GIT_ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "A",
    "GIT_AUTHOR_EMAIL": "a@example.org",
    "GIT_COMMITTER_NAME": "A",
    "GIT_COMMITTER_EMAIL": "a@example.org",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


def git(directory: str, *words: str, env: Mapping[str, str] | None = None) -> str:
    done = subprocess.run(
        ["git", *words], cwd=directory, env={**GIT_ENV, **(env or {})}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"git {words}: {done.stderr}"
    return done.stdout.strip()


def commit(directory: str, name: str = "file", text: str = "x\n", *, env: Mapping[str, str] | None = None) -> None:
    with open(os.path.join(directory, name), "a", encoding="utf-8") as file:
        file.write(text)
    git(directory, "add", name)
    git(directory, "commit", "-qm", f"change {name}", env=env)


def server(base: str, *branches: str, tags: tuple[str, ...] = ()) -> str:
    """A bare repository with these branches (the first is HEAD); its path."""
    work, bare = os.path.join(base, "seed"), os.path.join(base, "server.git")
    first = branches[0] if branches else "main"
    git(base, "init", "-q", "--bare", "-b", first, bare)
    if branches:
        git(base, "init", "-q", "-b", first, work)
        commit(work, "README.md")
        for branch in branches[1:]:
            git(work, "branch", branch)
        for tag in tags:
            git(work, "tag", tag)
        git(work, "push", "-q", "--all", bare)
        git(work, "push", "-q", "--tags", bare)
    return bare


def real(peer: ExecPeer) -> int:
    """The command itself, here, with git's configuration switched off."""
    env = {**GIT_ENV, **peer.spec.env}
    done = subprocess.run(
        peer.spec.command, cwd=peer.spec.workdir, env=env, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    peer.write(STDOUT, done.stdout)
    peer.write(STDERR, done.stderr)
    return done.returncode


def shell(engine: FakeEngine, command: Command = real) -> Command:
    """``sh`` as ``command``, except when podbot runs it to signal a group: that reaches the fake's own sessions."""

    def run(peer: ExecPeer) -> int:
        words = peer.spec.command[-1].split()
        if len(words) == 3 and words[0] == "kill":
            return 0 if engine.kill(words[1].removeprefix("-"), int(words[2].removeprefix("-"))) else 1
        return command(peer)

    return run


def with_git() -> FakeEngine:
    """An engine whose containers have a real shell and a real git."""
    engine = FakeEngine()
    engine.on("git", real)
    engine.on("sh", shell(engine))
    return engine
