"""Reading the state of a process group from /proc: with real processes, and with any text instead."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.execution.stopped import group_of, handles_continue, in_own_namespace, state_and_group

SLEEPER = "import signal, sys; {}; print('ready', flush=True); sys.stdin.read()"


@pytest.fixture
def own_cgroup() -> str:
    """Replaces a container's id; it is also part of /proc/PID/cgroup of this process's children."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        return file.readline().strip()


def started(code: str) -> subprocess.Popen[bytes]:
    child = subprocess.Popen(
        [sys.executable, "-c", SLEEPER.format(code)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    return child


@pytest.fixture
def plain() -> Iterator[subprocess.Popen[bytes]]:
    child = started("0")
    yield child
    child.kill()
    child.communicate()


def test_a_running_and_a_stopped_group(plain: subprocess.Popen[bytes], own_cgroup: str) -> None:
    found = group_of(plain.pid, own_cgroup)
    assert found is not None
    assert (found.stopped, found.members) == (False, {plain.pid: False})
    os.kill(plain.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, plain.pid, os.WSTOPPED)
    found = group_of(plain.pid, own_cgroup)
    assert found is not None
    assert found.stopped


def test_processes_that_handle_sigcont(own_cgroup: str) -> None:
    child = started("signal.signal(signal.SIGCONT, lambda *_: None)")
    found = group_of(child.pid, own_cgroup)
    child.kill()
    child.communicate()
    assert found is not None
    assert found.members == {child.pid: True}
    assert group_of(child.pid, own_cgroup) is None, "it is gone"


def test_a_process_of_another_user_is_not_checked(plain: subprocess.Popen[bytes]) -> None:
    assert group_of(plain.pid, "f" * 64) is None


@pytest.mark.parametrize(
    ("stat", "found"),
    [
        ("12 (sh) S 1 12 12 34816 12", ("S", 12)),
        ("12 (a) T 1 99 99) T 1 13 12", ("T", 13)),
        ("12 (x y) T 1 -1 0", ("T", -1)),
        ("", None),
        ("12 (sh) S", None),
        ("12 (sh) S 1 x", None),
    ],
)
def test_a_process_chooses_its_own_name(stat: str, found: tuple[str, int] | None) -> None:
    assert state_and_group(stat) == found


@pytest.mark.parametrize(("status", "own"), [("NSpid:\t1050\t37\n", True), ("NSpid:\t1050\n", False), ("", False)])
def test_a_containers_process_has_a_second_number(status: str, own: bool) -> None:
    assert in_own_namespace(f"Name:\tx\n{status}") is own


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    assert state_and_group(text) is None or ")" in text or len(text.split()) > 2
    assert handles_continue(f"SigCgt:\t{text}") in (True, False)


@pytest.mark.parametrize(
    ("mask", "handles"), [("0000000000020000", True), ("0000000000010000", False), ("zz", False), ("", False)]
)
def test_the_mask_of_caught_signals(mask: str, handles: bool) -> None:
    assert handles_continue(f"SigBlk:\t0000000000020000\nSigCgt:\t{mask}\n") is handles
    assert not handles_continue("Name:\tx\n")
