"""The first process of a container is recognised by the kernel's information about it."""

from __future__ import annotations

import os
import subprocess

import pytest

from podbot.session.container_processes import first_process, is_first, lives
from tests.streams.plumbing import nothing_left_open

ID = "83f96dce6d5a"
STATUS = "Name:\tcatatonit\nPid:\t8699\nNSpid:\t8699\t1\n"
CGROUP = f"9:name=systemd:/libpod_parent/libpod-{ID}\n0::/libpod_parent/libpod-{ID}\n"


def test_number_one_of_a_namespace_in_the_containers_cgroup() -> None:
    assert is_first(STATUS, CGROUP, ID)
    assert is_first(STATUS, f"0::/user.slice/user-1000.slice/libpod-{ID}.scope/container\n", ID)
    assert is_first("NSpid:\t8699\t17\t1\n", CGROUP, ID)


@pytest.mark.parametrize(
    "status", ["", "NSpid:\t1\n", "NSpid:\t8699\n", "NSpid:\t8699\t2\n", "NSpid:\n", "Pid:\t8\t1\n"]
)
def test_a_process_whose_end_says_nothing_about_the_others(status: str) -> None:
    assert not is_first(status, CGROUP, ID)


def test_a_process_of_another_container() -> None:
    """The engine is in another pid namespace: its number is another process's here."""
    assert not is_first(STATUS, CGROUP.replace(ID, "0" * 12), ID)
    assert not is_first(STATUS, CGROUP, "libpod")


@pytest.mark.parametrize("pid", [0, -1, None, 1 << 30])
def test_other_processes_give_no_descriptor(pid: int | None) -> None:
    with nothing_left_open():
        assert first_process(os.getpid() if pid is None else pid, ID) is None


def test_a_process_lives_until_it_has_ended() -> None:
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as process:
        handle = os.pidfd_open(process.pid)
        assert lives(handle)
        process.communicate()
        assert not lives(handle)
        os.close(handle)
