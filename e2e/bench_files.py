"""The rows of ``make bench`` for the file tools: calls in a sandbox and on this host, searches and copies."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from e2e.bench import paired, timed
from e2e.bench_shell import percentiles, shown
from e2e.harness import World
from e2e.tool_files import files_of, sandbox
from podbot.guest.channel import Channel
from podbot.guest.local import LocalGuest
from podbot.guest.messages import GuestCommand
from podbot.sections.host_copy import copy_into
from podbot.sections.host_mounts import HostMount
from podbot.sections.host_tree import look_at
from podbot.sections.mount_plan import plan_mounts
from podbot.shell.reconnecting import Connection
from podbot.tools.files import Files

CALLS = 200
FILES = 10_000
TEXT = "def function(argument): return argument + 1\n" * 200  # 8.8 kB
ASKED = "p50 <= 1.5 ms"


def bench_files(world: World, rounds: int) -> list[dict[str, Any]]:
    """The rows."""
    rows: list[dict[str, Any]] = []
    with sandbox(world) as (box, workspace), files_of(box) as files:
        rows += _calls("Podman", files, ASKED)
        _make_many(Path(workspace, "many"))
        with box.channel() as channel:
            rows += _searches(files, channel, box.run(["pwd"], capture=True).stdout.strip(), rounds)
        rows.append(_hydration(os.path.realpath(workspace), rounds))
    with tempfile.TemporaryDirectory() as root, LocalGuest.start() as guest:
        rows += _calls("this host", Files(Connection(lambda: guest.channel), root, where="", python=sys.executable), "")
    return rows


def _make_many(directory: Path) -> None:
    for number in range(FILES):
        place = directory / str(number // 100)
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.py").write_text(f"{TEXT}needle_{number}\n")


def _calls(where: str, files: Files, asked: str) -> list[dict[str, Any]]:
    files.write(("edited",), "<0>\n" + TEXT)
    calls: dict[str, Callable[[int], object]] = {
        "write_file": lambda number: files.write(("written", f"{number % 10}", str(number)), TEXT),
        "read_file": lambda number: files.read(("written", f"{number % 10}", str(number))),
        "edit_file": lambda number: files.edit(("edited",), f"<{number}>", f"<{number + 1}>"),
        "ls, 20 entries": lambda _: files.ls(("written", "0")),
    }
    return [_row(f"{name}, {where}", call, asked) for name, call in calls.items()]


def _row(name: str, call: Callable[[int], object], asked: str) -> dict[str, Any]:
    times = []
    for number in range(CALLS):
        begin = time.perf_counter()
        call(number)
        times.append(time.perf_counter() - begin)
    figures = percentiles(times)
    return {"name": name, "figures": shown(figures), "asked": asked, **figures}


def _searches(files: Files, channel: Channel, root: str, rounds: int) -> list[dict[str, Any]]:
    def by_grep(pattern: str) -> float:
        begin = time.perf_counter()
        running = channel.start(GuestCommand(("grep", "-rnE", pattern, "many"), cwd=root), lambda _stream, _data: None)
        ended = running.wait(60)
        assert ended is not None
        assert ended.code == 0
        return time.perf_counter() - begin

    rows = []
    for pattern in ("needle_77", "needle_[0-9]*77$", "_[0-9]+77$|no such text", "[0-9]{2}[78][79]$"):
        search = paired(
            lambda pattern=pattern: _seconds(lambda: files.grep(pattern, ("many",))),  # type: ignore[misc]
            lambda pattern=pattern: by_grep(pattern),  # type: ignore[misc]
            rounds,
        )
        name = f"grep {pattern}, {FILES} files"
        rows.append({"name": name, "other": "grep -rnE", "asked": "ratio <= 2", **search})
    times = [_seconds(lambda: files.glob("**/*77.py", ("many",))) for _ in range(rounds)]
    figures = percentiles(times)
    return [*rows, {"name": f"glob, {FILES} files", "figures": shown(figures), "asked": "<= 150 ms", **figures}]


def _hydration(root: str, rounds: int) -> dict[str, Any]:
    """Planning and copying a mount, beside ``cp -a`` of the same directory.

    Into memory: on a disk that writes back at the same time, each of the two varied by ten times.
    """
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None

    def by_podbot() -> float:
        with tempfile.TemporaryDirectory(dir=memory) as place:
            return _seconds(lambda: copy_into(plan_mounts([HostMount("many")], [root], look_at), place))

    def by_cp() -> float:
        with tempfile.TemporaryDirectory(dir=memory) as place:
            return timed(["cp", "-a", f"{root}/many", place], dict(os.environ))

    name = f"copy of a mount, {FILES} files"
    return {"name": name, "other": "cp -a", "asked": "ratio <= 1.5", **paired(by_podbot, by_cp, rounds)}


def _seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
