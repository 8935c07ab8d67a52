"""Signalling a group: from the host only what is surely the container's, else from inside."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from podbot.errors import EngineGone, EngineStorageFull, ExecFailed
from podbot.execution import group
from podbot.execution.group import signal_group
from podbot.launch.types import ExecSpec
from podbot.testing import IMAGE, FakeEngine, ScriptedExec
from podbot.testing.engine_contract import a_spec

SLEEP = ExecSpec(command=("sleep", "1000"))


@pytest.fixture
def running() -> Iterator[tuple[FakeEngine, str, str]]:
    """(engine, container, a started exec session)."""
    engine, spec = FakeEngine(), a_spec(IMAGE)
    engine.start(engine.create(spec))
    exec_id = engine.exec_create(spec.name, SLEEP)
    stream = engine.exec_start(exec_id, tty=False, size=None)
    yield engine, spec.name, exec_id
    stream.close()
    engine.remove(spec.name)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL, signal.SIGHUP])
def test_from_inside_by_the_shell_s_own_kill(running: tuple[FakeEngine, str, str], number: signal.Signals) -> None:
    engine, container, exec_id = running
    assert signal_group(engine, container, exec_id, number)
    assert engine.exec_inspect(exec_id).exit_code == 128 + number
    command = [session.spec for session in engine.sessions.values()][-1]
    assert command.command[:2] == ("sh", "-c")
    assert command.command[2].startswith(f"kill -{number.name.removeprefix('SIG')} -")
    assert (command.user, command.stdin) == ("0", False)


def test_what_has_ended_or_not_begun_cannot_be_signalled(running: tuple[FakeEngine, str, str]) -> None:
    engine, container, exec_id = running
    assert signal_group(engine, container, exec_id, signal.SIGTERM)
    assert not signal_group(engine, container, exec_id, signal.SIGTERM)
    assert not signal_group(engine, container, engine.exec_create(container, SLEEP), signal.SIGTERM)
    assert not signal_group(engine, container, "unknown", signal.SIGTERM)


@pytest.mark.parametrize("operation", ["exec_inspect", "processes", "exec_create", "exec_start"])
def test_an_engine_that_fails_is_a_no(running: tuple[FakeEngine, str, str], operation: str) -> None:
    engine, container, exec_id = running
    engine.fail(operation, EngineGone(endpoint="e", reason="x"))
    assert not signal_group(engine, container, exec_id, signal.SIGTERM)


def test_an_image_without_a_shell_is_a_no(running: tuple[FakeEngine, str, str]) -> None:
    engine, container, exec_id = running
    engine.on("sh", ScriptedExec(code=127))
    assert not signal_group(engine, container, exec_id, signal.SIGTERM)


def test_a_stream_that_breaks_is_a_no(running: tuple[FakeEngine, str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    engine, container, exec_id = running

    def reset(_stream: object) -> None:
        raise ConnectionResetError

    monkeypatch.setattr(group, "_wait_for_end", reset)
    assert not signal_group(engine, container, exec_id, signal.SIGTERM)


def test_a_process_of_ours_that_is_not_the_container_s_is_left_alone(running: tuple[FakeEngine, str, str]) -> None:
    """A reused process number: the engine names a stranger, whose cgroup does not name the container."""
    engine, container, exec_id = running
    code = "import os, signal; signal.pause()"
    with subprocess.Popen([sys.executable, "-c", code], start_new_session=True) as stranger:
        engine.local = True
        engine.sessions[exec_id].pid = stranger.pid
        assert not group._from_host(engine, container, stranger.pid, signal.SIGTERM)
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
        {"{pid}/status": "NSpid:\t{pid}\t{inner}", "{main}/status": "NSpid:\t9\t1", "namespaces": "differ"},
        False,
    ),
    "without a word of the kernel's": ({}, False),
}


@pytest.mark.parametrize("case", HOST_CASES)
def test_whose_group_is_signalled_from_the_host(
    running: tuple[FakeEngine, str, str], case: str, monkeypatch: pytest.MonkeyPatch
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
        known = {f"/proc/{name.format(**names)}": text.format(**names) for name, text in files.items()}
        monkeypatch.setattr(group, "_read", lambda path: known.get(path, ""))
        monkeypatch.setattr(group, "_namespace", lambda pid: str(pid) if "namespaces" in files else "one")
        done = group._from_host(engine, container, child.pid, signal.SIGTERM)
        if not signalled:
            child.kill()  # before anything is asserted: leaving the block waits for it
        assert done is signalled
        if signalled:
            assert child.wait(10) == -signal.SIGTERM
        else:
            assert child.wait(10) == -signal.SIGKILL


def test_a_full_storage_does_not_keep_a_signal_from_a_command(
    running: tuple[FakeEngine, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, container, exec_id = running
    engine.local = True
    engine.fail("exec_create", EngineStorageFull(operation="write to its storage"), times=None)
    assert not signal_group(engine, container, exec_id, signal.SIGTERM), "no exec, and no process of this host"
    monkeypatch.setattr(group, "_read", lambda _: engine.inspect(container).id)
    with subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True) as child:
        engine.sessions[exec_id].pid = child.pid
        assert signal_group(engine, container, exec_id, signal.SIGTERM)
        assert child.wait(10) == -signal.SIGTERM


def test_a_process_that_is_gone(running: tuple[FakeEngine, str, str]) -> None:
    engine, container, _ = running
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    assert not group._from_host(engine, container, child.pid, signal.SIGTERM)


def test_refusals_of_the_engine_are_no_exception(running: tuple[FakeEngine, str, str]) -> None:
    engine, container, exec_id = running
    engine.fail("exec_create", ExecFailed(container=container, command="sh", reason="no sh"))
    assert signal_group(engine, container, exec_id, signal.SIGTERM) is False


GONE_CASES = {
    "a command that ended": ("{id}", True),
    "where the engine's numbers are another host's": ("", False),
}


@pytest.mark.parametrize("case", GONE_CASES)
def test_a_process_that_the_kernel_no_longer_has(
    running: tuple[FakeEngine, str, str], case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine whose storage is full calls it running for ever (issue 10.7)."""
    engine, container, _ = running
    text, gone = GONE_CASES[case]
    cgroup = text.format(id=engine.inspect(container).id)
    monkeypatch.setattr(group, "_read", lambda path: cgroup if path.endswith("/cgroup") else "")
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    engine.local = False
    assert not group.is_gone(engine, container, child.pid)
    engine.local = True
    assert group.is_gone(engine, container, child.pid) is gone
    assert not group.is_gone(engine, container, os.getpid())
    assert not group.is_gone(engine, "nosuch", child.pid)
