"""Signalling a group: from the host only if the process is certainly the container's, otherwise from inside."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from podbot.deadline import Sooner
from podbot.engine.port import Size
from podbot.engine.transport import SocketStream
from podbot.errors import EngineGone, EngineStorageFull, ExecFailed
from podbot.exec_spec import ExecSpec
from podbot.execution import group
from podbot.execution.group import is_gone
from podbot.testing import IMAGE, FakeEngine, ScriptedExec
from podbot.testing.engine_contract import a_spec
from tests.waiting import HANG

SLEEP = ExecSpec(command=("sleep", "1000"))
# A shell inside is waited for, however slow its thread is.
signal_group = partial(group.signal_group, seconds=HANG)


@contextlib.contextmanager
def started(engine: FakeEngine) -> Iterator[tuple[FakeEngine, str, str]]:
    """(engine, container, a started exec session)."""
    spec = a_spec(IMAGE)
    engine.start(engine.create(spec))
    exec_id = engine.exec_create(spec.name, SLEEP)
    stream = engine.exec_start(exec_id, tty=False, size=None)
    yield engine, spec.name, exec_id
    stream.close()
    engine.remove(spec.name)


@pytest.fixture
def running() -> Iterator[tuple[FakeEngine, str, str]]:
    with started(FakeEngine()) as made:
        yield made


def kernel(base: Path, **files: str) -> str:
    """A /proc with these files, by path; every process that has one is there, and has empty ones beside it.

    A file ``PID/ns/pid`` is a link, whose text is the namespace.
    """
    for pid in {name.partition("/")[0] for name in files}:
        (base / pid / "ns").mkdir(parents=True)
        for name in ("cgroup", "status"):
            (base / pid / name).write_text(files.get(f"{pid}/{name}", ""))
        (base / pid / "ns/pid").symlink_to(files.get(f"{pid}/ns/pid", "one"))
    return str(base)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGHUP])
def test_from_inside_by_the_shells_own_kill(running: tuple[FakeEngine, str, str], number: signal.Signals) -> None:
    engine, container, exec_id = running
    assert signal_group(engine, container, exec_id, number)
    assert engine.exec_inspect(exec_id).exit_code == 128 + number
    command = [session.spec for session in engine.sessions.values()][-1]
    assert command.command[:2] == ("sh", "-c")
    assert command.command[2].startswith(f"kill -{number.name.removeprefix('SIG')} -")
    assert (command.user, command.stdin) == ("0", False)


def test_a_command_that_has_ended_or_not_begun_cannot_be_signalled(running: tuple[FakeEngine, str, str]) -> None:
    engine, container, exec_id = running
    assert signal_group(engine, container, exec_id, signal.SIGTERM)
    assert not signal_group(engine, container, exec_id, signal.SIGTERM)
    assert not signal_group(engine, container, engine.exec_create(container, SLEEP), signal.SIGTERM)
    assert not signal_group(engine, container, "unknown", signal.SIGTERM)


@pytest.mark.parametrize("operation", ["exec_inspect", "processes", "exec_create", "exec_start"])
def test_an_engine_failure_returns_false(running: tuple[FakeEngine, str, str], operation: str) -> None:
    engine, container, exec_id = running
    engine.fail(operation, EngineGone(endpoint="e", reason="x"))
    assert not signal_group(engine, container, exec_id, signal.SIGTERM)


def test_an_image_without_a_shell_returns_false(running: tuple[FakeEngine, str, str]) -> None:
    engine, container, exec_id = running
    engine.on("sh", ScriptedExec(code=127))
    assert not signal_group(engine, container, exec_id, signal.SIGTERM)


class Reset(SocketStream):
    """A stream whose other end went away."""

    def recv(self, limit: int) -> bytes:
        raise ConnectionResetError


class Resetting(FakeEngine):
    def exec_start(self, exec_id: str, *, tty: bool, size: Size | None, sooner: Sooner | None = None) -> SocketStream:
        with contextlib.closing(super().exec_start(exec_id, tty=tty, size=size, sooner=sooner)) as stream:
            return Reset(socket.socket(fileno=os.dup(stream.fileno())), b"")


def test_a_stream_that_breaks_is_a_no() -> None:
    with started(Resetting()) as (engine, container, exec_id):
        assert not signal_group(engine, container, exec_id, signal.SIGTERM)


def test_a_host_process_that_is_not_the_containers_is_not_signalled(running: tuple[FakeEngine, str, str]) -> None:
    """A reused process number: the engine names another process, whose cgroup does not name the container."""
    engine, container, exec_id = running
    code = "import os, signal; signal.pause()"
    with subprocess.Popen([sys.executable, "-c", code], start_new_session=True) as stranger:
        engine.local = True
        engine.sessions[exec_id].pid = stranger.pid
        engine.fail("exec_create", EngineStorageFull(operation="write to its storage"))
        assert not signal_group(engine, container, exec_id, signal.SIGTERM), "from the host alone"
        assert stranger.poll() is None
        signal_group(engine, container, exec_id, signal.SIGTERM)
        assert stranger.poll() is None
        stranger.kill()


HOST_CASES: dict[str, tuple[dict[str, str], bool]] = {
    "named by its control group": ({"{pid}/cgroup": "0::/libpod-{id}/container"}, True),
    "known by its number inside": ({"{pid}/status": "NSpid:\t{pid}\t{inner}", "{main}/status": "NSpid:\t9\t1"}, True),
    "in a namespace of ours": ({"{pid}/status": "NSpid:\t{pid}", "{main}/status": "NSpid:\t9\t1"}, False),
    "of another number inside": ({"{pid}/status": "NSpid:\t{pid}\t2", "{main}/status": "NSpid:\t9\t1"}, False),
    "beside another first process": (
        {"{pid}/status": "NSpid:\t{pid}\t{inner}", "{main}/status": "NSpid:\t9\t4"},
        False,
    ),
    "in another container": (
        {"{pid}/status": "NSpid:\t{pid}\t{inner}", "{main}/status": "NSpid:\t9\t1", "{pid}/ns/pid": "two"},
        False,
    ),
    "without a word of the kernel's": ({}, False),
}


@pytest.mark.parametrize("case", HOST_CASES)
def test_whose_group_is_signalled_from_the_host(
    running: tuple[FakeEngine, str, str], case: str, tmp_path: Path
) -> None:
    """Without an exec, which a full storage refuses (issue 10.7); a stranger, by a reused number or of another
    host's numbering, never is."""
    engine, container, exec_id = running
    engine.local = True
    files, signalled = HOST_CASES[case]
    found = engine.inspect(container)
    with subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True) as child:
        engine.sessions[exec_id].pid = child.pid
        inner = engine.processes(container)[child.pid]
        names = {"pid": child.pid, "inner": inner, "main": found.pid, "id": found.id}
        known = {f"{child.pid}/cgroup": "", f"{found.pid}/cgroup": ""}
        known |= {name.format(**names): text.format(**names) for name, text in files.items()}
        engine.fail("exec_create", EngineStorageFull(operation="write to its storage"), times=None)
        done = signal_group(engine, container, exec_id, signal.SIGTERM, proc=kernel(tmp_path, **known))
        if not signalled:
            child.kill()  # before anything is asserted: leaving the block waits for it
        assert done is signalled
        if signalled:
            assert child.wait(HANG) == -signal.SIGTERM
        else:
            assert child.wait(HANG) == -signal.SIGKILL


