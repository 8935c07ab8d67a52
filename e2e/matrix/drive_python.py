"""Drives an agent with the official ACP SDK for Python, step by step: ``python -m e2e.matrix.drive_python PLAN``."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import acp
from acp.schema import ClientCapabilities, FileSystemCapabilities, ImageContentBlock, Implementation

from e2e.matrix.report import ENDS_AFTER_CANCEL, RUNS_BEFORE_CANCEL, Absent, Plan, expect, limited


class Editor:
    """The client's side: allows every request, and keeps every update, by session."""

    def __init__(self) -> None:
        self.updates: dict[str, list[Any]] = defaultdict(list)
        self.asked = 0

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates[session_id].append(update.model_dump(mode="json", by_alias=True, exclude_none=True))

    async def request_permission(self, options: list[Any], **_: Any) -> Any:
        self.asked += 1
        (allow, *_rest) = [option for option in options if option.kind == "allow_once"]
        return {"outcome": {"outcome": "selected", "optionId": allow.option_id}}

    def on_connect(self, conn: Any) -> None:
        """There is nothing to keep."""

    def said(self, session: str, kind: str = "agent_message_chunk") -> str:
        """Text of a session's messages."""
        found = [update for update in self.updates[session] if update["sessionUpdate"] == kind]
        return "".join(str(update["content"].get("text", "")) for update in found)

    def calls(self, session: str) -> str:
        """A session's tool calls, as JSON."""
        return json.dumps([each for each in self.updates[session] if each["sessionUpdate"].startswith("tool_call")])


