"""Processes that wait for a FUSE server of their own, with a /proc and a list of connections of the test's own."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.events import Event
from podbot.session.record import SessionRecord
from podbot.session.stuck_servers import _connections, end_stuck

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
        (self.proc / "self" / "mountinfo").write_bytes(b"")
        self.waiting: dict[int, Path] = {}
        self.events: list[Event] = []
        self.now = 0.0

    def thread(
        self, pid: int, task: int, mounts: str, *, cgroup: str = f"/libpod-{ID}", space: str = THEIRS, serves: int = 0
    ) -> Path:
        """Has a mount namespace of its own. ``serves``: the connection whose /dev/fuse it has open."""
        process = self.proc / str(pid)
        directory = process / "task" / str(task)
        for place in (process, directory):
            (place / "ns").mkdir(parents=True, exist_ok=True)
            (place / "fdinfo").mkdir(exist_ok=True)
            for name, value in (("pid", space), ("mnt", f"mnt:[{pid}{task}]")):
                (place / "ns" / name).unlink(missing_ok=True)
                os.symlink(value, place / "ns" / name)
            (place / "mountinfo").write_text(mounts, encoding="utf-8", newline="")
        (directory / "cgroup").write_text(f"0::{cgroup}\n")
        served = f"fuse_connection:\t{serves}\n" if serves else ""
        (directory / "fdinfo" / "3").write_text(f"pos:\t0\nmnt_id:\t58\n{served}\n")
        return directory

    def ended_thread(self, pid: int, task: int) -> None:
        (self.proc / str(pid) / "task" / str(task)).mkdir(parents=True)

    def connection(self, number: int) -> Path:
        (self.connections / str(number)).mkdir()
        (self.connections / str(number) / "abort").touch()
        (self.connections / str(number) / "waiting").write_text("1\n")
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
    for number in (41, 42, 43):
        (kernel.connections / str(number) / "waiting").write_text("0\n")
    assert not kernel.end()
    assert [abort.read_text() for abort in aborts] == [""] * 4
    assert [event.message for event in kernel.events] == ["processes of the sandbox shop do not end"]


@pytest.mark.parametrize("character", [*"\r\v\f\x1c\x85\u2028\u2029", "\\040-\\040fuse", "é"])
def test_no_name_of_a_mount_hides_one_or_ends_the_look(kernel: Kernel, character: str) -> None:
    kernel.waiting[87] = kernel.thread(10, 10, line(87).replace("/tmp/m", f"/tmp/m{character}q"))
    abort = kernel.connection(87)
    assert kernel.end()
    assert abort.read_text() == "1"


@given(st.lists(st.binary(max_size=60)), st.sampled_from([b"\n", b" ", b" - "]))
def test_no_list_of_mounts_is_an_error(parts: list[bytes], between: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(between.join(parts))
        file.flush()
        assert all(number >= 0 for number in _connections(file.name))


def test_many_mounts_hide_none(kernel: Kernel) -> None:
    others = "".join(f"{number} 1 0:25 / /tmp/{'m' * 200}{number} rw - tmpfs tmpfs rw\n" for number in range(1500))
    kernel.waiting[87] = kernel.thread(10, 10, others + OWN_FILE + line(87), cgroup="/user.slice")
    abort = kernel.connection(87)
    assert kernel.end()
    assert abort.read_text() == "1"


def test_many_mounts_hide_none_of_the_hosts(kernel: Kernel) -> None:
    others = "".join(f"{number} 1 0:25 / /tmp/{'m' * 200}{number} rw - tmpfs tmpfs rw\n" for number in range(1500))
    (kernel.proc / "self" / "mountinfo").write_text(others + line(40, "fuse.sshfs"))
    kernel.thread(10, 10, line(40, "fuse.sshfs"))
    abort = kernel.connection(40)
    assert not kernel.end()
    assert abort.read_text() == ""


def test_the_engines_own_file_system_of_a_container_is_left_alone(kernel: Kernel) -> None:
    """fuse-overlayfs of a rootless engine: its mount namespace is not podbot's, but that of the container's monitor."""
    root = "300 299 0:60 / / rw - fuse.fuse-overlayfs fuse-overlayfs rw,user_id=0\n"
    kernel.thread(10, 10, root)
    kernel.thread(11, 11, root, cgroup="/user.slice", space=HOSTS)
    abort = kernel.connection(60)
    assert not kernel.end()
    assert abort.read_text() == ""


def test_without_the_hosts_list_of_mounts_nothing_is_aborted(kernel: Kernel) -> None:
    (kernel.proc / "self" / "mountinfo").unlink()
    kernel.thread(10, 10, line(87), serves=87)
    abort = kernel.connection(87)
    assert not kernel.end()
    assert abort.read_text() == ""


def test_a_server_is_found_by_its_open_file_after_a_lazy_unmount(kernel: Kernel) -> None:
    kernel.waiting[87] = kernel.thread(10, 10, "", serves=87)
    abort = kernel.connection(87)
    assert kernel.end()
    assert abort.read_text() == "1"


def test_a_connection_without_a_mount_that_can_be_seen_is_named(kernel: Kernel) -> None:
    """An older kernel does not say whose it is."""
    kernel.thread(10, 10, "")
    kernel.thread(11, 11, line(41), cgroup="/user.slice")
    aborts = [kernel.connection(number) for number in (41, 87, 88)]
    (kernel.connections / "88" / "waiting").write_text("0\n")
    assert not kernel.end()
    (event,) = kernel.events
    assert event.message.endswith(f"which may be of their own. As root, write 1 to {kernel.connections}/87/abort")
    assert [abort.read_text() for abort in aborts] == [""] * 3


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
