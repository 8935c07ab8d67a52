"""``podbot host`` from the command line down to an engine in memory."""

from __future__ import annotations

import json
import os
import pty
import re
from collections.abc import Iterator
from typing import Any

import pytest

from podbot.cli import fast, stdio_guard
from podbot.cli.commands import Command
from podbot.cli.entry import main
from podbot.cli.globals import Globals
from podbot.events import Event
from podbot.execution.hosted_end import HostedLimits
from podbot.session.directory import session_directory
from podbot.session.kept_reports import kept_reports
from podbot.testing import IMAGE, STDERR, STDOUT, ExecPeer, FakeEngine, ScriptedExec
from tests.session.plans import Place, in_state, made
from tests.streams.plumbing import Pipe, pipes
from tests.waiting import HANG

Capture = pytest.CaptureFixture[bytes]
INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"clientCapabilities":{"terminal":true}}}\n'
MASKED = INITIALIZE.replace(b'"terminal":true', b"")
SAID_BACK = MASKED.replace(b"initialize", b"session/update")
# However slowly an agent ends after its client, no helper process takes it over.
WAITING = HostedLimits(rest=HANG, status=HANG)


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before, Globals.current = Globals.current, Globals()
    yield
    Globals.current = before


@pytest.fixture
def client(capfdbinary: Capture) -> Iterator[Pipe]:
    """The other end of podbot's stdin."""
    with pipes(1) as (pipe,):
        before = os.dup(0)
        os.dup2(pipe.read, 0)
        yield pipe
        os.dup2(before, 0)
        os.close(before)


def agent(io: ExecPeer) -> int:
    io.write(STDOUT, b"hello there\n" + io.read_all().replace(b"initialize", b"session/update"))
    io.write(STDOUT, b'{"id":9,"method":"terminal/create","params":{"command":"oops"}}\n')
    io.write(STDERR, b"warning\n")
    return 7


def arguments(place: Place, *more: str) -> list[str]:
    return ["host", "--image", IMAGE, "--workspace", place.workspace, *more]


def waiting(command: Command, g: Globals, values: dict[str, Any]) -> int:
    """Carry out a command line of ``podbot host`` with other time limits."""
    return command.carry_out(g, {**values, "limits": WAITING})


def test_what_the_agent_left_is_kept_for_podbot_report(
    engine: FakeEngine, place: Place, client: Pipe, capfdbinary: Capture
) -> None:
    def plants(_: ExecPeer) -> int:
        with open(os.path.join(place.workspace, ".envrc"), "w", encoding="utf-8"):
            return 0

    for number in range(2):
        engine.on("claude-agent-acp", plants)
        assert main(arguments(place, "--name", f"shop-{number}"), carry_out=waiting) == 0
        os.unlink(os.path.join(place.workspace, ".envrc"))
    said = capfdbinary.readouterr().err.decode()
    assert said.count(".envrc") == 2
    assert said.count("podbot: a hosted session has left a report: `podbot report`") == 1
    assert main(["report"]) == 0
    shown = capfdbinary.readouterr().out.decode().splitlines()
    assert [line for line in shown if line.startswith("shop")] == ["shop-1, just now:", "shop-0, just now:"]
    assert sum(".envrc" in line for line in shown) == 2


def test_what_it_takes_over_is_kept_before_its_own_session(
    engine: FakeEngine, place: Place, client: Pipe, capfdbinary: Capture
) -> None:
    """An editor may kill podbot while its agent runs: what an earlier session left is on the disk by then."""
    made(engine, "old")
    with session_directory(place.directory("old"), engine.endpoint) as directory:
        in_state(directory, "stopped")
        directory.leave([Event("warning", "guard.finding", ".envrc: new", {"session": "old", "danger": 1})])
    seen: list[list[str]] = []

    def looks(_: ExecPeer) -> int:
        seen.append([report.session for report in kept_reports(place.environ)])
        return 0

    engine.on("claude-agent-acp", looks)
    assert main(arguments(place, "--name", "shop"), carry_out=waiting) == 0
    assert seen == [["old"]]
    said = capfdbinary.readouterr().err.decode()
    assert "podbot: a hosted session has left a report: `podbot report`" in said.splitlines()


