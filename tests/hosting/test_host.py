"""``host`` from a plan to the agent's status, in an engine in memory."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from podbot.container_spec import Mount
from podbot.errors import ClientBroken, PathError, SandboxDied
from podbot.exec_spec import ExecSpec
from podbot.execution.hosted_end import HostedLimits
from podbot.execution.runner import ExecIO, ExecStatus
from podbot.hosting.host import HostResult, channel_for, run_hosted
from podbot.launch.resources.credentials import CredentialsPlan
from podbot.launch.types import CredentialSource, LaunchPlan
from podbot.streams.protocol_channel import Counts
from podbot.streams.wake import Signal, Wake
from podbot.testing import STDERR, STDOUT, ExecPeer, FakeEngine, ScriptedExec
from tests.session.plans import SESSION, Place, changed
from tests.streams.plumbing import Pipe, pipes
from tests.waiting import HANG

NEVER = HostedLimits(term=HANG, kill=HANG, status=HANG, grace=HANG, look=HANG, delivery=HANG)
INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"clientCapabilities":{"fs":{},"x":1}}}\n'


@pytest.fixture
def client() -> Iterator[tuple[Pipe, Pipe]]:
    with pipes(2) as (stdin, stdout):
        yield stdin, stdout


def plan(place: Place, **changes: Any) -> LaunchPlan:
    values: dict[str, Any] = {"subcommand": "host", "mode": "acp", "command": ExecSpec(command=("claude-agent-acp",))}
    return place.plan(**(values | changes))


def hosted(
    engine: FakeEngine, place: Place, wake: Wake, client: tuple[Pipe, Pipe], decided: LaunchPlan, **more: Any
) -> HostResult:
    stdin, stdout = client
    io = ExecIO(stdin.read, stdout.write, more.pop("stderr", None))
    more = {"limits": NEVER} | more
    return run_hosted(engine, decided, io, wake, place.events.append, channel=channel_for(decided), **more)


def read(pipe: Pipe) -> bytes:
    os.set_blocking(pipe.read, False)
    try:
        return os.read(pipe.read, 1 << 16)
    except BlockingIOError:
        return b""


def echo(io: ExecPeer) -> int:
    io.write(STDOUT, b"banner!\n" + io.read_all())
    io.write(STDERR, b"done\n")
    return 3


def test_acp_is_filtered(engine: FakeEngine, place: Place, wake: Wake, client: tuple[Pipe, Pipe]) -> None:
    engine.on("claude-agent-acp", echo)
    os.write(client[0].write, INITIALIZE)
    client[0].close(client[0].write)
    result = hosted(engine, place, wake, client, plan(place, extra_methods=("initialize",)))
    masked = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"clientCapabilities":{"x":1}}}\n'
    assert read(client[1]) == masked
    assert result == HostResult(
        SESSION, ExecStatus(3), kept=False, statistics=Counts(1, len(masked), 1, len(masked), 0, 1)
    )
    assert place.kinds()[0] == "host.extra_methods"
    kinds = place.kinds()[1:]
    assert kinds[:4] == ["container.create", "container.start", "agent.start", "host.rewritten"]
    assert sorted(kinds[4:7]) == ["agent.noise", "agent.stderr", "host.noise"]
    assert kinds[7:] == ["agent.end", "container.removed", "host.noise_total"]
    assert engine.by_name == {}


def test_the_result_lists_the_copied_credentials(
    engine: FakeEngine, place: Place, wake: Wake, client: tuple[Pipe, Pipe]
) -> None:
    given = os.path.join(place.base, ".codex")
    os.makedirs(given)
    source = CredentialSource("codex", given, os.path.realpath(given), "/root/.codex")
    engine.on("claude-agent-acp", ScriptedExec())
    result = hosted(engine, place, wake, client, plan(place, credentials=CredentialsPlan((source,))))
    assert result.credentials == ("/root/.codex",)


def test_codex_app_server_is_filtered(engine: FakeEngine, place: Place, wake: Wake, client: tuple[Pipe, Pipe]) -> None:
    engine.on("codex", echo)
    asks, tells = b'{"method":"item/tool/call","id":1}\n', b'{"method":"item/started","params":{}}\n'
    sent = b"\xff no json\n" + asks + tells
    os.write(client[0].write, sent)
    client[0].close(client[0].write)
    decided = plan(place, mode="codex_app_server", kind="codex", command=ExecSpec(command=("codex",)))
    result = hosted(engine, place, wake, client, decided)
    assert read(client[1]) == tells
    assert (result.statistics.frames_to_agent, result.statistics.refused) == (2, 2)


def test_the_codex_channel_knows_the_mounts_and_methods(place: Place) -> None:
    decided = plan(place, mode="codex_app_server", extra_methods=("item/tool/call",), frame_limit=300)
    channel = channel_for(decided)
    for number, cwd in enumerate(("/workspace/a", "/elsewhere")):
        frame = {"id": number, "method": "thread/start", "params": {"cwd": cwd, "dynamicTools": []}}
        channel.client_data(json.dumps(frame).encode() + b"\n")
    (passed,) = channel.for_agent()
    assert json.loads(passed)["params"] == {"cwd": "/workspace/a", "dynamicTools": []}
    channel.agent_data(b'{"id":1,"method":"item/tool/call"}\n' + b"x" * 400 + b"\n")
    assert len(channel.for_client()) == 2, "an answer about the other place, and a call"
    assert [said.reason for said in channel.refusals()] == ["outside_mount", "over_limit"]


@pytest.mark.parametrize(
    ("delegation", "what"),
    [
        ("fs", "files"),
        ("terminal", "terminals and login commands"),
        ("all", "files, terminals, login commands and MCP servers"),
    ],
)
def test_reduced_isolation_is_reported(  # noqa: PLR0917 - two of them are the parameters
    engine: FakeEngine, place: Place, wake: Wake, client: tuple[Pipe, Pipe], delegation: str, what: str
) -> None:
    engine.on("claude-agent-acp", ScriptedExec())
    hosted(engine, place, wake, client, plan(place, delegation=delegation))
    (said,) = [event for event in place.events if event.kind == "host.delegation"]
    assert (said.level, said.fields) == ("notice", {"delegation": delegation})
    assert f"may use {what} of the client's own machine" in said.message


def test_extra_methods_are_reported(engine: FakeEngine, place: Place, wake: Wake, client: tuple[Pipe, Pipe]) -> None:
    engine.on("claude-agent-acp", ScriptedExec())
    hosted(engine, place, wake, client, plan(place, extra_methods=("_x/y", "_x/z")))
    (said,) = [event for event in place.events if event.kind == "host.extra_methods"]
    assert (said.level, said.fields) == ("notice", {"methods": ["_x/y", "_x/z"]})
    assert "reduced isolation: the agent may also call _x/y, _x/z at the client" in said.message


def test_the_channel_knows_the_mounts_methods_and_logins(place: Place) -> None:
    decided = plan(place, delegation="terminal", frame_limit=1000, extra_methods=("_x/y",), mcp_servers="pass")
    more = Mount("/srv/ref", "/reference")
    more_mounts = (*decided.sandbox.container.mounts, more)
    container = dataclasses.replace(decided.sandbox.container, mounts=more_mounts, link=("/short", place.workspace))
    channel = channel_for(changed(decided, container=container))
    opened = []
    for number, cwd in enumerate(("/workspace/a", "/reference/a", "/short/a", "/srv/ref", "/elsewhere")):
        params = {"cwd": cwd, "mcpServers": [{"name": "x"}]}
        opened.append(json.dumps({"id": number, "method": "session/new", "params": params}).encode() + b"\n")
        channel.client_data(opened[-1])
    assert b"".join(channel.for_agent()) == b"".join(opened[:3]), "with the client's servers"
    answers = [json.loads(frame)["error"]["data"] for frame in channel.for_client()]
    assert [(data["workspace"], data["host_path"]) for data in answers] == [("/workspace", place.workspace)] * 2
    channel.refusals()
    passes = b'{"id":1,"method":"terminal/create"}\n{"id":2,"method":"_x/y"}\n'
    channel.agent_data(passes + b'{"id":3,"method":"fs/read_text_file"}\n' + b"x" * 1001 + b"\n")
    assert b"".join(channel.for_client()) == passes
    assert [said.reason for said in channel.refusals()] == ["denied_method", "over_limit"]
    channel.agent_data(b'{"id":0,"error":{"code":-32000,"message":"Authentication required"}}\n')
    (advised,) = channel.for_client()
    assert "ANTHROPIC_API_KEY" in json.loads(advised)["error"]["message"]


def test_the_channel_knows_the_second_name_of_a_workspace(place: Place) -> None:
    decided = plan(place)
    second = Mount(place.workspace, f"{place.base}/linked")
    container = dataclasses.replace(decided.sandbox.container, mounts=(*decided.sandbox.container.mounts, second))
    channel = channel_for(changed(decided, container=container))
    for number, cwd in enumerate(("/workspace/a", f"{second.target}/a", f"{place.base}/elsewhere")):
        frame = {"id": number, "method": "session/new", "params": {"cwd": cwd}}
        channel.client_data(json.dumps(frame).encode() + b"\n")
    assert [json.loads(frame)["id"] for frame in channel.for_agent()] == [0, 1]
    (answer,) = channel.for_client()
    assert json.loads(answer)["error"]["data"]["reason"] == "podbot_outside_mount"


def test_a_transcript(engine: FakeEngine, place: Place, wake: Wake, client: tuple[Pipe, Pipe]) -> None:
    engine.on("codex", echo)
    path = os.path.join(place.base, "t")
    os.write(client[0].write, b'{"method":"m","params":"my s3cretvalue"}\n')
    client[0].close(client[0].write)
    agent = ExecSpec(command=("codex",), env={"KEY": "s3cretvalue", "OPEN": "params"}, secrets=frozenset({"KEY"}))
    hosted(engine, place, wake, client, plan(place, mode="codex_app_server", command=agent), transcript=path)
    with open(path, encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    assert [(line["to"], line["text"]) for line in found] == [
        ("agent", '{"method":"m","params":"my [redacted]"}'),
        ("client", '{"method":"m","params":"my [redacted]"}'),
    ]
    assert read(client[1]) == b'{"method":"m","params":"my s3cretvalue"}\n'


def test_a_transcript_that_cannot_be_opened(
    engine: FakeEngine, place: Place, wake: Wake, client: tuple[Pipe, Pipe]
) -> None:
    with pytest.raises(PathError):
        hosted(engine, place, wake, client, plan(place), transcript=place.base)
    assert engine.calls == [], "before anything was made"


@pytest.mark.parametrize("code", [126, 127])
def test_an_agent_that_is_not_in_the_image(
    engine: FakeEngine, place: Place, wake: Wake, client: tuple[Pipe, Pipe], code: int
) -> None:
    engine.on("claude-agent-acp", ScriptedExec(stderr=b"OCI runtime: not found\n", code=code))
    assert hosted(engine, place, wake, client, plan(place)).status == ExecStatus(code)
    assert place.kinds()[-1] == "agent.missing"
    assert "claude-agent-acp could not be started" in place.events[-1].message
    assert read(client[1]) == b""


def test_a_signal_before_the_agent_ran(engine: FakeEngine, place: Place, wake: Wake, client: tuple[Pipe, Pipe]) -> None:
    wake.post(Signal(signal.SIGTERM))
    result = hosted(engine, place, wake, client, plan(place))
    assert result.status == ExecStatus(143, signal.SIGTERM)
    assert engine.by_name == {}


@pytest.mark.parametrize("code", [0, 3])
def test_the_client_disconnects_inside_a_frame(
    engine: FakeEngine, place: Place, wake: Wake, client: tuple[Pipe, Pipe], code: int
) -> None:
    def agent(io: ExecPeer) -> int:
        while io.read():
            pass
        return code

    engine.on("claude-agent-acp", agent)
    os.write(client[0].write, b'{"id":1,"method":"initial')
    client[0].close(client[0].write)
    if code:  # the agent's own failure is more informative
        assert hosted(engine, place, wake, client, plan(place)).status.code == code
    else:
        with pytest.raises(ClientBroken, match="unparseable"):
            hosted(engine, place, wake, client, plan(place))
    assert engine.by_name == {}


def test_the_sandbox_is_stopped_from_outside(
    engine: FakeEngine, place: Place, wake: Wake, client: tuple[Pipe, Pipe]
) -> None:
    def agent(io: ExecPeer) -> int:
        io.write(STDOUT, b'{"id":1,"result":2}\n{"id":')
        engine.die(SESSION)
        return 0

    engine.on("claude-agent-acp", agent)
    with pytest.raises(SandboxDied):
        hosted(engine, place, wake, client, plan(place))
    assert read(client[1]) == b'{"id":1,"result":2}\n', "half a frame is not for the client"
    assert engine.by_name == {}
