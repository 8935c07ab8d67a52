"""Processes of a container that only the kernel knows: a /proc of the test's own, and real processes to end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.engine.podman.leftovers import (
    alive,
    attended,
    delete,
    delete_record,
    end,
    kill_first,
    left,
    lives,
    runtime_directories,
)
from tests.waiting import HANG, wait_until

ID = "c0ffee" + "0" * 58
OTHER = "c0ffee" + "1" * 58
THIRD = "c0ffee" + "2" * 58
HOSTS, THEIRS = "pid:[4026531836]", "pid:[4026532001]"


def process(
    proc: Path,
    pid: int,
    *,
    cgroup: str = "/",
    namespace: str = THEIRS,
    mounted: str = "/",
    at: str = "/run/.containerenv",
) -> None:
    (proc / str(pid) / "ns").mkdir(parents=True)
    os.symlink(namespace, proc / str(pid) / "ns" / "pid")
    os.symlink("mnt:[4026532002]", proc / str(pid) / "ns" / "mnt")
    (proc / str(pid) / "cgroup").write_text(f"4:memory:{cgroup}\n0::{cgroup}\n")
    (proc / str(pid) / "mountinfo").write_text(f"600 500 0:25 {mounted} {at} rw - tmpfs tmpfs rw\n")


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    (tmp_path / "self" / "ns").mkdir(parents=True)
    os.symlink(HOSTS, tmp_path / "self" / "ns" / "pid")
    return tmp_path


def test_the_processes_of_a_container_are_found_by_its_cgroup_or_its_files(proc: Path) -> None:
    process(proc, 10, cgroup=f"/libpod_parent/libpod-{ID}")
    process(proc, 11, cgroup=f"/machine.slice/libpod-{ID}.scope/container")
    process(proc, 12, mounted=f"/containers/overlay-containers/{ID}/userdata/.containerenv")
    process(proc, 13, cgroup=f"/libpod_parent/libpod-{OTHER}")
    process(proc, 14, cgroup=f"/libpod-conmon-{ID}.scope", namespace=HOSTS)  # its monitor
    process(proc, 15, mounted=f"/var/overlay-containers/{ID}/userdata/shm", namespace=HOSTS)  # any program of this host
    (proc / "16").mkdir()  # one that has just ended
    # A browser's process, with a pid namespace of its own, sees what Podman mounted on the host; so does a container
    # into which the host's directories are mounted.
    process(proc, 17, mounted="/", at=f"/var/overlay-containers/{ID}/userdata/shm")
    process(proc, 18, mounted=f"/overlay-containers/{ID}/userdata/shm", at=f"/mnt/{ID}/userdata/shm")
    # One in another container that shares its network (`--network container:ID`), with and without a control group.
    hosts = f"/containers/overlay-containers/{ID}/userdata/hosts"
    process(proc, 19, mounted=hosts, at="/etc/hosts", cgroup=f"/libpod_parent/libpod-{OTHER}")
    process(proc, 20, mounted=hosts, at="/etc/hosts")
    # One in another container that has mounted what it likes.
    file = f"/x/{ID}/userdata/.containerenv"
    process(proc, 21, mounted=file, cgroup=f"/machine.slice/libpod-{OTHER}.scope")
    process(proc, 22, cgroup=f"/libpod_parent/libpod-{ID}")  # it has ended, and nobody has waited for it
    (proc / "22" / "ns" / "mnt").unlink()
    assert left(ID, str(proc)) == [10, 11, 12]
    assert left("c0ffee", str(proc)) == [], "a part of an id may be that of another container"
    assert left(ID, str(proc / "none")) == []


def test_a_process_with_very_many_mounts_does_not_hold_podbot_up(proc: Path) -> None:
    process(proc, 30, mounted=f"/containers/overlay-containers/{ID}/userdata/.containerenv")
    with open(proc / "30" / "mountinfo", "a", encoding="utf-8") as file:
        file.writelines(f"{number} 600 0:25 / /tmp/{number} rw - tmpfs tmpfs rw\n" for number in range(20_000))
    process(proc, 31)
    with open(proc / "31" / "mountinfo", "a", encoding="utf-8") as file:
        file.write(f"1 600 0:25 / /{'x' * (1 << 19)} rw - tmpfs tmpfs rw\n")
        file.write(f"2 600 0:25 /{ID}/userdata/.containerenv /run/.containerenv rw - tmpfs tmpfs rw\n")
    assert left(ID, str(proc)) == [30], "only the first 256 KiB are read"


def test_all_containers_whose_first_process_runs_are_found_at_once(proc: Path) -> None:
    def numbered(pid: int, numbers: str) -> None:
        (proc / str(pid) / "status").write_text(f"Name:\tx\nNSpid:\t{pid}{numbers}\nThreads:\t1\n")

    process(proc, 10, cgroup=f"/libpod_parent/libpod-{ID}")
    numbered(10, "\t1")
    process(proc, 12, mounted=f"/containers/overlay-containers/{OTHER}/userdata/.containerenv")
    numbered(12, "\t1")
    with open(proc / "12" / "mountinfo", "a", encoding="utf-8") as file:  # mounted over its own
        file.write(f"601 500 0:25 /x/{THIRD}/userdata/.containerenv /run/.containerenv rw - tmpfs tmpfs rw\n")
    process(proc, 13, cgroup=f"/libpod-{THIRD}", namespace=HOSTS)
    numbered(13, "")
    process(proc, 14, cgroup=f"/libpod-{THIRD}")  # it has ended
    numbered(14, "\t1")
    (proc / "14" / "ns" / "mnt").unlink()
    process(proc, 15, mounted="/a/b")
    numbered(15, "\t1")
    (proc / "16").mkdir()
    # What a sandbox can do to look like another container: in a namespace of its own, and in a control group below its.
    process(proc, 17, mounted=f"/{THIRD}/userdata/.containerenv")
    numbered(17, "\t9\t1")
    process(proc, 18, cgroup=f"/libpod-{ID}/libpod-{THIRD}")
    numbered(18, "\t1")
    process(proc, 19, cgroup=f"/libpod-{THIRD}")
    numbered(19, "\t7")
    assert alive(str(proc)) == {ID: 10, OTHER: 12}
    assert alive(str(proc / "none")) == {}


def test_who_still_works_on_a_container(proc: Path) -> None:
    def runs(pid: int, *words: str) -> None:
        (proc / str(pid)).mkdir()
        (proc / str(pid) / "cmdline").write_text("\0".join(words) + "\0")

    runs(20, "/usr/bin/conmon", "-c", OTHER, "-u", OTHER)
    runs(21, "/usr/bin/conmon", "-c", ID, "--exec-attach")  # that of a command, which stays for minutes
    runs(22, "less", ID)
    assert not attended(ID, str(proc))
    runs(23, "/usr/bin/podman", "container", "cleanup", ID)
    assert attended(ID, str(proc))
    assert not attended(ID, str(proc / "none"))


@pytest.fixture
def stubborn(proc: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that ignores TERM, in the container."""
    script = "import signal; signal.signal(15, signal.SIG_IGN); print('up', flush=True); signal.pause()"
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    child.stdout.readline()
    process(proc, child.pid, cgroup=f"/libpod-{ID}")
    yield child
    child.kill()
    child.communicate()


