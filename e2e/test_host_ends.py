"""``podbot host`` on the real engine: starts that fail, unplanned ends, peers that do not read."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import pexpect
import pytest
from acp.transports import spawn_stdio_transport

from e2e.harness import PODBOT, TAG, World, running, wait_for
from e2e.host.frames import line, request
from e2e.host.pipe import AGENT, Pipe, config_file, pipe
from e2e.patience import bound

STAY = ("stay", f"46077.{TAG}")  # the agent's child sleeps so long

# --- ends -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [0, 7])
def test_an_agent_exits_at_once_while_our_stdin_is_open(world: World, status: int) -> None:
    with pipe(world, "leave", str(status), "there is no key\n") as host:
        assert host.end(30) == status
        assert host.out == b""
        assert host.said("there is no key")


def test_an_agent_that_never_exits_does_not_delay_the_client(world: World) -> None:
    """10.16: podbot exits within a second of the end of its input, and its pipes are closed. The rest follows
    afterwards: the agent ends 10 s later, then its container and its directory are removed. Killing podbot's
    group does not prevent this.
    """
    with pipe(world, *STAY) as host:
        host.wait(lambda frame: frame.get("params") == "up")
        began = time.monotonic()
        assert host.finish() == 0  # also waits for the end of stdout and stderr
        report("podbot's exit after the end of its input", began, most=3)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(host.child.pid, signal.SIGKILL)
        wait_for(lambda: running(f"sleep {STAY[1]}"), what="the agent to run")
        wait_for(lambda: os.path.exists(os.path.join(host.workspace, "left")), what="the agent to be signalled")
        wait_for(lambda: not left(world, host), what="the helper process to end the session", seconds=40)
        report("the sandbox's end after the end of podbot's input", began, most=40)
        assert time.monotonic() - began > 10  # the agent had its grace
        assert not running(f"sleep {STAY[1]}")


def test_the_name_is_free_at_once_for_a_new_session(own_world: World) -> None:
    """10.16: a restart under the same name, while the helper process still waits for the agent, and after a KILL."""
    with pipe(own_world, *STAY) as first:
        first.wait(lambda frame: frame.get("params") == "up")
        assert first.finish() == 0
        assert left(own_world, first)
        began = time.monotonic()
        with pipe(own_world, "puppet", name=first.name) as second:
            second.ask("session/list")
            report("an answer under the same name", began, most=20)
            assert second.said("waiting for the previous session")
            os.killpg(second.child.pid, signal.SIGKILL)  # as Zed does
            second.end()
            with pipe(own_world, "puppet", name=first.name) as third:
                third.ask("session/list")
                assert third.finish() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_closes_the_agents_input(world: World, number: signal.Signals) -> None:
    with pipe(world, "puppet") as host:
        host.ask("session/list")
        began = time.monotonic()
        host.child.send_signal(number)
        code = host.end(30)
        report(f"podbot's exit after {number.name}", began, most=3)
        assert code == 128 + number
        wait_for(lambda: os.path.exists(os.path.join(host.workspace, "left")), what="its end")  # not by the signal
        host.frames()


def test_a_second_signal_shortens_the_grace(world: World) -> None:
    with pipe(world, *STAY) as host:
        host.wait(lambda frame: frame.get("params") == "up")
        began = time.monotonic()
        for _ in range(2):
            host.child.send_signal(signal.SIGTERM)
            time.sleep(0.1)
        assert host.end(30) == 143
        wait_for(lambda: not left(world, host), what="the agent to be ended without grace", seconds=9)
        assert time.monotonic() - began < bound(9)
        assert not running(f"sleep {STAY[1]}")


def test_the_close_sequence_of_the_python_sdk_needs_no_signal(world: World) -> None:
    """10.16: the SDK closes stdin, sends TERM after 2 s and KILL after 4 s; the agent would continue for ever."""

    async def closed(name: str, words: list[str]) -> int | None:
        command = [*PODBOT[1:], *words]
        async with spawn_stdio_transport(PODBOT[0], *command, env=world.env, cwd=world.root) as (reader, _, process):
            assert json.loads(await reader.readline())["params"] == "up"
        assert await reader.read() == b""  # no process holds podbot's end of it
        return process.returncode

    name = f"e2e-sdk-{os.getpid()}"
    with config_file(world) as config:
        words = ["--config", config, "host", "--workspace", world.workspace(), "--agent", "custom", "--agent-mode"]
        words += ["acp", "--name", name, "--", "python3", AGENT, *STAY]
        assert asyncio.run(closed(name, words)) == 0  # 143 after TERM
    wait_for(lambda: not world.container(name), what="the sandbox to be gone", seconds=40)


def test_the_next_command_removes_what_a_killed_podbot_left(own_world: World) -> None:
    """10.16: any command that reaches the engine, if the process that waits for podbot's end was killed, too."""
    with pipe(own_world, *STAY) as host:
        host.wait(lambda frame: frame.get("params") == "up")
        for watcher in own_world.watchers(host.name):
            os.kill(watcher, signal.SIGKILL)
        host.child.kill()
        host.end()
        host.frames()
        assert left(own_world, host)
        listed = own_world.podbot("ps", "-a", check=True)
        assert host.name not in listed.stdout
        assert f"removed the sandbox {host.name}" in listed.stderr
        assert not left(own_world, host)
        assert not running(f"sleep {STAY[1]}")


