from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.engine.podman.private.service import ensure_service
from podbot.errors import PathError, PodbotError, SessionExists, SessionRecordUnknown, UnsafeDirectory
from podbot.places import private_dir
from podbot.session.directory import (
    GONE,
    FoundSession,
    left_session,
    remove_directory,
    session_directory,
    sessions,
    sweep,
)
from podbot.session.flags import LOCK, STOPPING, flagged, is_live
from podbot.session.kill_watcher import HelperProgram
from podbot.session.record import RECORD, SessionRecord, State, as_json, write_record
from tests.faults import GiveAway
from tests.session.plans import SESSION, Place, in_state, nest
from tests.waiting import HANG, wait_until

ENDPOINT = "unix:///run/podman.sock"


def record(place: Place, session: str = SESSION) -> Any:
    with open(os.path.join(place.directory(session), RECORD), encoding="utf-8") as file:
        return json.load(file)


def left_behind(place: Place, session: str, endpoint: str = ENDPOINT, state: State = "running") -> None:
    """What a podbot that was killed leaves."""
    os.makedirs(place.directory(session), 0o700)
    for name, text in ((LOCK, ""), (RECORD, json.dumps(as_json(SessionRecord(session, endpoint, state))))):
        with open(os.path.join(place.directory(session), name), "w", encoding="utf-8") as file:
            file.write(text)


# --- one session ----------------------------------------------------------------------------------


def test_it_is_private_and_removed_afterwards(place: Place) -> None:
    with session_directory(place.directory(), ENDPOINT):
        assert os.stat(place.directory()).st_mode & 0o777 == 0o700
        assert os.stat(os.path.join(place.directory(), LOCK)).st_mode & 0o777 == 0o600
        assert record(place) == as_json(SessionRecord(SESSION, ENDPOINT, "claimed"))
        assert is_live(place.directory())
    assert not os.path.exists(place.directory())
    assert not is_live(place.directory())


def test_it_is_removed_after_an_error_too(place: Place) -> None:
    with pytest.raises(KeyboardInterrupt), session_directory(place.directory(), ENDPOINT):
        raise KeyboardInterrupt
    assert not os.path.exists(place.directory())


def test_a_container_that_could_not_be_removed_is_left_to_the_helper(place: Place, tmp_path: Path) -> None:
    helper, called = tmp_path / "helper.py", tmp_path / "called"
    helper.write_text(f"import sys; open({str(called)!r}, 'w').close()\n")

    def interrupted(state: State) -> None:
        with session_directory(place.directory(), ENDPOINT, helper=HelperProgram(str(helper), os.environ)) as directory:
            in_state(directory, state)
            assert not called.exists()
            raise KeyboardInterrupt

    states: tuple[State, ...] = ("stopped", "creating")
    for state in states:
        with pytest.raises(KeyboardInterrupt):
            interrupted(state)
    wait_until(called.exists)


def test_the_earlier_session_whose_name_was_not_taken_is_not_the_helper_s(place: Place, tmp_path: Path) -> None:
    """It may be in use by a `podbot exec`; only the new session failed."""
    helper, called = tmp_path / "helper.py", tmp_path / "called"
    helper.write_text(f"import sys; open({str(called)!r}, 'a').write(sys.argv[1] + '\\n')\n")

    def failed(name: str, *, taken: bool) -> None:
        with session_directory(
            place.directory(name), ENDPOINT, helper=HelperProgram(str(helper), os.environ)
        ) as directory:
            if taken:
                directory.name_taken()
            else:
                in_state(directory, "creating")
            raise KeyboardInterrupt

    write_record(private_dir(place.directory("earlier")), SessionRecord("earlier", ENDPOINT, "running"))
    with pytest.raises(KeyboardInterrupt):
        failed("earlier", taken=True)
    with pytest.raises(KeyboardInterrupt):
        failed("own", taken=False)
    wait_until(lambda: place.directory("own") in (called.read_text() if called.exists() else "").splitlines())
    assert called.read_text().splitlines() == [place.directory("own")]


