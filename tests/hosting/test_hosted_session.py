"""``podbot.host``: a session in a thread, for a program that is the client."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import queue
import signal
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

import podbot
from podbot.errors import ImageNotFound, MissingRequired
from podbot.exec_spec import ExecSpec
from podbot.execution.hosted_end import HOSTED_LIMITS, HostedLimits
from podbot.hosting.host import channel_for, run_hosted
from podbot.hosting.hosted_session import HostedSession
from podbot.launch.resources.guard import GuardPlan
from podbot.session.guarding import Scanner
from podbot.streams.wake import Message, Wake
from podbot.testing import IMAGE, STDOUT, ExecPeer, FakeEngine, ScriptedExec
from tests.driver import FakeDriver
from tests.session.plans import Place
from tests.streams.plumbing import nothing_left_open
from tests.waiting import HANG, wait_until

HELLO = b'{"method":"hello"}\n'
NEVER = HostedLimits(term=HANG, kill=HANG, status=HANG, grace=HANG, look=HANG, delivery=HANG)
REQUEST = podbot.LaunchRequest(name="mine", trusted_workspace=True)


@pytest.fixture
def engine(driver: FakeDriver) -> FakeEngine:
    """The one that podbot finds."""
    return driver.engine


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    ours.settimeout(HANG)
    with ours, theirs:
        yield ours, theirs


def config(place: Place, **overrides: object) -> podbot.AppConfig:
    values = {
        "image": IMAGE,
        "workspace.source": "host_mount",
        "workspace.host_path": place.workspace,
        "agent.kind": "custom",
        "agent.command": "my-agent",
        "agent.mode": "codex_app_server",
        **{name.replace("__", "."): value for name, value in overrides.items()},
    }
    return podbot.load_config(podbot.LoadOptions(overrides=values, environ={"HOME": place.base}))


def start(place: Place, theirs: socket.socket, **overrides: object) -> podbot.HostedSession:
    environ = {"HOME": place.base, "PATH": os.environ["PATH"], **place.environ}
    return podbot.host(
        config(place, **overrides), REQUEST, stdin=theirs, stdout=theirs, environ=environ, emit=place.events.append
    )


def session_with(
    engine: FakeEngine,
    place: Place,
    theirs: socket.socket,
    limits: HostedLimits,
    began: Callable[[Wake], object] = lambda _wake: None,
) -> HostedSession:
    """As :func:`start`, with other time limits; ``began`` is called with its wake."""
    command = ExecSpec(("my-agent",), workdir="/workspace")
    guard, scanner = GuardPlan(place.workspace), Scanner(first=HANG, second=HANG, patience=HANG)
    plan = place.plan(
        session="mine", subcommand="host", kind="custom", mode="codex_app_server", command=command, guard=guard
    )
    channel = channel_for(plan)

    def work(io: podbot.ExecIO, wake: Wake) -> podbot.HostResult:
        began(wake)
        return run_hosted(engine, plan, io, wake, place.events.append, channel=channel, limits=limits, scanner=scanner)

    return HostedSession(work, channel, stdin=theirs, stdout=theirs, stderr=None)


def settled(session: podbot.HostedSession) -> None:
    wait_until(lambda: session.done)


def echo(io: ExecPeer) -> int:
    while data := io.read():
        io.write(STDOUT, data)
    return 5


def test_a_conversation(
    engine: FakeEngine,
    place: Place,
    sockets: tuple[socket.socket, socket.socket],
    capfd: pytest.CaptureFixture[str],
) -> None:
    ours, theirs = sockets
    engine.on("my-agent", echo)
    with session_with(engine, place, theirs, NEVER) as session:
        theirs.close()
        ours.sendall(HELLO)
        assert ours.recv(100) == HELLO
        passed = podbot.Counts(1, len(HELLO), 1, len(HELLO))
        assert session.statistics == passed
        before = session.done
        with pytest.raises(TimeoutError):
            session.wait(0.01)
        ours.shutdown(socket.SHUT_WR)
        result = session.wait(HANG)
        assert (before, session.done) == (False, True)
    assert result.guard is not None
    expected = podbot.HostResult("mine", podbot.ExecStatus(5), kept=False, statistics=passed)
    assert dataclasses.replace(result, guard=None) == expected
    assert session.wait() is result
    assert ours.recv(100) == b"", "podbot's own duplicates are closed"
    assert engine.by_name == {}
    assert tuple(capfd.readouterr()) == ("", "")
    assert "podbot-host" not in [thread.name for thread in threading.enumerate()]


def test_the_callers_descriptors_stay_open(
    engine: FakeEngine, place: Place, sockets: tuple[socket.socket, socket.socket]
) -> None:
    ours, theirs = sockets
    engine.on("my-agent", ScriptedExec(stdout=HELLO))
    with start(place, theirs) as session:
        session.wait(HANG)
    theirs.sendall(b"still mine")
    assert ours.recv(len(HELLO)) == HELLO
    assert ours.recv(100) == b"still mine"


def test_descriptors_by_number_and_stderr(engine: FakeEngine, place: Place) -> None:
    engine.on("my-agent", ScriptedExec(stdout=HELLO, stderr=b"err"))
    ends = [os.pipe() for _ in range(3)]
    environ = {"HOME": place.base, "PATH": os.environ["PATH"], **place.environ}
    session = podbot.host(
        config(place), REQUEST, stdin=ends[0][0], stdout=ends[1][1], stderr=ends[2][1], environ=environ
    )
    assert session.wait(HANG).status.code == 0
    assert (os.read(ends[1][0], 100), os.read(ends[2][0], 100)) == (HELLO, b"err")
    for pair in ends:
        for fd in pair:
            os.close(fd)


def test_cancelled_from_another_thread(
    engine: FakeEngine, place: Place, sockets: tuple[socket.socket, socket.socket]
) -> None:
    def stubborn(io: ExecPeer) -> int:
        io.read_all()
        io.ended.wait(HANG)
        return 0

    engine.on("my-agent", stubborn)
    session = session_with(engine, place, sockets[1], dataclasses.replace(NEVER, grace=0))
    wait_until(lambda: engine.sessions)
    thread = threading.Thread(target=session.cancel)
    thread.start()
    result = session.wait(HANG)
    thread.join()
    assert result.status == podbot.ExecStatus(143, 15)
    session.cancel()
    assert engine.by_name == {}


def test_cancelled_by_a_signal_handler_in_the_middle_of_cancelling(
    engine: FakeEngine, place: Place, sockets: tuple[socket.socket, socket.socket]
) -> None:
    engine.on("my-agent", echo)
    given: queue.SimpleQueue[Wake] = queue.SimpleQueue()
    session = session_with(engine, place, sockets[1], HOSTED_LIMITS, given.put)
    wake = given.get(timeout=HANG)
    posted = wake.post

    def post(message: Message) -> None:
        wake.post = posted  # type: ignore[method-assign]
        signal.raise_signal(signal.SIGUSR1)
        posted(message)

    wake.post = post  # type: ignore[method-assign]
    before = signal.signal(signal.SIGUSR1, lambda *_: session.cancel())
    try:
        session.cancel()
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert session.wait(HANG).status.signal == 15


def test_cancelled_before_it_began(
    engine: FakeEngine, place: Place, sockets: tuple[socket.socket, socket.socket]
) -> None:
    engine.on("my-agent", echo)
    with start(place, sockets[1]) as session:
        session.cancel()
        assert session.wait(HANG).status.signal == 15
    assert engine.by_name == {}


def test_leaving_the_block_ends_the_session(
    engine: FakeEngine, place: Place, sockets: tuple[socket.socket, socket.socket]
) -> None:
    engine.on("my-agent", echo)
    with pytest.raises(KeyError, match="mine"), start(place, sockets[1]) as session:
        raise KeyError("mine")
    assert session.done
    assert engine.by_name == {}


def test_errors_are_wait_s(engine: FakeEngine, place: Place, sockets: tuple[socket.socket, socket.socket]) -> None:
    session = start(place, sockets[1], image="localhost/none:1")
    for _ in range(2):
        with pytest.raises(ImageNotFound):
            session.wait(HANG)
    with session:
        pass
    with pytest.raises(ImageNotFound), start(place, sockets[1], image="localhost/none:1") as untold:
        settled(untold)  # no thread waits: leaving the block raises it
    with contextlib.suppress(ImageNotFound), start(place, sockets[1], image="localhost/none:1") as session:
        session.wait(HANG)
    with pytest.raises(ZeroDivisionError), start(place, sockets[1], image="localhost/none:1"):
        raise ZeroDivisionError


def test_wait_raises_the_error_of_emit(
    engine: FakeEngine, place: Place, sockets: tuple[socket.socket, socket.socket]
) -> None:
    class Full(Exception):
        pass

    def emit(event: podbot.Event) -> None:
        if event.kind == "agent.start":
            raise Full

    environ = {"HOME": place.base, "PATH": os.environ["PATH"], **place.environ}
    session = podbot.host(config(place), REQUEST, stdin=sockets[1], stdout=sockets[1], environ=environ, emit=emit)
    with pytest.raises(Full):
        session.wait(HANG)
    assert engine.by_name == {}


def test_an_invalid_configuration_is_reported_at_once(engine: FakeEngine, place: Place) -> None:
    with pytest.raises(MissingRequired):
        podbot.host(config(place, image=None), REQUEST, stdin=0, stdout=1, environ=place.environ)
    assert engine.calls == []


def test_a_descriptor_that_is_closed(engine: FakeEngine, place: Place) -> None:
    environ = {"HOME": place.base, **place.environ}
    with nothing_left_open(), pytest.raises(OSError, match="Bad file descriptor"):
        podbot.host(config(place), REQUEST, stdin=0, stdout=99999, environ=environ)


def test_nothing_is_left_open(engine: FakeEngine, place: Place, sockets: tuple[socket.socket, socket.socket]) -> None:
    engine.on("my-agent", ScriptedExec(stdout=HELLO))
    start(place, sockets[1]).wait(HANG)
    with nothing_left_open():
        for _ in range(3):
            start(place, sockets[1]).wait(HANG)
