"""The rows of ``make bench`` for the MCP server: calls by the official client over stdio, and its memory."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio

from e2e.bench_shell import percentiles, shown
from e2e.harness import World, processes
from e2e.mcp_client import environment, over_stdio, resident, value_of

CALLS = 200
SANDBOXES = 20
TEXT = "def function(argument): return argument + 1\n" * 200  # 8.8 kB


def bench_mcp(world: World) -> list[dict[str, Any]]:
    """The rows."""
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "place"
        rows = [anyio.run(_calls, world, place, backend) for backend in ("podman", "unsafe-local")]
        return [*rows, anyio.run(_first, world, place), _memory(world, place)]


async def _calls(world: World, place: Path, backend: str) -> dict[str, Any]:
    async with over_stdio(world, place, "--backend", backend) as client:
        value_of(await client.call_tool("write_file", {"file_path": "a.py", "content": TEXT}))
        times = []
        for _ in range(CALLS):
            begin = time.perf_counter()
            await client.call_tool("read_file", {"file_path": "a.py"})
            times.append(time.perf_counter() - begin)
    figures = percentiles(times)
    asked = "p50 <= 5 ms" if backend == "podman" else ""
    return {"name": f"MCP read_file over stdio, {backend}", "figures": shown(figures), "asked": asked, **figures}


async def _first(world: World, place: Path) -> dict[str, Any]:
    """A new sandbox, from the call that makes it to the result of a tool in it."""
    times = []
    async with over_stdio(world, place) as client:
        for _ in range(10):
            begin = time.perf_counter()
            box = value_of(await client.call_tool("sandbox_create"))["sandbox"]
            value_of(await client.call_tool("ls", {"sandbox": box}))
            times.append(time.perf_counter() - begin)
            value_of(await client.call_tool("sandbox_close", {"sandbox": box}))
    figures = percentiles(times)
    return {"name": "MCP new sandbox and ls in it", "figures": shown(figures), "asked": "", **figures}


def _memory(world: World, place: Path) -> dict[str, Any]:
    """A server with idle sandboxes, in each of which a file was read and a command was run."""
    env = environment(world, place)
    with world.start("mcp", env=env, stderr=subprocess.DEVNULL) as child:
        number = 0

        def ask(method: str, params: Any) -> Any:
            nonlocal number
            number += 1
            assert child.stdin is not None
            assert child.stdout is not None
            request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            child.stdin.write(json.dumps(request).encode() + b"\n")
            child.stdin.flush()
            while (found := json.loads(child.stdout.readline())).get("id") != number:
                pass
            return found["result"]

        who = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        ask("initialize", who)
        for _ in range(SANDBOXES):
            box = ask("tools/call", {"name": "sandbox_create", "arguments": {}})["structuredContent"]["sandbox"]
            for tool, arguments in (("ls", {}), ("shell_execute", {"command": ["true"]})):
                answer = ask("tools/call", {"name": tool, "arguments": {**arguments, "sandbox": box}})
                assert not answer["isError"], answer
        server = resident(child.pid)
        helpers = sum(map(_resident, _descendants(child.pid)))
        assert child.stdin is not None
        child.stdin.close()
        child.wait(120)
    figures = {"server_mib": round(server / 2**20, 1), "with_helpers_mib": round((server + helpers) / 2**20, 1)}
    text = f"{figures['server_mib']} MiB, with its helper processes {figures['with_helpers_mib']}"
    return {"name": f"MCP server, {SANDBOXES} idle sandboxes", "figures": text, "asked": "<= 150 MiB", **figures}


def _descendants(pid: int) -> list[int]:
    """Processes of podbot's that a process started, also through others."""
    parents = {}
    for found, _ in processes(own=True):
        try:
            parents[found] = int(Path(f"/proc/{found}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[1])
        except OSError:
            continue
    below = {pid}
    for _ in range(3):
        below |= {found for found, parent in parents.items() if parent in below}
    return sorted(below - {pid, os.getpid()})


def _resident(pid: int) -> int:
    try:
        return resident(pid)
    except OSError:
        return 0
