"""Runs a program with a time limit, writes its output to a log, and puts its last lines into the error."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

from e2e.vm.console import cleaned, last_lines
from e2e.vm.errors import VmError


def say(text: str) -> None:
    """One line of progress."""
    print(f"vm: {text}", file=sys.stderr, flush=True)


def step(what: str, words: Sequence[str], *, limit: float, log: str, env: Mapping[str, str] | None = None) -> None:
    """Run ``words`` for at most ``limit`` seconds, with its output in the file ``log``. Raises VmError."""
    say(f"{what} …")
    began = time.monotonic()
    with open(log, "wb") as out:
        try:
            child = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, start_new_session=True
            )
        except OSError as exc:
            raise VmError(f"{what}: {words[0]} could not be started: {exc.strerror}") from exc
        try:
            code: object = child.wait(limit)
        except subprocess.TimeoutExpired:
            code = f"ended after {limit:.0f} s"
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
    if code != 0:
        with open(log, "rb") as file:
            words_of_it = last_lines(cleaned(file.read()))
        raise VmError(f"{what} failed (status {code}); the last lines of {log}:\n{words_of_it}")
    say(f"{what}: {time.monotonic() - began:.0f} s")


@contextlib.contextmanager
def alone(path: str) -> Iterator[None]:
    """Hold the lock ``path``. Raises VmError when another run has it, because they would share a console, and disks."""
    with open(path, "w", encoding="ascii") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise VmError("another scripts/vm is at work in this tree; wait for its end") from None
        yield


def need_room(path: str, gigabytes: float, what: str) -> None:
    """Raises VmError when the file system of ``path`` has less than that free."""
    free = shutil.disk_usage(path).free / 1e9
    if free < gigabytes:
        raise VmError(f"{what} needs {gigabytes:.0f} GB, and {path} has {free:.1f} GB free; make room there")


def need_programs(packages: Mapping[str, str]) -> None:
    """Raises VmError with the packages of missing programs. ``packages``: by program."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    missing = [package for program, package in packages.items() if shutil.which(program, path=path) is None]
    if missing:
        raise VmError(f"missing here: {' '.join(missing)}; `apt-get install {' '.join(missing)}` brings it")