def test_a_full_storage_does_not_keep_a_signal_from_a_command(
    running: tuple[FakeEngine, str, str], tmp_path: Path
) -> None:
    engine, container, exec_id = running
    engine.local = True
    engine.fail("exec_create", EngineStorageFull(operation="write to its storage"), times=None)
    assert not signal_group(engine, container, exec_id, signal.SIGTERM), "no exec, and no process of this host"
    with subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True) as child:
        engine.sessions[exec_id].pid = child.pid
        proc = kernel(tmp_path, **{f"{child.pid}/cgroup": engine.inspect(container).id})
        assert signal_group(engine, container, exec_id, signal.SIGTERM, proc=proc)
        assert child.wait(HANG) == -signal.SIGTERM


def test_a_process_that_is_gone(running: tuple[FakeEngine, str, str]) -> None:
    engine, container, exec_id = running
    engine.local = True
    engine.fail("exec_create", EngineStorageFull(operation="write to its storage"), times=None)
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    engine.sessions[exec_id].pid = child.pid
    assert not signal_group(engine, container, exec_id, signal.SIGTERM)


def test_refusals_of_the_engine_raise_nothing(running: tuple[FakeEngine, str, str]) -> None:
    engine, container, exec_id = running
    engine.fail("exec_create", ExecFailed(container=container, command="sh", reason="no sh"))
    assert signal_group(engine, container, exec_id, signal.SIGTERM) is False


GONE_CASES = {
    "a command that ended": ("{id}", True),
    "where the engine's numbers are another host's": ("", False),
}


@pytest.mark.parametrize("case", GONE_CASES)
def test_a_process_that_the_kernel_no_longer_has(
    running: tuple[FakeEngine, str, str], case: str, tmp_path: Path
) -> None:
    """An engine whose storage is full reports it as running for ever (issue 10.7)."""
    engine, container, _ = running
    text, gone = GONE_CASES[case]
    cgroup = text.format(id=engine.inspect(container).id)
    ended, there = 4_000_001, 4_000_002
    proc = kernel(tmp_path, **{f"{engine.inspect(container).pid}/cgroup": cgroup, f"{there}/cgroup": ""})
    engine.local = False
    assert not is_gone(engine, container, ended, proc=proc)
    engine.local = True
    assert is_gone(engine, container, ended, proc=proc) is gone
    assert not is_gone(engine, container, there, proc=proc)
    assert not is_gone(engine, "nosuch", ended, proc=proc)