def test_what_is_left_gets_term_and_then_kill(proc: Path, stubborn: subprocess.Popen[str]) -> None:
    sent: list[int] = []
    now = [0.0]

    def send(handle: int, number: int) -> None:
        sent.append(number)
        signal.pidfd_send_signal(handle, number)
        if number == signal.SIGKILL:
            stubborn.wait()
            shutil.rmtree(proc / str(stubborn.pid))

    def sleep(_seconds: float) -> None:
        now[0] += 1.0

    assert end(ID, grace=3, kill=5, proc=str(proc), send=send, clock=lambda: now[0], sleep=sleep) == []
    assert sent == [signal.SIGTERM, signal.SIGKILL]
    assert now == [3.0]
    assert stubborn.returncode == -signal.SIGKILL


def test_a_process_that_does_not_end_is_returned_and_no_other_is_signalled(
    proc: Path, stubborn: subprocess.Popen[str]
) -> None:
    process(proc, os.getpid(), cgroup=f"/libpod-{OTHER}")
    now, sent = [0.0], set()

    def sleep(_seconds: float) -> None:
        now[0] += 1.0

    def send(_handle: int, number: int) -> None:
        sent.add(number)

    rest = end(ID, grace=0, kill=2, proc=str(proc), send=send, clock=lambda: now[0], sleep=sleep)
    assert (rest, sent) == ([stubborn.pid], {signal.SIGKILL})


