"""Processes that wait for a FUSE server of their own, with a /proc and a list of connections of the test's own."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from podbot.events import Event
from podbot.session.record import SessionRecord
from podbot.session.stuck_servers import end_stuck

ID = "c0ffee" + "0" * 58
OTHER = "c0ffee" + "1" * 58
HOSTS, THEIRS = "pid:[4026531836]", "pid:[4026532001]"
FUSE: dict[str, Any] = {"privileged": False, "devices": ["/dev/fuse"]}
OWN_FILE = f"600 500 0:25 /containers/{ID}/userdata/.containerenv /run/.containerenv rw - tmpfs tmpfs rw\n"


def line(number: int, kind: str = "fuse", major: int = 0) -> str:
    return f"280 218 {major}:{number} / /tmp/m rw,relatime shared:1 - {kind} x rw,user_id=0\n"


class Kernel:
    """Threads, and connections; a thread ends when the connection that it waits for is aborted."""

    def __init__(self, base: Path) -> None:
        self.proc, self.connections = base / "proc", base / "connections"
        self.connections.mkdir()
        (self.proc / "self" / "ns").mkdir(parents=True)
        os.symlink(HOSTS, self.proc / "self" / "ns" / "pid")
        (self.proc / "self" / "mountinfo").write_text("")
        self.waiting: dict[int, Path] = {}
        self.events: list[Event] = []
        self.now = 0.0

    def thread(self, pid: int, task: int, mounts: str, *, cgroup: str = f"/libpod-{ID}", space: str = THEIRS) -> Path:
        directory = self.proc / str(pid) / "task" / str(task)
        (directory / "ns").mkdir(parents=True)
        os.symlink(space, directory / "ns" / "pid")
        (directory / "cgroup").write_text(f"0::{cgroup}\n")
        (directory / "mountinfo").write_text(mounts)
        return directory

    def ended_thread(self, pid: int, task: int) -> None:
        (self.proc / str(pid) / "task" / str(task)).mkdir(parents=True)

    def connection(self, number: int) -> Path:
        (self.connections / str(number)).mkdir()
        (self.connections / str(number) / "abort").touch()
        return self.connections / str(number) / "abort"

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        for number, thread in self.waiting.items():
            if (self.connections / str(number) / "abort").read_text() == "1" and thread.exists():
                (thread / "ns" / "pid").unlink(missing_ok=True)

    def end(self, security: dict[str, Any] | None = FUSE, container: str = ID) -> bool:
        plan = None if security is None else {"container": {"security": security}}
        return end_stuck(
            SessionRecord("shop", "e", "running", container=container, plan=plan), self.events.append,
            proc=str(self.proc), connections=str(self.connections), clock=lambda: self.now, sleep=self.sleep,
        )  # fmt: skip


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


@pytest.mark.parametrize("in_a_group", [True, False])
def test_a_thread_whose_process_has_ended_otherwise_is_freed(kernel: Kernel, in_a_group: bool) -> None:
    """With no control group of its own (cgroup v1, rootless) the container's own file tells."""
    kernel.ended_thread(10, 10)
    cgroup = f"/libpod_parent/libpod-{ID}" if in_a_group else "/user.slice"
    kernel.waiting[87] = kernel.thread(10, 12, OWN_FILE + line(87), cgroup=cgroup)
    abort = kernel.connection(87)
    others = kernel.connection(88)
    assert kernel.end()
    assert (abort.read_text(), others.read_text()) == ("1", "")
    assert kernel.events == []


def test_file_systems_of_the_host_are_left_alone(kernel: Kernel) -> None:
    """The workspace may lie on one (sshfs). A block device's number is no connection."""
    (kernel.proc / "self" / "mountinfo").write_text(line(40, "fuse.sshfs"))
    kernel.thread(
        10, 10, line(40, "fuse.sshfs") + line(41, "fuseblk", 8) + line(42, "ext4") + line(43, "fuse", 8) + "\n"
    )
    aborts = [kernel.connection(number) for number in (40, 41, 42, 43)]
    assert not kernel.end()
    assert [abort.read_text() for abort in aborts] == [""] * 4
    assert [event.message for event in kernel.events] == ["processes of the sandbox shop do not end"]


def test_what_podbot_may_not_abort_is_named(kernel: Kernel) -> None:
    kernel.thread(10, 10, line(87, "fuse.evil"))
    assert not kernel.end()
    (event,) = kernel.events
    assert event.message.endswith(f"As root, write 1 to {kernel.connections}/87/abort")
    assert event.fields["connections"] == [87]


def test_other_processes_are_not_looked_at(kernel: Kernel) -> None:
    kernel.thread(10, 10, line(87), cgroup=f"/libpod-{OTHER}")
    kernel.thread(11, 11, line(87), cgroup=f"/libpod-conmon-{ID}", space=HOSTS)  # the monitor
    abort = kernel.connection(87)
    assert not kernel.end()
    assert (abort.read_text(), kernel.events) == ("", [])


def test_processes_that_end_by_themselves_are_waited_for(kernel: Kernel) -> None:
    thread = kernel.thread(10, 10, line(87))
    abort = kernel.connection(87)
    kernel.sleep = lambda seconds: (thread / "ns" / "pid").unlink()  # type: ignore[method-assign]
    assert not kernel.end()
    assert (abort.read_text(), kernel.events) == ("", [])


@pytest.mark.parametrize(
    ("security", "container", "looked"),
    [
        (FUSE, ID, True),
        ({"privileged": True, "devices": []}, ID, True),
        ({"privileged": False, "devices": []}, ID, False),
        (FUSE, "", False),
        (FUSE, "short", False),
        (None, ID, False),
        ({}, ID, False),
    ],
)
def test_only_sessions_with_the_device_are_looked_at(
    kernel: Kernel, security: dict[str, Any] | None, container: str, looked: bool
) -> None:
    kernel.thread(10, 10, line(87))
    assert not kernel.end(security, container)
    assert bool(kernel.events) is looked


def test_without_the_kernels_files_nothing_is_done(kernel: Kernel) -> None:
    os.unlink(kernel.proc / "self" / "ns" / "pid")
    assert not kernel.end()
    kernel.connections.rmdir()
    os.symlink(HOSTS, kernel.proc / "self" / "ns" / "pid")
    kernel.thread(10, 10, line(87))
    assert not kernel.end()
    assert [event.kind for event in kernel.events] == ["session.stuck"]
