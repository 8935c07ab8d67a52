"""The rows of ``make bench`` for sessions as such: a guest that idles, and twenty sessions that start at once."""

from __future__ import annotations

import statistics
import subprocess
import time
from typing import Any

from e2e.bench import say
from e2e.harness import World

IDLE_SECONDS = 10
SETTLE_SECONDS = 2  # in which a guest has compiled the rest of its text
SESSIONS = 20


def bench_sessions(world: World, session: str) -> list[dict[str, Any]]:
    """``session``: one whose agent does nothing."""
    rows = [_idle_guest(world, session), _at_once(world)]
    for row in rows:
        say(row)
    return rows


def _idle_guest(world: World, session: str) -> dict[str, Any]:
    """Memory of the guest, and how often it runs while it is idle."""
    guest = guest_of(int(world.inspect(session)["State"]["Pid"]))
    time.sleep(SETTLE_SECONDS)
    before = _status(guest)
    time.sleep(IDLE_SECONDS)
    after = _status(guest)
    names = ("voluntary_ctxt_switches", "nonvoluntary_ctxt_switches")
    wakes = sum(after[name] - before[name] for name in names)
    resident, own = after["VmRSS"] / 1024, after["RssAnon"] / 1024
    return {
        "name": "the guest while idle",
        "figures": f"{resident:.1f} MiB resident, {own:.1f} of them its own; {wakes} wake-ups in {IDLE_SECONDS} s",
        "asked": "<= 12 MB, 0",
        "resident_mib": round(resident, 1),
        "own_mib": round(own, 1),
        "wake_ups": wakes,
    }


def _at_once(world: World) -> dict[str, Any]:
    """From the first start until the last agent has printed; podbot's memory while they run."""
    words = ["--agent", "custom", "--", "sh", "-c", "echo up; exec sleep 600"]
    workspaces = [world.workspace() for _ in range(SESSIONS)]
    begin = time.perf_counter()
    children = [
        world.start("run", "--workspace", workspace, *words, stderr=subprocess.DEVNULL) for workspace in workspaces
    ]
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == b"up\n"
        seconds = time.perf_counter() - begin
        resident = statistics.median(_status(child.pid)["VmRSS"] / 1024 for child in children)
    finally:
        for child in children:
            child.terminate()
        for child in children:
            child.communicate(timeout=120)
    return {
        "name": f"{SESSIONS} sessions at once, `podbot run` each",
        "figures": f"{seconds:.1f} s until all run; podbot {resident:.1f} MiB resident each",
        "asked": "<= 2.5 s, <= 25 MB",
        "seconds": round(seconds, 2),
        "resident_mib": round(resident, 1),
    }


def guest_of(init: int) -> int:
    """The guest's pid on this host; it is the only child of the sandbox's init when that has started."""
    with open(f"/proc/{init}/task/{init}/children", encoding="ascii") as file:
        for pid in map(int, file.read().split()):
            with open(f"/proc/{pid}/cmdline", "rb") as words:
                if b"guest.py" in words.read():
                    return pid
    raise AssertionError(f"process {init} has no guest among its children")


def _status(pid: int) -> dict[str, int]:
    """The numbers in /proc/PID/status; sizes in KiB."""
    found = {}
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as file:
        for line in file:
            name, _, value = line.partition(":")
            if (words := value.split()) and words[0].isdigit():
                found[name] = int(words[0])
    return found