def test_the_first_process_of_a_container_is_killed_and_its_monitor_has_noticed(
    proc: Path, stubborn: subprocess.Popen[str]
) -> None:
    looks: list[float] = []

    def sleep(seconds: float) -> None:
        looks.append(seconds)
        wait_until(lambda: not lives(stubborn.pid), "the process to end")
        if len(looks) == 3:
            stubborn.wait()  # as the monitor does

    kill_first(ID, stubborn.pid, HANG, proc=str(proc), clock=lambda: 0.0, sleep=sleep)
    assert (len(looks), stubborn.returncode) == (3, -signal.SIGKILL)


@pytest.mark.parametrize("container", [OTHER, ID[:12], ""])
def test_a_process_of_anything_else_is_not_killed(proc: Path, stubborn: subprocess.Popen[str], container: str) -> None:
    sent: list[int] = []
    kill_first(container, stubborn.pid, HANG, proc=str(proc), send=lambda _handle, number: sent.append(number))
    assert sent == []


def test_a_first_process_that_does_not_end_is_waited_for_only_so_long(
    proc: Path, stubborn: subprocess.Popen[str]
) -> None:
    now = [0.0]

    def sleep(seconds: float) -> None:
        now[0] += seconds

    kill_first(ID, stubborn.pid, 0.5, proc=str(proc), send=lambda *_: None, clock=lambda: now[0], sleep=sleep)
    assert now[0] == pytest.approx(0.5, abs=0.01)
    assert lives(stubborn.pid)


def test_a_process_that_has_gone_is_no_error(proc: Path) -> None:
    child = subprocess.Popen(["true"])
    child.wait()
    kill_first(ID, child.pid, HANG, proc=str(proc))


def test_a_process_that_has_ended_lives_no_more_although_nobody_has_waited_for_it() -> None:
    assert lives(os.getpid())
    child = subprocess.Popen(["sleep", "600"])
    assert lives(child.pid)
    child.send_signal(signal.SIGKILL)
    wait_until(lambda: not lives(child.pid), "the process to end")
    assert os.path.exists(f"/proc/{child.pid}"), "nobody has waited for it"
    child.wait()
    assert not lives(child.pid)


def test_the_runtime_deletes_its_record_of_a_whole_id_and_a_failure_is_no_error(tmp_path: Path) -> None:
    runtime, ran = tmp_path / "runc", tmp_path / "ran"
    runtime.write_text(f'#!/bin/sh\necho "$@" >> {ran}; exit 1\n', encoding="utf-8")
    runtime.chmod(0o755)
    delete(str(runtime), ID)
    for name, container in ((str(runtime), "--all"), (str(runtime), "c0ffee"), ("", ID), (str(tmp_path / "no"), ID)):
        delete(name, container)
    delete(str(runtime), ID, "/run/user/7/runc")
    assert ran.read_text(encoding="utf-8") == f"delete {ID}\n--root /run/user/7/runc delete {ID}\n"


def test_a_record_is_deleted_where_it_is(tmp_path: Path) -> None:
    places = [str(tmp_path / name) for name in ("runc", "crun")]
    deleted: list[tuple[str, ...]] = []
    os.makedirs(os.path.join(places[1], ID))
    for container in (ID, ID[:12], ""):
        delete_record(container, places, delete=lambda *words: deleted.append(words))
    assert deleted == [("crun", ID, places[1])]


def test_the_records_of_a_user_s_runtimes_are_in_the_runtime_directory() -> None:
    assert runtime_directories({"XDG_RUNTIME_DIR": "/x"}, 0) == ("/run/runc", "/run/crun")
    assert runtime_directories({"XDG_RUNTIME_DIR": "/run/user/7"}, 7) == ("/run/user/7/runc", "/run/user/7/crun")
    assert runtime_directories({}, 7) == ("/run/user/7/runc", "/run/user/7/crun")