@pytest.mark.parametrize("fast_path", [True, False])
def test_a_session(engine: FakeEngine, place: Place, client: Pipe, capfdbinary: Capture, fast_path: bool) -> None:
    argv = arguments(place)
    assert fast.parse(argv) is not None
    engine.on("claude-agent-acp", agent)
    os.write(client.write, INITIALIZE)
    client.close(client.write)
    assert main(argv, carry_out=waiting, fast_path=fast_path) == 7
    out, err = capfdbinary.readouterr()
    assert out == SAID_BACK
    lines = err.decode().splitlines()
    assert (
        "podbot: refused terminal/create (id 9) from the agent, 64 bytes: the capability policy denies this method"
        in (lines)
    )
    assert {"agent: hello there", "agent: warning"} <= set(lines)
    assert b"oops" not in err
    (mount,) = [call for call in engine.calls if call[0] == "create"]
    assert mount


def test_the_workspace_is_mounted_at_the_hosts_path(
    engine: FakeEngine, place: Place, client: Pipe, capfdbinary: Capture
) -> None:
    assert main(arguments(place, "--dry-run", "--json")) == 0
    plan = json.loads(capfdbinary.readouterr().out)
    assert {(m["source"], m["target"]) for m in plan["container"]["mounts"]} >= {(place.workspace, place.workspace)}
    assert (plan["mode"], plan["delegation"], plan["frame_limit"]) == ("acp", "none", 64 << 20)
    assert (plan["extra_methods"], plan["mcp_servers"]) == ([], "strip")
    assert plan["agent"]["tty"] is False
    assert plan["agent"]["workdir"] == place.workspace
    assert engine.calls == []
    assert main([*arguments(place), "--agent", "codex", "--agent-mode", "codex_app_server", "--dry-run"]) == 0
    assert b"app-server" in capfdbinary.readouterr().out


def test_stderr_contains_only_messages_as_json(
    engine: FakeEngine, place: Place, client: Pipe, capfdbinary: Capture
) -> None:
    engine.on("claude-agent-acp", agent)
    client.close(client.write)
    argv = arguments(place, "--log-format", "json", "--acp-delegation", "fs")
    assert main(argv, carry_out=waiting) == 7
    lines = [json.loads(line) for line in capfdbinary.readouterr().err.splitlines()]
    found = {line["kind"]: line for line in lines}
    assert found["agent.noise"]["message"] == "hello there"
    assert found["agent.stderr"]["message"] == "warning"
    assert found["host.refused"]["method"] == "terminal/create"
    assert found["host.refused"]["id"] == "9"
    assert found["host.delegation"]["level"] == "notice"
    assert {"plan.note", "container.create", "agent.start"} <= set(found)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--agent-mode", "podbot"), "this mode is interactive"),
        (("--agent", "gemini", "--agent-mode", "codex_app_server"), "has only: podbot, acp"),
        (("--acp-delegation", "some"), "is not one of none, fs, terminal, all"),
        (("--frame-limit", "1k"), "out of range"),
        (("--transcript", "/"), "cannot write the transcript /"),
        (("--image", "localhost/none:1"), "not on this engine"),
    ],
)
def test_a_start_that_fails(  # noqa: PLR0917 - two of them are the parameters
    engine: FakeEngine, place: Place, client: Pipe, capfdbinary: Capture, more: tuple[str, ...], words: str
) -> None:
    assert main(arguments(place, *more)) in (1, 2)
    out, err = capfdbinary.readouterr()
    assert out == b""
    notes = "mounting|creating|git has no|no login|no /dev/fuse"
    (line,) = [line for line in err.decode().splitlines() if not re.search(notes, line)]
    assert line.startswith("podbot: ")
    assert words in line


@pytest.mark.parametrize("which", [0, 1])
def test_on_a_terminal_the_error_explains_host(
    engine: FakeEngine, place: Place, client: Pipe, capfdbinary: Capture, which: int
) -> None:
    ours, theirs = pty.openpty()
    before = os.dup(which)
    os.dup2(theirs, which)
    try:
        assert main(arguments(place)) == 2
    finally:
        os.dup2(before, which)
        for fd in (ours, theirs, before):
            os.close(fd)
    out, err = capfdbinary.readouterr()
    assert out == b""
    assert b"talks a protocol with the program that starts it" in err
    assert b"use `podbot run`" in err
    assert engine.calls == []


