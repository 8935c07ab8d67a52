"""Real agents behind ``podbot host``, with a mock model: what an editor sees, and requests that it must never get.

The editor is the official ACP Python SDK. It offers its files, its terminal and its logins, as Zed does, and records
any requests of the agents for them.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import acp
import pytest

from e2e.agents.kinds import KINDS
from e2e.agents.provider import aimock
from e2e.agents.scenario import (
    COMMIT,
    COMMIT_ASKING,
    COMMITTED,
    CONTENT,
    FILE,
    KEY,
    SAY,
    WRITE,
    WRITTEN,
    Scenario,
    scenario,
)
from e2e.harness import PODBOT, World, wait_for
from e2e.host.editor import Hosted, hosted
from e2e.host.pipe import Pipe
from e2e.patience import bound, patient

DOCS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs")

Make = Callable[..., AbstractContextManager[Scenario]]


@pytest.fixture
def make(world: World, request: pytest.FixtureRequest) -> Make:
    """A scenario of a hosted agent that keeps its artefacts under the test's name."""
    test = re.sub(r"[^\w-]+", "-", request.node.name).strip("-")
    return lambda kind, mode="acp": scenario(world, kind, aimock(), test, mode)


async def turn(run: Scenario, *flags: str) -> tuple[Hosted, dict[str, Any]]:
    """A whole session with one prompt, for which the agent writes a file: (its scenario, its answers)."""
    async with hosted(run.world, run.host_command(*flags), run.secrets) as host, asyncio.timeout(patient(100)):
        hello = await host.initialize()
        session = await host.agent.new_session(cwd=run.workspace, mcp_servers=[])
        prompt = [acp.text_block(WRITE), acp.resource_link_block(name="notes", uri=f"file://{run.workspace}/notes.md")]
        answer = await host.agent.prompt(session_id=session.session_id, prompt=prompt)
        began = time.monotonic()
        await host.leave()
        took = time.monotonic() - began
    keep(run, host)
    return host, {"hello": hello, "session": session, "answer": answer, "seconds": took}


def keep(run: Scenario, host: Hosted) -> None:
    """For the artefacts of a failure."""
    for name, data in (("stdout", host.out), ("stderr", host.err)):
        with open(run.path(name), "wb") as file:
            file.write(data)


