"""The guard's row of ``make bench``: a session on a checkout of 50,000 files, with and without the guard."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from collections.abc import Callable
from typing import Any

from e2e.bench import CONSOLE, paired, say, timed
from e2e.harness import World
from podbot.guard.walk import Scan

DIRECTORIES, FILES = 2_500, 20
MAKEFILES = 200
GIT = ["git", "-c", "user.name=A", "-c", "user.email=a@b.c"]


def checkout(path: str) -> None:
    """A packed repository; every twelfth directory has a build file."""
    for number in range(DIRECTORIES):
        place = os.path.join(path, f"part{number % 25}", f"module{number % 500}", f"d{number}")
        os.makedirs(place)
        names = [f"source_{index}.py" for index in range(FILES)]
        if number < MAKEFILES:
            names[0] = "Makefile"
        for name in names:
            with open(os.path.join(place, name), "w", encoding="utf-8") as file:
                file.write("all:\n" if name == "Makefile" else "")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "one"], ["repack", "-adq"]):
        subprocess.run([*GIT, *words], cwd=path, check=True)


def bench_guard(world: World, rounds: int) -> list[dict[str, Any]]:
    """The additional time of a whole session, and the time of its second scan, for whose end podbot waits."""
    work = world.workspace("many")
    checkout(work)

    def session(*flags: str) -> Callable[[], float]:
        words = [CONSOLE, "run", "--workspace", work, "--agent", "custom", *flags, "--", "true"]
        return lambda: timed(words, world.env)

    times = paired(session(), session("--no-guard"), rounds)
    more = round(times["podbot_ms"] - times["other_ms"])
    count = DIRECTORIES * FILES
    row = {"name": f"podbot run on {count:,} files, guarded", "other": "--no-guard", "asked": "<= 150 ms more", **times}
    row["name"] += f": {more} ms more"
    row["more_ms"] = more
    say(row)
    scans = [_second_scan(world, work) for _ in range(max(5, rounds // 2))]
    figures = f"{statistics.median(scans) * 1000:.0f} ms ({min(scans) * 1000:.0f}-{max(scans) * 1000:.0f})"
    figures += f"; {_processor(work) * 1000:.0f} ms of one processor"
    scan = {"name": "its second scan alone", "figures": figures, "asked": "", "seconds": scans}
    say(scan)
    return [row, scan]


def _processor(work: str) -> float:
    """Seconds of processor time, which other load on the machine does not affect."""
    times = []
    for _ in range(5):
        begin = time.process_time()
        Scan().directories(work)
        times.append(time.process_time() - begin)
    return statistics.median(times)


def _second_scan(world: World, work: str) -> float:
    done = world.agent("true", workspace=work, flags=("--log-format", "json", "-v"))
    lines = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    (end,) = [line for line in lines if line["kind"] == "guard.end"]
    assert end["entries"] > DIRECTORIES * FILES
    return float(end["seconds"])