def test_it_stays_as_long_as_the_container_exists(place: Place) -> None:
    with session_directory(place.directory(), ENDPOINT) as directory:
        in_state(directory, "stopped")
    assert not is_live(place.directory())
    assert sessions(place.environ) == [FoundSession(SESSION, ENDPOINT, "stopped", live=False)]


def test_two_sessions_on_one_name(place: Place) -> None:
    with session_directory(place.directory(), ENDPOINT):
        with pytest.raises(SessionExists) as caught, session_directory(place.directory(), ENDPOINT):
            pytest.fail("two sessions hold one name")
        assert caught.value.session == SESSION
        assert "end that session" in caught.value.remedy
        assert is_live(place.directory()), "the loser leaves the winner's lock and directory alone"
        with session_directory(place.directory("other"), ENDPOINT):
            assert len(sessions(place.environ)) == 2


def test_a_killed_session_s_name_can_be_had_again(place: Place) -> None:
    left_behind(place, SESSION, "old", "stopped")
    with session_directory(place.directory(), ENDPOINT) as directory:
        assert record(place)["endpoint"] == "old", "until there is another container"
        directory.move("creating")
        assert record(place)["endpoint"] == ENDPOINT
        directory.move("gone")
    assert not os.path.exists(place.directory())


def test_a_name_released_before_a_container_existed_keeps_its_earlier_session(place: Place) -> None:
    left_behind(place, SESSION, "old", "stopped")
    with pytest.raises(KeyboardInterrupt), session_directory(place.directory(), ENDPOINT):
        raise KeyboardInterrupt
    assert sessions(place.environ) == [FoundSession(SESSION, "old", "stopped", live=False)]


def test_a_name_that_is_already_used_keeps_the_record_of_its_owner(place: Place) -> None:
    left_behind(place, SESSION, "old", "stopped")
    with session_directory(place.directory(), ENDPOINT) as directory:
        directory.move("creating")
        directory.name_taken()
    assert sessions(place.environ) == [FoundSession(SESSION, "old", "stopped", live=False)]


def test_a_name_used_by_a_foreign_container_leaves_nothing(place: Place) -> None:
    with session_directory(place.directory(), ENDPOINT) as directory:
        directory.name_taken()
    assert sessions(place.environ) == []
    assert not os.path.exists(place.directory())


# --- hostile places -------------------------------------------------------------------------------


def test_a_link_in_its_place_is_refused(place: Place) -> None:
    os.makedirs(place.runtime, 0o700)
    elsewhere = os.path.join(place.base, "elsewhere")
    os.mkdir(elsewhere, 0o700)
    os.symlink(elsewhere, place.directory())
    with pytest.raises(UnsafeDirectory) as caught, session_directory(place.directory(), ENDPOINT):
        pytest.fail("a link was followed")
    assert caught.value.path == place.directory()
    assert os.listdir(elsewhere) == []


def test_a_directory_swapped_for_a_link_is_not_emptied(place: Place) -> None:
    elsewhere = os.path.join(place.base, "elsewhere")
    os.mkdir(elsewhere)
    with open(os.path.join(elsewhere, "precious"), "w", encoding="utf-8"):
        pass
    with session_directory(place.directory(), ENDPOINT):
        os.rename(place.directory(), place.directory("away"))
        os.symlink(elsewhere, place.directory())
    assert os.listdir(elsewhere) == ["precious"]


def test_a_link_in_place_of_the_lock_is_refused(place: Place) -> None:
    os.makedirs(place.directory(), 0o700)
    target = os.path.join(place.base, "target")
    os.symlink(target, os.path.join(place.directory(), LOCK))
    with pytest.raises(PathError), session_directory(place.directory(), ENDPOINT):
        pytest.fail("a link was followed")
    assert not os.path.exists(target)
    assert not is_live(place.directory())


def test_a_file_in_its_place(place: Place) -> None:
    os.makedirs(place.runtime, 0o700)
    with open(place.directory(), "w", encoding="utf-8"):
        pass
    with pytest.raises(PodbotError), session_directory(place.directory(), ENDPOINT):
        pytest.fail("a file is no directory")