class Driver:
    """Consecutive connections; what one finds out, the next ones use."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.editor = Editor()
        self.agent: Any = None
        self.hello: Any = None
        self.session = ""
        self.opened: Any = None

    @contextlib.asynccontextmanager
    async def connected(self, command: list[str]) -> AsyncIterator[Any]:
        """A connection, ended in the SDK's own way: end of input, TERM after 2 s, KILL after 4 s."""
        self.editor = Editor()
        with open(self.plan.log, "ab") as log:  # noqa: ASYNC230 - a file for the child
            options = {"stderr": log, "limit": 1 << 26}
            made = acp.spawn_agent_process(
                cast("Any", self.editor), *command, env=self.plan.env, cwd=self.plan.workspace, transport_kwargs=options
            )
            async with made as (self.agent, process):
                yield process

    async def initialize(self) -> None:
        offered = ClientCapabilities(
            fs=FileSystemCapabilities(read_text_file=True, write_text_file=True), terminal=True
        )
        about = Implementation(name="podbot-matrix", version="1")
        self.hello = await self.agent.initialize(protocol_version=1, client_capabilities=offered, client_info=about)
        expect(self.hello.protocol_version == 1, "version", self.hello.protocol_version)

    async def new(self) -> Any:
        self.opened = await self.agent.new_session(cwd=self.plan.workspace, mcp_servers=[])
        return self.opened

    async def ask(self, session: str, prompt: str, answer: str, *more: Any) -> None:
        """Run a prompt to its end, and check the agent's answer."""
        done = await self.agent.prompt(session_id=session, prompt=[acp.text_block(self.plan.say[prompt]), *more])
        expect(done.stop_reason == "end_turn", "stop reason", done.stop_reason)
        expect(self.plan.say[answer] in self.editor.said(session), "answer", self.editor.said(session))

    async def first(self) -> None:
        """All steps that one connection can show."""
        async with self.connected(self.plan.command):
            async with limited(self.plan, "initialize"):
                await self.initialize()
            async with limited(self.plan, "new"):
                self.session = (await self.new()).session_id
            if not self.session:
                return
            for step, what in (
                ("prompt", self.prompt),
                ("edit", self.edit),
                ("terminal output", self.terminal),
                ("images", self.image),
                ("cancel", self.cancel),
                ("two sessions", self.two),
                ("modes", self.modes),
            ):
                if self.plan.wants(step):
                    async with limited(self.plan, step):
                        await what()
            await asyncio.to_thread(self.plan.wait_for_the_minute)

    async def prompt(self) -> None:
        await self.ask(self.session, "say", "said")

    async def edit(self) -> None:
        await self.ask(self.session, "edit", "edited")
        expect(not self.editor.asked, "the agent asked for permission")
        expect(f"{self.plan.workspace}/{self.plan.say['file']}" in self.editor.calls(self.session), "no path")

    async def terminal(self) -> None:
        await self.ask(self.session, "run", "ran")
        calls = self.editor.calls(self.session)
        expect(self.plan.say["printed"] in calls, "the output did not come", calls[-300:])

    async def image(self) -> None:
        if not getattr(self.hello.agent_capabilities.prompt_capabilities, "image", False):
            raise Absent("agent: it does not offer images")
        image = ImageContentBlock(type="image", data=self.plan.say["image"], mime_type="image/png")
        await self.ask(self.session, "look", "seen", image)

    async def cancel(self) -> None:
        text = [acp.text_block(self.plan.say["wait"])]
        turn = asyncio.create_task(self.agent.prompt(session_id=self.session, prompt=text))
        try:
            await self.until(lambda: turn.done() or runs(self.plan.name))
            expect(not turn.done(), "the turn ended before")
            await asyncio.sleep(RUNS_BEFORE_CANCEL)
            await self.agent.cancel(session_id=self.session)
            done = await turn
            expect(done.stop_reason == "cancelled", "stop reason", done.stop_reason)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ENDS_AFTER_CANCEL):
                    await self.until(lambda: not runs(self.plan.name))
            expect(not runs(self.plan.name), "the command still runs")
        finally:
            turn.cancel()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something outside the protocol."""
        while not condition():  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.05)

    async def two(self) -> None:
        one, two = [(await self.new()).session_id for _ in range(2)]
        expect(one != two, "one id for both")
        await asyncio.gather(self.ask(one, "first", "isFirst"), self.ask(two, "second", "isSecond"))
        expect(self.plan.say["isSecond"] not in self.editor.said(one), "answers are mixed")
        expect(self.plan.say["isFirst"] not in self.editor.said(two), "answers are mixed")

    async def modes(self) -> None:
        opened = await self.new()
        if opened.modes is not None:
            others = [mode.id for mode in opened.modes.available_modes if mode.id != opened.modes.current_mode_id]
            await self.agent.set_session_mode(session_id=opened.session_id, mode_id=others[0])
            return
        for option in opened.config_options or []:
            if option.category == "mode":
                others = [choice.value for choice in option.options if choice.value != option.current_value]
                done = await self.agent.set_config_option(option.id, opened.session_id, others[0])
                now = {each.id: each.current_value for each in done.config_options}
                expect(now[option.id] == others[0], "the mode stayed", now)
                return
        raise Absent("agent: it has no modes")

    async def again(self) -> None:
        """A new podbot under the same name, right after the first one."""
        async with self.connected(self.plan.command):
            async with limited(self.plan, "restart"):
                await self.initialize()
            if self.plan.wants("load"):
                async with limited(self.plan, "load"):
                    if not self.hello.agent_capabilities.load_session:
                        raise Absent("agent: it does not load sessions")
                    await self.agent.load_session(cwd=self.plan.workspace, session_id=self.session, mcp_servers=[])
                    # Gemini CLI sends the conversation after its answer.
                    await self.until(lambda: self.plan.say["said"] in self.editor.said(self.session))
        if not self.plan.wants("resume"):
            return
        async with self.connected(self.plan.command), limited(self.plan, "resume"):
            await self.initialize()
            sessions = self.hello.agent_capabilities.session_capabilities
            if sessions is None or sessions.resume is None:
                raise Absent("agent: it does not resume sessions")
            await self.agent.resume_session(cwd=self.plan.workspace, session_id=self.session, mcp_servers=[])
            await self.ask(self.session, "recall", "recalled")

    async def permission(self) -> None:
        await self.initialize()
        await self.ask((await self.new()).session_id, "allow", "allowed")
        expect(self.editor.asked, "the agent did not ask")

    async def killed(self) -> None:
        """podbot is killed as Zed does it; the next one must be able to start."""
        async with self.connected(self.plan.ask) as process:
            if self.plan.wants("permission"):
                async with limited(self.plan, "permission"):
                    await self.permission()
            else:
                await self.initialize()
            if self.plan.wants("KILL"):
                process.kill()
        if self.plan.wants("KILL"):
            async with self.connected(self.plan.command), limited(self.plan, "KILL"):
                await self.initialize()

    async def run(self) -> None:
        await self.first()
        if self.session and self.plan.wants("restart", "load", "resume"):
            await self.again()
        if self.plan.wants("permission", "KILL"):
            await self.killed()


def runs(name: str) -> bool:
    """Whether this cell's endless command runs; the host sees the processes of a sandbox."""
    mark = f"never-ends-{name}".encode()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{entry}/cmdline", "rb") as file:
            if mark in file.read():
                return True
    return False


if __name__ == "__main__":
    asyncio.run(Driver(Plan.load(sys.argv[1])).run())
