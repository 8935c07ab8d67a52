"""``podbot.host``: a hosted agent for a Python program that is the client, on the real engine."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import socket
import threading
import time
from typing import Any

import pytest

import podbot
from e2e.harness import TAG, World, running, wait_for
from e2e.host.frames import line, offers, request
from e2e.host.pipe import AGENT, INSIDE
from e2e.patience import bound
from podbot.errors import SandboxDied

EXAMPLE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "docs", "examples", "host_async.py")


def config(world: World, workspace: str, *words: str) -> podbot.AppConfig:
    """A session of the scripted agent in a workspace."""
    overrides: dict[str, Any] = {
        "agent.kind": "custom",
        "agent.command": "python3",
        "agent.args": [AGENT, *words],
        "workspace.source": "host_mount",
        "workspace.host_path": workspace,
        "workspace.allowed_roots": [workspace, INSIDE],
        "sandbox.extra_mounts": [f"{INSIDE}:/e2e/host:ro"],
    }
    return podbot.load_config(podbot.LoadOptions(environ=world.env, overrides=overrides))


HOST = podbot.LaunchRequest(trusted_workspace=True)


def test_one_socket_is_both_streams(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    workspace, events = world.workspace(), list[podbot.Event]()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        session = podbot.host(
            config(world, workspace, "puppet"), HOST, stdin=theirs, stdout=theirs, environ=world.env, emit=events.append
        )
        theirs.close()
        with ours.makefile("rb") as answers:
            ours.sendall(line(request("initialize", 1, clientCapabilities=offers())))
            assert json.loads(answers.readline())["id"] == 1
            ours.sendall(b"no frame\n" + line(request("session/new", 2, cwd=workspace)))
            assert json.loads(answers.readline())["result"] == {"method": "session/new"}
            assert not session.done
            with pytest.raises(TimeoutError):
                session.wait(0.01)
            ours.shutdown(socket.SHUT_WR)
            assert answers.read() == b""  # the end of the session is the end of the stream
        result = session.wait(30)
    assert (result.status.code, result.kept, session.done) == (0, False, True)
    counts = session.statistics
    assert (counts.frames_to_agent, counts.frames_to_client, counts.refused, counts.rewritten) == (2, 2, 1, 1)
    with open(os.path.join(workspace, "seen"), "rb") as file:
        assert len(file.read()) == counts.bytes_to_agent
    refused = [event for event in events if event.kind == "host.refused"]
    assert [(event.fields["direction"], event.fields["reason"]) for event in refused] == [("client", "unparseable")]
    assert capfd.readouterr() == ("", "")  # the library is silent


def test_cancel_from_another_thread(world: World) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        session = podbot.host(
            config(world, world.workspace(), "stay", f"46277.{TAG}"),
            HOST,
            stdin=theirs,
            stdout=theirs,
            environ=world.env,
        )
        with ours.makefile("rb") as answers:
            assert json.loads(answers.readline())["params"] == "up"
        began = time.monotonic()
        for delay in (0.1, 0.6, 1.1):  # it gets the end of stdin, TERM and KILL: it ignores the first two
            threading.Timer(delay, session.cancel).start()
        result = session.wait(30)
        assert time.monotonic() - began < bound(9)
        assert result.status.code == 143
        assert not running(f"sleep 46277.{TAG}")
        assert not world.container(result.session)
        session.cancel()  # after the end there is no more


def test_leaving_the_block_ends_the_session(world: World) -> None:
    ours, theirs = socket.socketpair()
    settings = config(world, world.workspace(), "puppet")
    with ours, theirs:
        with podbot.host(settings, HOST, stdin=theirs, stdout=theirs, environ=world.env) as session:
            wait_for(world.managed, what="the session")
        assert session.done
        assert session.wait().status.code == 143
    assert not world.managed()


def test_wait_raises_the_error_that_ended_the_session(world: World) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        settings = config(world, world.workspace(), "stream")
        session = podbot.host(settings, HOST, stdin=theirs, stdout=theirs, environ=world.env)
        theirs.close()
        ours.recv(100)
        (name,) = world.managed()
        world.podman("kill", name)
        while ours.recv(1 << 16):  # unread output is waited for
            pass
        with pytest.raises(SandboxDied, match=name):
            session.wait(30)


def test_the_asyncio_example(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("host_async", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    for key, value in world.env.items():
        monkeypatch.setenv(key, value)
    workspace = world.workspace()
    result = asyncio.run(example.converse(config(world, workspace, "puppet"), workspace))
    assert result.status.code == 0
    assert result.statistics.frames_to_agent == 2