def test_a_client_that_disconnects_from_an_agent_that_does_not_exit(
    engine: FakeEngine, place: Place, client: Pipe, capfdbinary: Capture
) -> None:
    def stubborn(io: ExecPeer) -> int:
        io.read_all()
        io.ended.wait(HANG)
        return 0

    engine.on("claude-agent-acp", stubborn)
    os.write(client.write, b'{"half')
    client.close(client.write)
    assert main(arguments(place)) == 1
    out, err = capfdbinary.readouterr()
    assert out == b""
    assert b"podbot: refused a frame from the client, 6 bytes" in err
    assert b"the client's last frame was" in err
    assert engine.by_name  # a helper process has it: here one that does not find the engine
    for session in engine.sessions.values():
        session.end(0)


def test_a_stderr_that_nobody_reads_holds_nothing_up(
    engine: FakeEngine, place: Place, client: Pipe, capfdbinary: Capture
) -> None:
    def noisy(io: ExecPeer) -> int:
        for number in range(1200):
            io.write(STDOUT, b'{"id":%d,"method":"fs/write_text_file"}\n' % number)
            io.read(64 << 10)
        io.write(STDOUT, b'{"id":"last","result":1}\n')
        return 0

    engine.on("claude-agent-acp", noisy)
    with pipes(1) as (unread,):
        before = os.dup(2)
        os.dup2(unread.write, 2)
        try:
            assert main(arguments(place, "--log-format", "json")) == 0
        finally:
            os.dup2(before, 2)
            os.close(before)
    assert capfdbinary.readouterr().out == b'{"id":"last","result":1}\n'


def test_an_engine_that_has_stopped(engine: FakeEngine, place: Place, client: Pipe, capfdbinary: Capture) -> None:
    def vanishing(io: ExecPeer) -> int:
        io.write(STDOUT, b'{"id":1,"result":2}\n{"id"')
        engine.vanish()
        return 0

    engine.on("claude-agent-acp", vanishing)
    assert main(arguments(place)) == 1
    out, err = capfdbinary.readouterr()
    assert out == b'{"id":1,"result":2}\n'
    assert err.decode().splitlines()[-1].startswith("podbot: the engine at unix:///fake/engine.sock went away")


# --- both lanes read the same command lines the same way ----------------------------------------------


@pytest.mark.parametrize(
    "argv",
    [
        ["host"],
        ["-v", "--image", "i", "host", "-w", ".", "--agent", "codex", "--agent-mode", "acp"],
        ["host", "--name", "n", "--acp-delegation", "all", "--frame-limit", "1m", "--transcript", "t", "-vv"],
        ["host", "--ask", "-w", ".", "--agent", "codex"],
        ["host", "--agent", "custom", "--", "cmd", "--help"],
        ["host", "--"],
        ["host", "--agent=codex", "-w.", "--", "--", "x"],
        ["host", "--keep", "--depth", "3", "--submodules", "--follow-links", "--no-guard", "--repo", "o/r"],
    ],
)
def test_both_lanes_agree(argv: list[str]) -> None:
    seen: list[tuple[Command, Globals, dict[str, Any]]] = []

    def record(command: Command, g: Globals, values: dict[str, Any]) -> int:
        seen.append((command, g, values))
        return 0

    assert stdio_guard.is_hosting(argv)
    quick = fast.parse(argv, record)
    assert quick is not None
    quick()
    assert main(argv, carry_out=record, fast_path=False) == 0
    assert seen[0] == seen[1]


@pytest.mark.parametrize(
    "more", [["--depth", "x"], ["--help"], ["--keep=1"], ["--agentcodex"], ["--name"], ["--name", "--", "x"]]
)
def test_the_rest_is_left_to_typer(more: list[str]) -> None:
    assert fast.parse(["host", *more]) is None


def test_a_scripted_agent_without_output(engine: FakeEngine, place: Place, client: Pipe, capfdbinary: Capture) -> None:
    engine.on("claude-agent-acp", ScriptedExec(code=3))
    assert main(arguments(place)) == 3
    assert capfdbinary.readouterr().out == b""
