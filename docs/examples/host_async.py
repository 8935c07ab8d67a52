"""An embedder with asyncio: an agent in a sandbox, spoken to over a socket pair.

Run it with a project's directory: python docs/examples/host_async.py ~/src/shop
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from typing import Any

import podbot


async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, method: str, params: Any) -> Any:
    """One request, and the agent's answer to it; updates that come before are left aside."""
    writer.write(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}).encode() + b"\n")
    await writer.drain()
    while line := await reader.readline():
        message = json.loads(line)
        if message.get("id") == method and "method" not in message:
            return message["result"]
    raise ConnectionError("the agent is gone")


async def converse(config: podbot.AppConfig, project: str) -> podbot.HostResult:
    """Greet the agent, open a session in the project, leave."""
    ours, theirs = socket.socketpair()
    request = podbot.LaunchRequest(trusted_workspace=True)
    session = podbot.host(config, request, stdin=theirs, stdout=theirs, emit=tell)
    theirs.close()  # podbot has its own duplicates; with ours alone open, the end is seen on both sides
    ended = asyncio.create_task(asyncio.to_thread(session.wait))
    reader, writer = await asyncio.open_connection(sock=ours, limit=1 << 26)
    try:
        hello = {"protocolVersion": 1, "clientCapabilities": {"fs": {"readTextFile": True, "writeTextFile": True}}}
        await ask(reader, writer, "initialize", hello)
        await ask(reader, writer, "session/new", {"cwd": project, "mcpServers": []})
    finally:
        writer.close()  # the agent's input ends; podbot ends the agent if it does not leave by itself
        try:
            result = await ended
        except asyncio.CancelledError:
            session.cancel()
            raise
    return result


def tell(event: podbot.Event) -> None:
    """Called in the session's thread. What is to be seen: trust boundaries, refusals, the agent's stderr."""
    if event.level in ("notice", "warning"):
        sys.stderr.write(f"{event.kind}: {event.message}\n")


def main() -> None:
    project = os.path.abspath(sys.argv[1])
    overrides = {"workspace.source": "host_mount", "workspace.host_path": project}
    config = podbot.load_config(podbot.LoadOptions(environ=os.environ, overrides=overrides))
    result = asyncio.run(converse(config, project))
    sys.stderr.write(f"{result.session} ended with {result.status.code}; {result.statistics}\n")


if __name__ == "__main__":
    main()
