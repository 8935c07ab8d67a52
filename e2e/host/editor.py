"""An editor: the official ACP Python SDK as a client whose offers of files and terminal must not be used.

It keeps every byte that podbot prints, and every call of the agent that would have acted on the editor's machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

import acp
from acp.schema import (
    AgentMessageChunk,
    AllowedOutcome,
    AuthCapabilities,
    ClientCapabilities,
    FileSystemCapabilities,
    Implementation,
    InitializeResponse,
    PermissionOption,
    RequestPermissionResponse,
    TextContentBlock,
    ToolCallUpdate,
)

from e2e.harness import PODBOT, World
from e2e.patience import patient

OFFERED = ClientCapabilities(
    fs=FileSystemCapabilities(read_text_file=True, write_text_file=True),
    terminal=True,
    auth=AuthCapabilities(terminal=True),
)


class Editor:
    """The client's side of the protocol. ``reached``: requests that should never have arrived."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.asked: list[str] = []  # titles of permission requests, which an editor may receive
        self.updates: list[Any] = []

    @property
    def said(self) -> str:
        """The agent's message so far."""
        chunks = [update.content for update in self.updates if isinstance(update, AgentMessageChunk)]
        return "".join(chunk.text for chunk in chunks if isinstance(chunk, TextContentBlock))

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append(str(tool_call.title))
        (allow, *_rest) = [option for option in options if option.kind in ("allow_once", "allow_always")]
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=allow.option_id))

    def _refuse(self, method: str) -> NoReturn:
        self.reached.append(method)
        raise acp.RequestError.method_not_found(method)

    async def read_text_file(self, **_: Any) -> NoReturn:
        self._refuse("fs/read_text_file")

    async def write_text_file(self, **_: Any) -> NoReturn:
        self._refuse("fs/write_text_file")

    async def create_terminal(self, **_: Any) -> NoReturn:
        self._refuse("terminal/create")

    async def terminal_output(self, **_: Any) -> NoReturn:
        self._refuse("terminal/output")

    async def release_terminal(self, **_: Any) -> NoReturn:
        self._refuse("terminal/release")

    async def wait_for_terminal_exit(self, **_: Any) -> NoReturn:
        self._refuse("terminal/wait_for_exit")

    async def kill_terminal(self, **_: Any) -> NoReturn:
        self._refuse("terminal/kill")

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method.startswith(("fs/", "terminal/", "mcp/")):
            self._refuse(method)
        raise acp.RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        if method.startswith(("fs/", "terminal/", "mcp/")):
            self.reached.append(method)

    def on_connect(self, conn: Any) -> None:
        """Keep nothing: the test holds the connection."""


@dataclass
class Hosted:
    """``agent``: the SDK's connection. ``out``, ``err``: podbot's output so far. ``returncode``: after its end."""

    process: asyncio.subprocess.Process
    editor: Editor
    agent: Any = None
    out: bytearray = field(default_factory=bytearray)
    err: bytearray = field(default_factory=bytearray)
    returncode: int | None = None
    pumps: list[asyncio.Task[None]] = field(default_factory=list)

    async def initialize(self) -> InitializeResponse:
        """As an editor that can do everything."""
        answer: InitializeResponse = await self.agent.initialize(
            protocol_version=1,
            client_capabilities=OFFERED,
            client_info=Implementation(name="podbot-e2e", title="podbot's suite", version="1"),
        )
        return answer

    async def leave(self, seconds: float = 40) -> None:
        """Close the connection, and wait for podbot to exit."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        async with asyncio.timeout(patient(seconds)):
            await asyncio.gather(*self.pumps)
            self.returncode = await self.process.wait()

    def frames(self) -> list[dict[str, Any]]:
        """Everything on stdout; fails unless each line is a JSON object and the last one is whole."""
        assert not self.out or self.out.endswith(b"\n"), self.out[-200:]
        found = [json.loads(line) for line in bytes(self.out).split(b"\n")[:-1]]
        assert all(isinstance(frame, dict) for frame in found), self.out[:2000]
        return found


@contextlib.asynccontextmanager
async def hosted(world: World, words: Sequence[str], env: dict[str, str] | None = None) -> AsyncIterator[Hosted]:
    """podbot with ``words``, and an editor at its other end. Processes that still run at the end are terminated."""
    process = await asyncio.create_subprocess_exec(
        *PODBOT, *words, env={**world.env, **(env or {})}, cwd=world.root, limit=1 << 26, start_new_session=True,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    made = Hosted(process, Editor())
    copy = asyncio.StreamReader(limit=1 << 26)
    made.pumps = [
        asyncio.create_task(_pump(process.stdout, made.out, copy)),
        asyncio.create_task(_pump(process.stderr, made.err)),
    ]
    made.agent = acp.connect_to_agent(cast("Any", made.editor), process.stdin, copy)
    try:
        yield made
    finally:
        await made.agent.close()
        if process.returncode is None:
            process.terminate()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patient(30)):
                await process.wait()
        for pump in made.pumps:
            pump.cancel()


async def _pump(source: asyncio.StreamReader, kept: bytearray, copy: asyncio.StreamReader | None = None) -> None:
    while data := await source.read(1 << 16):
        kept += data
        if copy is not None:
            copy.feed_data(data)
    if copy is not None:
        copy.feed_eof()
