"""The settings in the how-to are valid for their agents, and start a server that serves the tools."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "mcp.md"
PROJECT = "/home/ada/src/shop"


def blocks(heading: str) -> list[dict[str, Any]]:
    """The servers of the settings below a heading, by their names."""
    section = re.search(rf"(?ms)^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE.read_text(encoding="utf-8"))
    assert section is not None
    found = []
    for kind, text in re.findall(r"(?ms)^```(json|toml)\n(.*?)^```", section[1]):
        settings = json.loads(text) if kind == "json" else tomllib.loads(text)
        (servers,) = settings.values()
        found.append(servers)
    return found


@pytest.mark.anyio
@pytest.mark.parametrize("heading", ["Claude Code", "Codex", "Zed", "Cursor"])
async def test_an_entry_starts_a_server(heading: str, tmp_path: Path) -> None:
    (servers,) = blocks(heading)
    entry = servers["podbot"]
    assert entry["command"] == "/home/ada/.local/bin/podbot"
    assert entry["args"].count(PROJECT) == 1
    words = [str(tmp_path) if word == PROJECT else word for word in entry["args"]]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": os.getcwd(), **entry.get("env", {})}
    command = StdioServerParameters(command=sys.executable, args=["-m", "podbot", *words], env=env)
    async with Client(command, read_timeout_seconds=60) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert "/workspace" in (listed["sandbox_create"].description or "")
    assert "shell_execute" in listed


def test_an_entry_for_http_has_the_token_in_a_variable() -> None:
    claude, codex = blocks("Over HTTP")
    assert claude["podbot"]["url"] == codex["podbot"]["url"] == "http://127.0.0.1:8000/mcp"
    assert claude["podbot"]["headers"] == {"Authorization": "Bearer ${MCP_TOKEN}"}
    assert codex["podbot"]["bearer_token_env_var"] == "MCP_TOKEN"
