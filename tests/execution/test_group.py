"""Signalling a group: from the host only what is surely the container's, else from inside."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest

from podbot.errors import EngineGone, ExecFailed
from podbot.execution import group
from podbot.execution.group import signal_group
from podbot.launch.types import ExecSpec
from podbot.testing import IMAGE, FakeEngine, ScriptedExec
from tests.testing.contract import a_spec

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
        assert not group._from_host(stranger.pid, engine.inspect(container).id, signal.SIGTERM)
        assert stranger.poll() is None
        signal_group(engine, container, exec_id, signal.SIGTERM)
        assert stranger.poll() is None
        stranger.kill()


def test_a_process_of_the_container_is_signalled_with_its_group(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/proc/self/cgroup", encoding="ascii") as file:
        cgroup = file.read()
    with subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True) as child:
        # Every process here is in the cgroup of the tests, so that is the "container's id".
        assert group._from_host(child.pid, cgroup, signal.SIGTERM)
        assert child.wait(10) == -signal.SIGTERM


def test_a_process_that_is_gone() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()
    assert not group._from_host(child.pid, "", signal.SIGTERM)


def test_refusals_of_the_engine_are_no_exception(running: tuple[FakeEngine, str, str]) -> None:
    engine, container, exec_id = running
    engine.fail("exec_create", ExecFailed(container=container, command="sh", reason="no sh"))
    assert signal_group(engine, container, exec_id, signal.SIGTERM) is False