def sent_to_agent(run: Scenario) -> list[dict[str, Any]]:
    """The frames that reached the agent's stdin."""
    return [json.loads(line) for line in run.read("agent-stdin").splitlines()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_prompt_turn_of_a_real_agent_requests_nothing_of_the_editors_machine(make: Make, kind: str) -> None:
    with make(kind) as run:
        host, turned = asyncio.run(turn(run))

        assert host.returncode == 0, host.err.decode()
        assert turned["answer"].stop_reason == "end_turn"
        assert WRITTEN in host.editor.said
        assert turned["seconds"] < bound(8)  # podbot does not wait for the agent (10.16)

        # The offers never arrived, so the agent made no request.
        (hello,) = [frame for frame in sent_to_agent(run) if frame.get("method") == "initialize"]
        offered = hello["params"]["clientCapabilities"]
        assert not {"fs", "terminal"} & set(offered)
        assert "terminal" not in offered.get("auth", {})
        assert hello["params"]["clientInfo"]["title"] == "podbot's suite"
        assert host.editor.reached == []
        assert host.editor.asked == []  # issue 10.11: the sandbox confines it, instead of its questions
        assert not [
            method for method in turned["hello"].auth_methods or [] if getattr(method, "type", "") == "terminal"
        ]

        # Each line of stdout is a frame, and each frame is the agent's own, byte for byte, except the answer to
        # initialize, which loses the logins that cannot finish inside (issue 10.17).
        frames = host.frames()
        assert not [frame for frame in frames if str(frame.get("method")).startswith(("fs/", "terminal/"))]
        with open(run.path("agent-stdout"), "rb") as file:
            own = [line for line in file.read().splitlines(keepends=True) if line.startswith(b"{")]
        passed = bytes(host.out).splitlines(keepends=True)
        changed = [(json.loads(got), json.loads(said)) for got, said in zip(passed, own, strict=True) if got != said]
        for frame in itertools.chain(*changed):
            del frame["result"]["authMethods"]
        assert [got for got, _ in changed] == [said for _, said in changed]
        assert len(changed) <= 1

        # The editor's path was the agent's: it wrote to the path that the model named.
        made = os.path.join(run.workspace, FILE)
        with open(made, encoding="utf-8") as text:
            assert text.read().strip() == CONTENT
        assert os.stat(made).st_uid == os.getuid()
        opened = [frame for frame in sent_to_agent(run) if frame.get("method") == "session/new"]
        assert [frame["params"]["cwd"] for frame in opened] == [run.workspace]

        # Credentials and network are as in `run`.
        assert {request["status"] for request in run.requests() if WRITE in str(request["body"])} >= {200}
        run.assert_closed()
        assert KEY not in host.out.decode() + host.err.decode()


async def commit(run: Scenario, env: dict[str, str], prompt: str, *flags: str) -> Hosted:
    """A session in which the model makes the agent commit the content of the workspace."""
    async with (
        hosted(run.world, run.host_command(*flags), {**run.secrets, **env}) as host,
        asyncio.timeout(patient(100)),
    ):
        await host.initialize()
        session = await host.agent.new_session(cwd=run.workspace, mcp_servers=[])
        await host.agent.prompt(session_id=session.session_id, prompt=[acp.text_block(prompt)])
        await host.leave()
    keep(run, host)
    assert COMMITTED in host.editor.said, host.err.decode()
    return host


@pytest.mark.parametrize("kind", KINDS)
def test_an_agent_commits_without_a_question_and_asks_first_with_ask(make: Make, kind: str) -> None:
    """Issue 10.11: Codex's own sandbox made .git read-only, claude and gemini asked, gemini had no identity."""
    with make(kind) as run:
        with open(run.path("gitconfig"), "w", encoding="utf-8") as file:
            file.write("[user]\n\tname = Ann\n\temail = ann@example.org\n")
        env = {"GIT_CONFIG_GLOBAL": run.path("gitconfig")}

        def git(*words: str) -> list[str]:
            command = ["git", "-C", run.workspace, *words]
            done = subprocess.run(
                command, env={**run.world.env, **env}, capture_output=True, text=True, check=True
            )  # fmt: skip
            return done.stdout.splitlines()

        git("init", "-q")
        for number, (prompt, flags) in enumerate(((COMMIT, ()), (COMMIT_ASKING, ("--ask",))), start=1):
            with open(os.path.join(run.workspace, f"{number}.txt"), "w", encoding="utf-8") as file:
                file.write("work")
            host = asyncio.run(commit(run, env, prompt, *flags))
            assert len(host.editor.asked) == len(flags), host.editor.asked
            # An honest agent's question needs no mark, and it uses no unknown method.
            assert not re.search(r"changed session/request_permission|refused", host.err.decode()), host.err.decode()
            assert git("log", "--format=%an <%ae> %s") == ["Ann <ann@example.org> by-the-agent"] * number
            assert git("status", "--short") == []
        # A codex that runs its own sandbox leaves .agents, .aws and .codex behind.
        assert sorted(os.listdir(run.workspace)) == [".git", "1.txt", "2.txt"]


async def say(host: Hosted, workspace: str) -> None:
    """A session, and a prompt in it: some agents report the missing login at the first, some at the second."""
    session = await host.agent.new_session(cwd=workspace, mcp_servers=[])
    await host.agent.prompt(session_id=session.session_id, prompt=[acp.text_block(SAY)])


async def without_login(world: World, kind: str) -> tuple[Hosted, list[str], acp.RequestError]:
    """The logins that an editor is offered, and the error when it continues nevertheless."""
    command = ["host", "--workspace", world.workspace(), "--agent", kind]
    async with hosted(world, command) as host, asyncio.timeout(patient(60)):
        hello = await host.initialize()
        offered = [method.id for method in hello.auth_methods or []]
        with pytest.raises(acp.RequestError) as caught:
            await say(host, command[2])
        await host.leave()
    return host, offered, caught.value


@pytest.mark.parametrize(
    ("kind", "offers", "advice"),
    [(name, list(kind.offers[0]), kind.offers[1]) for name, kind in KINDS.items() if kind.offers is not None],
)
def test_an_agent_without_a_login_offers_only_logins_that_can_finish(
    world: World, kind: str, offers: list[str], advice: str
) -> None:
    """Issue 10.17: "ChatGPT" and "Log in with Google" cannot finish inside; the error names those that can."""
    host, offered, error = asyncio.run(without_login(world, kind))
    assert offered == offers
    assert (error.code, advice in str(error)) == (-32000, True), error
    (notice,) = [line for line in host.err.decode().splitlines() if "no login for" in line]
    assert advice in notice


async def leave_in_the_middle(run: Scenario) -> float:
    """The editor disconnects while the agent waits for its model: seconds until podbot has exited."""
    async with hosted(run.world, run.host_command(), run.secrets) as host, asyncio.timeout(patient(100)):
        await host.initialize()
        session = await host.agent.new_session(cwd=run.workspace, mcp_servers=[])
        prompt = host.agent.prompt(session_id=session.session_id, prompt=[acp.text_block("never-said")])
        waiting = asyncio.create_task(prompt)
        await asyncio.to_thread(wait_for, run.requests, what="the agent's request")
        began = time.monotonic()
        await host.leave()
        took = time.monotonic() - began
        await asyncio.gather(waiting, return_exceptions=True)
    keep(run, host)
    host.frames()
    return took


def test_an_editor_that_disconnects_during_a_turn_leaves_no_agent_behind(make: Make, world: World) -> None:
    """Gemini continues to send requests to its model for minutes, even after its stdin was closed."""
    with make("gemini") as run:
        took = asyncio.run(leave_in_the_middle(run))
        assert took < bound(3)  # podbot does not wait for the agent (10.16)
        wait_for(lambda: not world.container(run.name), what="the sandbox to be removed", seconds=40)


def test_gemini_uses_the_editors_files_when_the_operator_delegates_them(make: Make) -> None:
    """The test above would pass with masking that does nothing, if no agent ever made a request. This one would
    fail.
    """
    assert KINDS["gemini"].fs
    with make("gemini") as run:
        host, turned = asyncio.run(turn(run, "--acp-delegation", "fs"))
        assert turned["answer"].stop_reason == "end_turn"
        assert "fs/read_text_file" in host.editor.reached
        (hello,) = [frame for frame in sent_to_agent(run) if frame.get("method") == "initialize"]
        assert hello["params"]["clientCapabilities"]["fs"] == {"readTextFile": True, "writeTextFile": True}
        assert "terminal" not in hello["params"]["clientCapabilities"]
        assert not os.path.exists(os.path.join(run.workspace, FILE))
        assert "agent.delegation = fs" in host.err.decode()


def test_the_client_of_the_how_to_works(make: Make) -> None:
    with open(os.path.join(DOCS, "how-to", "any-acp-client.md"), encoding="utf-8") as file:
        (program,) = re.findall(r"```python\n(.*?)```", file.read(), re.DOTALL)
    with make("claude") as run:
        for theirs, ours in (("/home/ada/src/shop", run.workspace), ("What is in here?", WRITE)):
            assert theirs in program
            program = program.replace(theirs, ours)
        shim = os.path.join(run.world.workspace("bin"), "podbot")
        with open(shim, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec {" ".join(PODBOT)} --config {run.path("config.toml")} "$@"\n')
        os.chmod(shim, 0o755)
        path = f"{os.path.dirname(shim)}:{run.world.env['PATH']}"
        done = subprocess.run(
            [sys.executable, "-c", program], env={**run.world.env, **run.secrets, "PATH": path},
            cwd=run.world.root, capture_output=True, text=True, timeout=90, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert WRITTEN in done.stdout
        assert os.path.exists(os.path.join(run.workspace, FILE))


def test_a_turn_of_the_codex_app_server(make: Make) -> None:
    with make("codex", "codex_app_server") as run:
        child = run.world.start(*run.host_command(), env=run.secrets)
        client = Pipe(child, run.workspace, run.name)
        try:
            sent = app_server_turn(run, client)
            assert client.finish() == 0, client.log
        finally:
            client.close()
            for name, data in (("stdout", client.out), ("stderr", client.err)):
                with open(run.path(name), "wb") as file:
                    file.write(data)
        # Every byte is the same outside and inside, in both directions.
        for name, ours in (("agent-stdin", sent), ("agent-stdout", bytes(client.out))):
            with open(run.path(name), "rb") as file:
                assert file.read() == ours
        with open(os.path.join(run.workspace, FILE), encoding="utf-8") as text:
            assert text.read() == CONTENT
        assert os.stat(os.path.join(run.workspace, FILE)).st_uid == os.getuid()
        assert {request["status"] for request in run.requests()} == {200}
        run.assert_closed()


def app_server_turn(run: Scenario, client: Pipe) -> bytes:
    """initialize to turn/completed; returns every byte that was sent."""
    sent = b""

    def send(frame: dict[str, Any], key: str = "", value: object = None) -> dict[str, Any]:
        nonlocal sent
        line = json.dumps(frame).encode() + b"\n"
        client.write(line)
        sent += line
        return client.wait(lambda answer: answer.get(key) == value) if key else {}

    about = {"name": "e2e", "title": "e2e", "version": "1"}
    hello = send({"id": 1, "method": "initialize", "params": {"clientInfo": about}}, "id", 1)
    assert "userAgent" in hello["result"]
    send({"method": "initialized"})
    # Issue 10.11: members that a client omits get the values that fit podbot's sandbox.
    started = send({"id": 2, "method": "thread/start", "params": {"cwd": run.workspace}}, "id", 2)["result"]
    assert (started["approvalPolicy"], started["sandbox"]) == ("never", {"type": "dangerFullAccess"})
    thread = started["thread"]
    assert thread["cwd"] == run.workspace
    prompt = [{"type": "text", "text": WRITE}]
    turn = {"id": 3, "method": "turn/start", "params": {"threadId": thread["id"], "input": prompt}}
    completed = send(turn, "method", "turn/completed")["params"]["turn"]
    assert completed["status"] == "completed", completed
    said = [frame for frame in client.frames() if frame.get("method") == "item/agentMessage/delta"]
    assert "".join(frame["params"]["delta"] for frame in said) == WRITTEN
    return sent