def test_links_are_not_sessions(place: Place) -> None:
    left_behind(place, "real")
    os.symlink(place.directory("real"), place.directory("link"))
    assert [found.session for found in sessions(place.environ)] == ["real"]


@given(st.one_of(st.binary(max_size=60), st.sampled_from([b"[1]", b"1", b'{"kept": 1, "endpoint": []}', b"[" * 9999])))
def test_an_invalid_record_is_refused_by_name_and_not_changed(data: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as base:
        place = Place(base)
        left_behind(place, SESSION)
        with open(os.path.join(place.directory(), RECORD), "wb") as file:
            file.write(data)
        (found,) = sessions(place.environ)
        assert found == FoundSession(SESSION, "", None, live=False)
        for hold in (session_directory(place.directory(), ENDPOINT), left_session(place.directory())):
            with pytest.raises(SessionRecordUnknown) as caught, hold:
                pytest.fail("it was taken for a record")
            assert caught.value.path == os.path.join(place.directory(), RECORD)
        with open(os.path.join(place.directory(), RECORD), "rb") as file:
            assert file.read() == data


# --- the list -------------------------------------------------------------------------------------


def test_the_list_is_sorted_by_name_and_skips_other_files(place: Place) -> None:
    assert sessions(place.environ) == []
    left_behind(place, "b", "e", "stopped")
    left_behind(place, "a", "e")
    os.makedirs(place.directory(".engine"))
    os.makedirs(place.directory("no-lock"))
    with session_directory(place.directory("c"), ENDPOINT):
        assert sessions(place.environ) == [
            FoundSession("a", "e", "orphaned", live=False),
            FoundSession("b", "e", "stopped", live=False),
            FoundSession("c", ENDPOINT, "claimed", live=True),
        ]


def test_a_runtime_directory_of_another_user_is_not_read(place: Place, give_away: GiveAway) -> None:
    path = place.directory()
    os.makedirs(path)
    with open(os.path.join(path, LOCK), "w", encoding="utf-8"):
        pass
    os.mkfifo(os.path.join(path, RECORD))  # a process that opened it would wait for ever
    give_away(place.runtime)
    assert sessions(place.environ) == []


def test_a_removal_of_any_depth_is_finished_by_the_next_podbot(place: Place) -> None:
    for name in (SESSION, f"{GONE}x"):
        path = place.directory(name)
        os.makedirs(path, 0o700)
        nest(path)
    remove_directory(place.directory())
    sweep(place.environ)
    assert os.listdir(place.runtime) == []


def test_removing_a_removed_session_is_no_error(place: Place) -> None:
    remove_directory(place.directory())


# --- at once --------------------------------------------------------------------------------------


# A process of its own, and no fork of this one, which may have threads. It takes the name when it has read a line.
HOLD = f"""
import sys
from podbot.errors import SessionExists
from podbot.session.directory import session_directory
print("ready", flush=True)
sys.stdin.readline()
try:
    with session_directory(sys.argv[1], {ENDPOINT!r}):
        print("held", flush=True)
        sys.stdin.read()
except SessionExists:
    print("refused", flush=True)
"""


@contextlib.contextmanager
def holder(place: Place) -> Iterator[subprocess.Popen[str]]:
    """A process that is about to take the name."""
    words = [sys.executable, "-c", HOLD, place.directory()]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert said(process) == "ready"
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout
    return process.stdout.readline().strip()


def takes(process: subprocess.Popen[str]) -> None:
    print(file=process.stdin, flush=True)


def test_of_two_processes_one_gets_the_name(place: Place) -> None:
    with holder(place) as one, holder(place) as other:
        takes(one)
        takes(other)
        assert sorted([said(one), said(other)]) == ["held", "refused"]
        for process in (one, other):
            process.communicate(timeout=HANG)
            assert process.returncode == 0


def test_the_lock_dies_with_its_process(place: Place) -> None:
    with holder(place) as process:
        takes(process)
        assert said(process) == "held"
        assert is_live(place.directory())
        process.kill()
        process.wait()
    assert sessions(place.environ) == [FoundSession(SESSION, ENDPOINT, "orphaned", live=False)]


def looking(path: str) -> int:
    """A descriptor with the lock, as `podbot ps` has it during its check."""
    descriptor = os.open(os.path.join(path, LOCK), os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def test_two_simultaneous_checks_do_not_mistake_each_other_for_a_session(place: Place) -> None:
    left_behind(place, SESSION)
    other = looking(place.directory())
    assert not is_live(place.directory())
    os.close(other)


def test_a_check_does_not_prevent_a_session_from_starting(place: Place) -> None:
    left_behind(place, SESSION)
    others = [looking(place.directory())]
    with session_directory(place.directory(), ENDPOINT, sleep=lambda _seconds: os.close(others.pop())):
        assert is_live(place.directory())
    assert others == []


def test_one_name_over_and_over_from_two_threads(place: Place) -> None:
    """Taking and removing the same directory at once: never an error but SessionExists, never two holders."""
    holders, most, failures = [0], [0], []
    lock = threading.Lock()

    def work() -> None:
        for _ in range(100):
            try:
                with session_directory(place.directory(), ENDPOINT):
                    with lock:
                        holders[0] += 1
                        most[0] = max(most[0], holders[0])
                    with lock:
                        holders[0] -= 1
            except SessionExists:
                pass
            except BaseException as exc:  # noqa: BLE001 - shown by the assertion
                failures.append(exc)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert most == [1]


def test_a_runtime_directory_whose_parent_others_can_write_is_refused(tmp_path: os.PathLike[str]) -> None:
    parent = os.path.join(os.fspath(tmp_path), "run")
    os.makedirs(parent)
    os.chmod(parent, 0o777)
    with pytest.raises(UnsafeDirectory), session_directory(os.path.join(parent, "podbot", "s"), "unix:///e"):
        pytest.fail("it was trusted")
    with pytest.raises(UnsafeDirectory):
        ensure_service({"XDG_RUNTIME_DIR": parent, "PATH": ""})
    assert os.listdir(parent) == []


# --- flags ----------------------------------------------------------------------------------------


@pytest.fixture
def flag(place: Place) -> Iterator[Flag]:
    """The flag of a session, with another descriptor of it, and the seconds that podbot has slept."""
    left_behind(place, SESSION)
    other = os.open(os.path.join(place.directory(), STOPPING), os.O_RDWR | os.O_CREAT, 0o600)
    yield Flag(place.directory(), other)
    os.close(other)


@dataclass
class Flag:
    path: str
    other: int
    released_after: int = 0  # sleeps
    sleeps: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        if len(self.sleeps) == self.released_after:
            fcntl.flock(self.other, fcntl.LOCK_UN)


def test_a_flag_is_set_while_another_process_checks_it(flag: Flag) -> None:
    """`is_live` holds the lock for a moment; before, the flag was then not set for the whole block."""
    fcntl.flock(flag.other, fcntl.LOCK_SH)
    flag.released_after = 2
    with flagged(flag.path, STOPPING, sleep=flag.sleep):
        assert is_live(flag.path, STOPPING)
    assert flag.sleeps == [0.01] * 2
    assert not is_live(flag.path, STOPPING)


def test_a_flag_that_another_process_has_raised_is_not_waited_for(flag: Flag) -> None:
    fcntl.flock(flag.other, fcntl.LOCK_EX)
    with flagged(flag.path, STOPPING, sleep=flag.sleep) as lock:
        assert (lock >= 0, is_live(flag.path, STOPPING)) == (True, True)
    assert flag.sleeps == []


def test_the_block_runs_although_the_flag_cannot_be_raised(flag: Flag) -> None:
    fcntl.flock(flag.other, fcntl.LOCK_SH)
    with flagged(flag.path, STOPPING, sleep=flag.sleep):
        assert len(flag.sleeps) == 7