def test_restarts_after_a_kill_while_other_commands_clean_up(own_world: World) -> None:
    """10.16: the restart under the same name waits for any command that is removing what was left."""
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            own_world.podbot("ps", "-a")

    others = [threading.Thread(target=look) for _ in range(3)]
    for other in others:
        other.start()
    try:
        with pipe(own_world, "puppet") as host:
            host.ask("session/list")
            host.child.kill()
            host.end()
            for _ in range(12):
                with pipe(own_world, "puppet", name=host.name) as again:
                    again.ask("session/list")
                    again.child.kill()
                    again.end()
    finally:
        over.set()
        for other in others:
            other.join()
    own_world.podbot("ps", check=True)
    assert not left(own_world, host)


def report(what: str, began: float, *, most: float) -> None:
    """Print the figure for the log. The assertion is generous, because other load is on the machine."""
    took = time.monotonic() - began
    sys.stderr.write(f"{what}: {took:.2f} s\n")
    assert took < bound(most), what


# --- backpressure -----------------------------------------------------------------------------------


def test_a_client_that_does_not_read_costs_no_memory_and_loses_nothing(world: World) -> None:
    with pipe(world, "flood", "192", reading=False) as host:
        time.sleep(4)
        stalled = host.peak.kib
        host.read()
        last = host.wait(lambda frame: "digest" in frame.get("params", ()), seconds=120)
        assert host.finish() == 0
        end = host.out.rfind(b"\n", 0, -1) + 1
        assert end == 192 << 20
        assert hashlib.sha256(bytes(host.out[:end])).hexdigest() == last["params"]["digest"]
        assert stalled < 64 << 10
        assert host.peak.kib < 64 << 10


def test_an_agent_that_has_exited_ends_the_session_although_the_client_reads_nothing(world: World) -> None:
    frame = {"jsonrpc": "2.0", "method": "session/update", "params": {"text": "x" * 1000}}
    last = line(frame) * 1700  # more than podbot and its pipes hold
    with pipe(world, "puppet", reading=False) as host:
        host.make_leave(5, last)
        assert host.child.wait(60) == 5
        assert host.said("did not read the agent's last", "lost")


def test_an_agent_that_does_not_read_stops_the_client(world: World) -> None:
    frame = line(request("session/prompt", 1, text="x" * 4000))
    block = frame * 256
    with pipe(world, "sleep", "3") as host:
        host.wait(lambda frame: frame.get("params") == "up")
        began = time.monotonic()
        blocks = (64 << 20) // len(block)
        for _ in range(blocks):
            host.write(block)
        assert time.monotonic() - began > 2  # it had to wait for the agent
        assert host.peak.kib < 64 << 10
        assert host.finish() == 0
        slept = host.wait(lambda frame: "digest" in frame.get("params", ()))["params"]
        assert slept["size"] == blocks * len(block)
        digest = hashlib.sha256()
        for _ in range(blocks):
            digest.update(block)
        assert slept["digest"] == digest.hexdigest()


# --- clients that leave -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b'{"jsonrpc":"2.0","id":1,"method":"initial', b"\0" * 70_000]
)
def test_a_client_that_sends_garbage_and_disconnects(world: World, words: bytes) -> None:
    with pipe(world, "puppet") as host:
        # podbot exits 0.6 s after its client, and on a busy machine the agent takes longer to start.
        wait_for(lambda: os.path.exists(os.path.join(host.workspace, "seen")), what="the agent")
        host.write(words)
        assert host.finish() == 1
        # Whoever sent half a request may still wait for its answer.
        assert [frame["error"]["data"]["rule"] for frame in host.frames()] == ["unparseable"] * (b'"id":1' in words)
        assert host.seen() == []
        assert host.said("the client's last frame was"), host.log
        assert host.said("unparseable") or host.said("not valid JSON") or host.said("not JSON"), host.log


def test_a_client_that_disconnects_while_the_agent_writes(world: World) -> None:
    with pipe(world, "stream", reading=False) as host:
        host.wait_for_words(b"starting custom")
        host.child.stdout.read(5000)  # type: ignore[union-attr]
        host.child.stdout.close()  # type: ignore[union-attr]
        began = time.monotonic()
        assert host.end(40) == 1
        assert time.monotonic() - began < bound(15)
        assert host.said("stdout")


# --- the sandbox and the engine go away -------------------------------------------------------------


def test_a_sandbox_that_is_stopped_from_outside_during_a_stream(world: World) -> None:
    with pipe(world, "stream") as host:
        host.wait(lambda frame: frame["params"]["number"] == 5)
        world.podman("kill", host.name)
        assert host.end(40) == 1
        host.frames()  # complete frames
        assert len(host.said(host.name, "ended while its command was running")) == 1
        assert "Traceback" not in host.err.decode()


