"""podbot as the logged-in user: the real home, runtime directory, systemd and D-Bus."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from e2e.harness import PODBOT

PATIENCE = 300.0  # seconds for one command, under emulation


def podbot(*words: str, env: Mapping[str, str] | None = None, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run podbot to its end."""
    done = run([*PODBOT, *words], env=env)
    if check:
        assert done.returncode == 0, f"podbot {shlex.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def run(words: list[str], *, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Any program, with text output and no input."""
    return subprocess.run(
        words, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=PATIENCE, check=False, cwd=os.path.expanduser("~"),
    )  # fmt: skip


def said(*words: str) -> str:
    """Its stdout, stripped; it must succeed."""
    done = run(list(words))
    assert done.returncode == 0, f"{shlex.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


def sudo(*words: str) -> str:
    """As root; it must succeed."""
    return said("sudo", "-n", *words)


def agent(
    *words: str, flags: tuple[str, ...] = (), env: Mapping[str, str] | None = None, path: str | None = None
) -> str:
    """The output of a custom agent in ``path``, or in a fresh workspace of this user's."""
    if path is None:
        with workspace() as fresh:
            return agent(*words, flags=flags, env=env, path=fresh)
    return podbot("run", "--workspace", path, "--agent", "custom", *flags, "--", *words, env=env).stdout.strip()


@contextlib.contextmanager
def workspace() -> Iterator[str]:
    """A directory below the home."""
    with tempfile.TemporaryDirectory(prefix="ws-", dir=os.path.expanduser("~")) as path:
        yield path


def doctor(env: Mapping[str, str] | None = None) -> dict[str, dict[str, Any]]:
    """``podbot doctor --json``: its checks by name. With a login of nobody, because it warns if there is none."""
    login = {"PODBOT_AGENT_ENV_ALLOWLIST": "ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY": "of-no-account"}
    done = podbot("doctor", "--json", env={**login, **(env or {})}, check=False)
    return {check["name"]: check for check in json.loads(done.stdout)}


def eventually(true: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Wait until it is true."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not within {seconds:.0f} s: {what}"
        time.sleep(0.3)
