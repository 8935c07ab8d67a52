"""Figures of a sandbox provider of Inspect, as JSON: arguments are its type, a Compose file, and how many of each.

A sample is what Inspect does with one: start its sandbox, write a file, run a command, read the file, remove it.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

import anyio
from inspect_ai._util.entrypoints import ensure_entry_points
from inspect_ai.util._sandbox.registry import registry_find_sandboxenv
from inspect_ai.util._subprocess import init_max_subprocesses


async def figures(kind: str, file: str, commands: int, samples: int) -> dict[str, Any]:
    ensure_entry_points()
    init_max_subprocesses(100)
    provider: Any = registry_find_sandboxenv(kind)
    await provider.task_init("startup", file)
    found: dict[str, Any] = {}
    environments = await provider.sample_init("figures", file, {})
    box = next(iter(environments.values()))
    await box.exec(["true"])
    times = []
    for _ in range(commands):
        begin = time.perf_counter()
        assert (await box.exec(["true"])).success
        times.append(time.perf_counter() - begin)
    parts = statistics.quantiles(times, n=20)
    found |= {"exec_p50_ms": round(parts[9] * 1000, 2), "exec_p95_ms": round(parts[18] * 1000, 2)}
    begin = time.perf_counter()
    async with anyio.create_task_group() as group:
        for _ in range(50):
            group.start_soon(box.exec, ["true"])
    found["50_commands_s"] = round(time.perf_counter() - begin, 3)
    await provider.sample_cleanup("figures", file, environments, False)

    async def sample() -> None:
        made = await provider.sample_init("figures", file, {})
        one = next(iter(made.values()))
        await one.write_file("in.txt", "text")
        assert (await one.exec(["cat", "in.txt"])).stdout == "text"
        assert await one.read_file("in.txt") == "text"
        await provider.sample_cleanup("figures", file, made, False)

    begin = time.perf_counter()
    async with anyio.create_task_group() as group:
        for _ in range(samples):
            group.start_soon(sample)
    found[f"{samples}_samples_s"] = round(time.perf_counter() - begin, 2)
    await provider.task_cleanup("shutdown", file, True)
    return found


if __name__ == "__main__":
    arguments = (sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
    sys.stdout.write(json.dumps(anyio.run(figures, *arguments)) + "\n")
