"""A real ``podbot mcp`` and the official client."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio.to_thread
import httpx2
import mcp_types as types
from mcp import Client, StdioServerParameters
from mcp.client.extension import ClientExtension
from mcp.client.streamable_http import streamable_http_client

from e2e.harness import PODBOT, World, processes, wait_for

CALL_SECONDS = 120


def environment(world: World, place: Path) -> dict[str, str]:
    """Workspaces are made below ``place``, on either backend."""
    place.mkdir(exist_ok=True)
    return {**world.sealed_env, "PODBOT_CACHE": str(place), "TMPDIR": str(place), "PODBOT_SANDBOX_MEMORY": "1g"}


def running(command: str) -> bool:
    """Whether a process of any user has exactly this command line: those of a sandbox are another user's."""
    return any(found == command for _, found in processes())


def left_workspaces(place: Path) -> list[str]:
    """Directories of workspaces that were not removed."""
    tops = [*place.glob("sandbox/*"), *place.glob("podbot-*/*")]
    return sorted(str(found) for found in tops)


@contextlib.asynccontextmanager
async def over_stdio(
    world: World, place: Path, *words: str, mode: str = "auto", extensions: Sequence[ClientExtension] = ()
) -> AsyncIterator[Client]:
    """The official client on a server of its own, whose end is waited for.

    2 s after the end of its input the SDK kills a server's process group. A slow engine takes longer to remove
    sandboxes, so the server gets a group of its own here.
    """
    env = environment(world, place)
    argv = ["--wait", *PODBOT, "mcp", *words]
    command = StdioServerParameters(command="setsid", args=argv, env=env, cwd=world.root)
    client = Client(command, mode=mode, read_timeout_seconds=CALL_SECONDS, extensions=list(extensions))
    async with client:
        yield client
    await anyio.to_thread.run_sync(lambda: wait_for(lambda: not left_workspaces(place), what="the end", seconds=120))


@contextlib.contextmanager
def http_server(world: World, place: Path, *words: str) -> Iterator[tuple[subprocess.Popen[bytes], str, Path]]:
    """A server over HTTP: its process, its URL, and what it writes on stderr."""
    log = place.parent / "stderr"
    with log.open("wb") as stderr:
        child = world.start("mcp", "--http", "0", *words, env=environment(world, place), stderr=stderr)
    try:
        wait_for(lambda: b"/mcp" in log.read_bytes(), what="the server")
        found = re.search(r"http://\S+/mcp", log.read_text())
        assert found is not None
        yield child, found.group(), log
    finally:
        child.terminate()
        child.communicate(timeout=60)


@contextlib.asynccontextmanager
async def over_http(url: str, token: str, mode: str = "auto") -> AsyncIterator[Client]:
    """The official client with a token."""
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=CALL_SECONDS) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


def text_of(result: types.CallToolResult) -> str:
    """What a model reads."""
    first = result.content[0]
    assert isinstance(first, types.TextContent)
    return first.text


def value_of(result: types.CallToolResult) -> dict[str, Any]:
    """The value of a result without error."""
    assert not result.is_error, text_of(result)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def resident(pid: int) -> int:
    """Bytes of memory that a process has resident, also what it shares with others."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
    return int(found[1]) * 1024 if found else 0
