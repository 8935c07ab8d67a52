"""Locks that are released with their holder, and checks that do not count as holding."""

from __future__ import annotations

import fcntl
import itertools
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from podbot.errors import PathError
from podbot.github.lease import FileLock
from podbot.locks import is_held
from tests.waiting import HANG

HOLD = """
import sys, time
from podbot.github.lease import FileLock
lock = FileLock(sys.argv[1])
print(lock.try_acquire(), flush=True)
time.sleep(60)
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "session" / "token.lock")


@pytest.fixture(autouse=True)
def _directory(path: str) -> None:
    os.mkdir(os.path.dirname(path), 0o700)


def test_one_at_a_time(path: str) -> None:
    one, other = FileLock(path), FileLock(path)
    assert one.try_acquire()
    assert one.try_acquire(), "again is no harm"
    assert not other.try_acquire()
    assert (one.held, other.held, is_held(path)) == (True, False, True)
    one.release()
    one.release()
    assert not is_held(path)
    assert other.try_acquire()
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_a_block_holds_the_lock(path: str) -> None:
    lock = FileLock(path)
    assert lock.acquire(0)
    with pytest.raises(KeyboardInterrupt), lock:
        raise KeyboardInterrupt
    assert not is_held(path)


def test_a_killed_holder_releases_the_lock(path: str) -> None:
    child = subprocess.Popen([sys.executable, "-c", HOLD, path], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"True\n"
    lock = FileLock(path)
    assert is_held(path)
    assert not lock.acquire(0.02)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert lock.acquire(HANG)


def test_children_do_not_keep_it(path: str) -> None:
    """Podman's service outlives the command that starts it."""
    lock = FileLock(path)
    assert lock.try_acquire()
    child = subprocess.Popen(["sleep", "60"], close_fds=False)
    try:
        lock.release()
        assert not is_held(path)
    finally:
        child.kill()
        child.wait()


def test_looking_is_not_holding(path: str) -> None:
    """Many simultaneous checks prevent no process from getting the lock, and do not see each other."""
    Path(path).touch()
    stop, holding = threading.Event(), threading.Event()
    looked = [threading.Event(), threading.Event()]  # often, while nobody held it
    wrong: list[int] = []

    def look(often: threading.Event) -> None:
        for number in itertools.count():
            if stop.is_set():
                break
            if is_held(path) and not holding.is_set():
                wrong.append(1)
            if number == 500:
                often.set()

    threads = [threading.Thread(target=look, args=(often,)) for often in looked]
    for thread in threads:
        thread.start()
    try:
        lock, got = FileLock(path), 0
        assert all(often.wait(HANG) for often in looked)
        assert not wrong
        holding.set()
        for _ in range(50):
            with lock:
                got += lock.acquire(HANG)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert got == 50


def test_a_check_in_progress_does_not_refuse_the_lock(path: str) -> None:
    Path(path).touch()
    looker = os.open(path, os.O_RDWR)
    fcntl.flock(looker, fcntl.LOCK_SH)
    checks = [looker]  # in progress: it ends while the lock waits
    lock = FileLock(path, sleep=lambda _seconds: os.close(checks.pop()))
    assert lock.try_acquire()
    assert checks == [], "it was waited for"
    lock.release()


def test_looking_makes_nothing(path: str) -> None:
    assert not is_held(path)
    assert os.listdir(os.path.dirname(path)) == []


def test_a_directory_that_is_made_again_has_a_new_lock(path: str, tmp_path: Path) -> None:
    waits: list[float] = []
    old = FileLock(path, sleep=waits.append)
    assert old.try_acquire()
    os.rename(os.path.dirname(path), tmp_path / "aside")
    assert not old.held
    assert not old.try_acquire(), "no directory"
    once = waits.copy()
    assert not old.acquire(HANG)
    assert waits == once * 2, "and no wait for one"
    os.mkdir(os.path.dirname(path))
    new = FileLock(path)
    assert new.try_acquire()
    assert not old.try_acquire()
    assert new.held


def test_a_link_is_not_a_lock(path: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch()
    os.symlink(tmp_path / "elsewhere", path)
    with pytest.raises(PathError):
        FileLock(path).try_acquire()
    assert not is_held(path)
    os.unlink(path)
    os.mkdir(path)
    with pytest.raises(PathError):
        FileLock(path).try_acquire()