def test_a_stream_continues_when_the_engine_stops_and_its_session_is_removed(own_world: World) -> None:
    with pipe(own_world, "stream") as host:
        host.wait(lambda frame: frame["params"]["number"] == 5)
        for pid in own_world.service_pids():
            os.kill(pid, signal.SIGKILL)
        last = host.frames()[-1]["params"]["number"]
        host.wait(lambda frame: frame["params"]["number"] == last + 20)  # the guest carries it
        assert host.finish() == 0
        assert host.log == [line for line in host.log if line.startswith("podbot: ")]
    own_world.cleaned()


# --- it does not start ------------------------------------------------------------------------------


def fails(world: World, *words: str, code: int, says: tuple[str, ...]) -> None:
    """Nothing on stdout, and exactly one message on stderr with the problem and the remedy."""
    done = world.podbot("--log-format", "json", *words, timeout=60)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr
    log = [json.loads(line) for line in done.stderr.splitlines()]
    complaints = [entry for entry in log if entry["level"] == "error" or entry["kind"] == "agent.missing"]
    assert len(complaints) == 1, log
    text = complaints[0]["message"] + complaints[0].get("remedy", "")
    assert all(word in text for word in says), text


def test_start_up_failures_leave_stdout_empty(world: World) -> None:
    workspace = world.workspace()
    here = ["host", "--workspace", workspace, "--agent"]
    fails(world, *here, "claude", "--agent-mode", "codex_app_server", code=2, says=("agent.mode", "codex"))
    fails(world, *here, "claude", "--agent-mode", "podbot", code=2, says=("agent.mode", "or use run"))
    fails(world, *here, "claude", "--agent-mode", "lsp", code=2, says=("lsp",))
    fails(world, *here, "cluade", "--agent-mode", "acp", code=2, says=("cluade", "claude"))
    fails(world, *here, "custom", "--agent-mode", "acp", code=2, says=("agent.command",))
    fails(world, *here, "custom", "--agent-mode", "acp", "--acp-delegation", "disk", "--", "x", code=2, says=("disk",))
    fails(
        world, "host", "--workspace", "/no/such", "--agent", "claude", "--agent-mode", "acp", code=2, says=("/no/such",)
    )
    there = ["--image", "localhost/no-such:1", *here, "claude", "--agent-mode", "acp"]
    fails(world, *there, code=1, says=("localhost/no-such:1", "podbot setup"))
    fails(world, *here, "custom", "--agent-mode", "acp", "--", "no-such-agent", code=127, says=("no-such-agent",))


def test_an_engine_that_does_not_exist(world: World) -> None:
    socket_path = os.path.join(world.root, "none.sock")
    words = ("--engine-socket", f"unix://{socket_path}", "host", "--workspace", world.workspace(), "--agent", "claude")
    fails(world, *words, "--agent-mode", "acp", code=1, says=(socket_path,))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(socket_path)  # and nothing listens
        fails(world, *words, "--agent-mode", "acp", code=1, says=(socket_path,))


def test_an_agent_that_is_not_in_the_image(world: World) -> None:
    image = f"localhost/e2e-host-{os.getpid()}"
    made = world.podman("create", "--name", f"e2e-host-{os.getpid()}", world.image)
    assert made.returncode == 0, made.stderr
    try:
        change = ["--change", "LABEL io.podbot.agents=claude=1"]
        assert world.podman("commit", "-q", *change, made.stdout.strip(), image).returncode == 0
        words = ["--image", image, "host", "--workspace", world.workspace(), "--agent", "gemini", "--agent-mode", "acp"]
        fails(world, *words, code=1, says=(image, "without gemini", "podbot setup gemini"))
    finally:
        world.podman("rm", made.stdout.strip())
        world.podman("rmi", image)


def test_on_a_terminal_the_error_explains_host(world: World) -> None:
    words = ["host", "--workspace", world.workspace(), "--agent", "claude", "--agent-mode", "acp"]
    child = pexpect.spawn(PODBOT[0], [*PODBOT[1:], *words], env=world.env, cwd=world.root, timeout=20, encoding="utf-8")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 2
    assert "podbot run" in child.before
    assert "editor" in child.before


def test_a_closed_stdout(world: World) -> None:
    words = ["host", "--workspace", world.workspace(), "--agent", "claude", "--agent-mode", "acp"]
    command = f"exec {' '.join([*PODBOT, *words])} >&-"
    done = subprocess.run(
        ["sh", "-c", command], env=world.env, cwd=world.root, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    assert done.returncode != 0
    assert b"stdout" in done.stderr
    assert b"Traceback" not in done.stderr


def left(world: World, host: Pipe) -> bool:
    """Whether a session still exists."""
    return bool(world.container(host.name)) or host.name in world.sessions()


def test_nothing_is_left_of_a_session(world: World) -> None:
    with pipe(world, "puppet") as host:
        host.ask("session/list")
        assert left(world, host)
        assert host.finish() == 0
        wait_for(lambda: not left(world, host), what="the session to be gone", seconds=10)
