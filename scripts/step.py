#!/usr/bin/env python3
"""Run one step of the gate, with a time limit: usage: scripts/step.py NAME SECONDS COMMAND...

Prints the step's name when it begins and its time when it has ended; exits with the command's status. At the limit
every process of the step's group gets ABRT, at which pytest prints the stack of each thread; then what is left is
killed, with its descendants, and the step exits with 124. Ctrl-C and TERM end the step without the stacks.

Runs with Python 3.8 or later, because the first step looks for a newer one.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from types import FrameType

GRACE = 10.0  # seconds for a process to print its stacks, and for a step to end after TERM
AT_LIMIT = 124  # as `timeout` exits


class Signalled(Exception):
    """A signal arrived; ALRM is the limit's."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run(name: str, limit: float, command: list[str]) -> int:
    """Run the step; returns its exit status."""
    print(f"== {name}", flush=True)
    began = time.monotonic()
    child = subprocess.Popen(command, start_new_session=True)
    for number in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _raise)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        code = child.wait()
        code = code if code >= 0 else 128 - code
        how = f"exit code {code}" if code else "passed"
    except Signalled as exc:
        at_limit = exc.number == signal.SIGALRM
        if at_limit:
            print(f"== {name}: still runs at its limit of {limit:.0f} s; the stack of each thread:", flush=True)
        _end(child, stacks=at_limit)
        code, how = (AT_LIMIT, "ended at its limit") if at_limit else (128 + exc.number, "ended by a signal")
    signal.setitimer(signal.ITIMER_REAL, 0)
    print(f"== {name}: {time.monotonic() - began:.0f} s, {how}", flush=True)
    return code


def _raise(number: int, _frame: FrameType | None) -> None:
    for other in (signal.SIGALRM, signal.SIGTERM, signal.SIGINT):
        signal.signal(other, signal.SIG_IGN)  # the end of the step is not interrupted
    raise Signalled(number)


def _end(child: subprocess.Popen[bytes], *, stacks: bool) -> None:
    """End the step's group and its descendants."""
    below = _descendants(child.pid)
    if stacks:
        # The lowest first and one after another, so that their stacks do not mix.
        for pid in [pid for pid in reversed(below) if _is_in_group(pid, child.pid)]:
            _send(signal.SIGABRT, pid)
            _wait_for_end(pid)
    else:
        _send(signal.SIGTERM, -child.pid)
        _wait_for_end(child.pid)
    for pid in (-child.pid, *below[1:]):
        _send(signal.SIGKILL, pid)
    child.wait()


def _descendants(root: int) -> list[int]:
    """``root`` and the processes below it, each after its parent; not those that were orphaned."""
    by_parent: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := _stat(int(name))):
            by_parent.setdefault(int(stat[1]), []).append(int(name))
    found = [root]
    for pid in found:  # grows meanwhile
        found += by_parent.get(pid, [])
    return found


def _stat(pid: int) -> list[str]:
    """State, parent and what follows in /proc/PID/stat; empty when the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _is_in_group(pid: int, group: int) -> bool:
    try:
        return os.getpgid(pid) == group
    except ProcessLookupError:
        return False


def _wait_for_end(pid: int) -> None:
    until = time.monotonic() + GRACE
    while _stat(pid)[:1] not in ([], ["Z"]) and time.monotonic() < until:
        time.sleep(0.05)


def _send(number: int, pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        raise SystemExit("usage: scripts/step.py NAME SECONDS COMMAND...")
    raise SystemExit(run(sys.argv[1], float(sys.argv[2]), sys.argv[3:]))
