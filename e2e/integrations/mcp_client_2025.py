"""An official client of June 2025 on ``podbot mcp``. Usage: mcp_client_2025.py URL TOKEN | COMMAND [WORD...]

Run by ``e2e/test_mcp_conformance.py`` in an environment with that client. It prints what it found as JSON: the revision
agreed on, the tools, and the results of a few calls.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client  # type: ignore[attr-defined] # its name until version 2


async def use(session: ClientSession) -> dict[str, Any]:
    """What a client does with the server."""
    begun = plain(await session.initialize())
    tools = plain(await session.list_tools())["tools"]
    results = {
        "write": await session.call_tool("write_file", {"file_path": "a.txt", "content": "one\n"}),
        "read": await session.call_tool("read_file", {"file_path": "a.txt"}),
        "run": await session.call_tool("shell_execute", {"command": ["sh", "-c", "cat a.txt; exit 3"]}),
        "missing": await session.call_tool("read_file", {"file_path": "missing"}),
    }
    listed: Any = (await session.list_resources()).resources
    return {
        "revision": begun["protocolVersion"],
        "tools": {tool["name"]: tool["annotations"]["readOnlyHint"] for tool in tools},
        "results": {name: plain(result) for name, result in results.items()},
        "file": plain(await session.read_resource(f"{listed[0].uri}/a.txt"))["contents"][0]["text"],
    }


def plain(model: Any) -> dict[str, Any]:
    """As on the wire: the names in Python differ between versions of the SDK."""
    found: dict[str, Any] = model.model_dump(by_alias=True, mode="json")
    return found


async def main(words: list[str]) -> dict[str, Any]:
    """Over HTTP with a URL, otherwise over stdio."""
    if words[0].startswith("http"):
        headers = {"Authorization": f"Bearer {words[1]}"}
        async with (
            streamablehttp_client(words[0], headers=headers) as (read, write, *_),
            ClientSession(read, write) as one,
        ):
            return await use(one)
    command = StdioServerParameters(command=words[0], args=words[1:], env=dict(os.environ))
    async with stdio_client(command) as (read, write), ClientSession(read, write) as one:
        return await use(one)


print(json.dumps(asyncio.run(main(sys.argv[1:]))))
