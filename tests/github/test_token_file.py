"""The token file is private, and complete for every reader, whatever happens to its writer."""

from __future__ import annotations

import inspect
import os
import random
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podbot.errors import DiskFull, PathError, UnsafeDirectory
from podbot.github.token_file import NAME, TokenFile
from tests.examples import examples
from tests.faults import STRANGER, GiveAway, full_disk
from tests.waiting import HANG, attempts, pause

tokens = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=600)


@pytest.fixture
def file(tmp_path: Path) -> TokenFile:
    made = TokenFile(str(tmp_path / "secrets"))
    made.prepare()
    return made


def whole(token: bytes) -> bool:
    """A token of these tests: its length, a dash, one letter that many times."""
    length, dash, letters = token.partition(b"-")
    return dash == b"-" and length.isdigit() and len(letters) == int(length) > 0 and len(set(letters)) == 1


def token_of(number: int) -> str:
    length = 40 + number * 37 % 4000
    return f"{length}-{chr(ord('a') + number % 26) * length}"


# --- what is written ------------------------------------------------------------------------------


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077, 0o777])
def test_modes_do_not_depend_on_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        file = TokenFile(str(tmp_path / "secrets"))
        file.prepare()
        file.write("ghs_one")
        file.write("ghs_two")
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(file.directory).st_mode) == 0o700
    assert stat.S_IMODE(os.stat(file.path).st_mode) == 0o600
    assert os.listdir(file.directory) == [NAME]
    assert file.read() == "ghs_two"


@given(tokens)
def test_every_token_is_the_same_after_writing_and_reading(
    tmp_path_factory: pytest.TempPathFactory, token: str
) -> None:
    file = TokenFile(str(tmp_path_factory.mktemp("t") / "secrets"))
    file.prepare()
    file.write(token)
    assert file.read() == token
    assert file.exists()


@pytest.mark.parametrize("token", ["", "a b", "a\n", "\n", "a\0", "é", "\x7f", "x" * 16_385])
def test_an_invalid_token_is_refused_without_being_quoted(file: TokenFile, token: str) -> None:
    file.write("ghs_before")
    with pytest.raises(ValueError, match=r"^not a token$"):
        file.write(token)
    assert file.read() == "ghs_before"


def test_it_is_on_the_disk_when_write_returns(file: TokenFile, monkeypatch: pytest.MonkeyPatch) -> None:
    """The data before the rename, the directory after it: the order in which a crash cannot lose a token."""
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def noted_fsync(descriptor: int) -> None:
        kind = "directory" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file"
        steps.append(f"{kind}:{sorted(n == NAME for n in os.listdir(file.directory))}")
        fsync(descriptor)

    def noted_replace(source: str, target: str, **directories: int) -> None:
        steps.append("rename")
        replace(source, target, **directories)

    # What a power cut would leave cannot be seen here; the order of the calls can.
    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(os, "replace", noted_replace)
    file.write("ghs_one")
    assert steps == ["file:[False]", "rename", "directory:[True]"]


# --- hostile or broken places ---------------------------------------------------------------------


def test_a_link_for_the_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "real" / NAME).write_text("planted")
    (tmp_path / "secrets").symlink_to(tmp_path / "real")
    file = TokenFile(str(tmp_path / "secrets"))
    for operation in (file.prepare, lambda: file.write("ghs_x"), file.remove):
        with pytest.raises(UnsafeDirectory, match="link"):
            operation()
    assert file.read() is None
    file.sweep()
    assert (tmp_path / "real" / NAME).read_text() == "planted"


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o777, 0o500])
def test_an_open_directory_is_refused(file: TokenFile, mode: int) -> None:
    file.write("ghs_before")
    os.chmod(file.directory, mode)
    with pytest.raises(UnsafeDirectory, match="open to other users"):
        file.write("ghs_x")
    assert file.read() is None
    os.chmod(file.directory, 0o700)
    assert file.read() == "ghs_before"


def test_a_directory_of_another_user_is_refused(file: TokenFile, give_away: GiveAway) -> None:
    give_away(file.directory)
    for operation in (file.prepare, lambda: file.write("ghs_x")):
        with pytest.raises(UnsafeDirectory, match=f"belongs to user {STRANGER}"):
            operation()


def test_a_removed_directory_is_not_made_again(file: TokenFile) -> None:
    os.rmdir(file.directory)
    with pytest.raises(PathError, match="No such file"):
        file.write("ghs_x")
    assert not os.path.exists(file.directory)
    assert file.read() is None
    file.sweep()
    file.remove()


def test_other_files_at_the_tokens_path(file: TokenFile, tmp_path: Path) -> None:
    """A privileged sandbox can remount its mounts and plant files there."""
    (tmp_path / "target").write_text("mine")
    os.symlink(tmp_path / "target", file.path)
    assert file.read() is None
    assert not file.exists()
    file.write("ghs_one")
    assert (tmp_path / "target").read_text() == "mine"
    assert file.read() == "ghs_one"
    os.unlink(file.path)
    os.mkfifo(file.path)
    assert file.read() is None, "and it does not wait for a writer"
    file.write("ghs_two")
    assert file.read() == "ghs_two"
    os.unlink(file.path)
    os.mkdir(file.path)
    with pytest.raises(PathError):
        file.write("ghs_three")
    assert os.listdir(file.directory) == [NAME]


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"x" * 16_385])
def test_a_file_that_podbot_cannot_have_written_is_not_read(file: TokenFile, data: bytes) -> None:
    Path(file.path).write_bytes(data)
    assert file.read() is None


def test_a_full_disk_keeps_the_old_token(file: TokenFile) -> None:
    file.write("ghs_old")
    with full_disk(room=4), pytest.raises(DiskFull) as caught:  # the last block takes a part, then nothing more fits
        file.write("ghs_secret")
    assert "ghs_secret" not in f"{caught.value!r} {caught.value} {caught.value.fields}"
    assert file.read() == "ghs_old"
    assert os.listdir(file.directory) == [NAME]


def test_remove_also_removes_temporary_files(file: TokenFile) -> None:
    file.write("ghs_old")
    Path(file.directory, f".{NAME}.0123456789abcdef.tmp").write_text("ghs_half")
    Path(file.directory, "other").touch()
    file.remove()
    assert os.listdir(file.directory) == ["other"]
    file.remove()


# --- readers beside the writer --------------------------------------------------------------------


READING = f"""
import select, sys

{inspect.getsource(whole)}

def read():
    with open(sys.argv[1], "rb") as file:
        return whole(file.read())

bad = sum(not read() for _ in range(50))
print("reading", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    bad += not read()
print(bad)
"""


class Readers:
    """Processes that read the file all the time, until they are asked what they read."""

    def __init__(self, path: str) -> None:
        command = [sys.executable, "-c", READING, path]
        self.processes = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
        ]

    def reading(self) -> bool:
        """Waits until each has read often."""
        return all(process.stdout and process.stdout.readline() == "reading\n" for process in self.processes)

    def bad(self) -> int:
        """How often they read no whole token; ends them."""
        said = [process.communicate(timeout=HANG)[0] for process in self.processes]
        assert [process.returncode for process in self.processes] == [0, 0], "a reader found no file"
        return sum(map(int, said))


@pytest.fixture
def readers(file: TokenFile) -> Iterator[Readers]:
    file.write(token_of(0))
    made = Readers(file.path)
    yield made
    for process in made.processes:
        with process:  # closes its pipes
            process.kill()


def test_readers_in_other_processes_see_whole_tokens_only(file: TokenFile, readers: Readers) -> None:
    assert readers.reading()
    for number in range(500):
        file.write(token_of(number))
    assert readers.bad() == 0


@settings(max_examples=examples(25))
@given(st.lists(tokens, min_size=1, max_size=8))
def test_a_reader_sees_the_tokens_in_order(tmp_path_factory: pytest.TempPathFactory, written: list[str]) -> None:
    file = TokenFile(str(tmp_path_factory.mktemp("t") / "secrets"))
    file.prepare()
    file.write(written[0])
    seen: list[str] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            found = file.read()
            assert found is not None
            if not seen or seen[-1] != found:
                seen.append(found)

    thread = threading.Thread(target=read)
    thread.start()
    for token in written[1:]:
        file.write(token)
    done.set()
    thread.join()
    remaining = iter(written)
    assert all(any(token == later for later in remaining) for token in seen), "never back to an older one"


# Forks a writer for each line that it reads. This process may have threads, beside which none is forked.
WRITING = f"""
import itertools, os, sys
from podbot.github.token_file import TokenFile

{inspect.getsource(token_of)}

file = TokenFile(sys.argv[1])
for _ in sys.stdin:
    pid = os.fork()
    if not pid:
        for number in itertools.count(1):
            file.write(token_of(number))
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


def test_a_writer_that_is_killed_at_any_moment(file: TokenFile, readers: Readers) -> None:
    chance = random.Random(4)
    left = killed = 0
    assert readers.reading()
    command = [sys.executable, "-c", WRITING, file.directory]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writers:
        assert writers.stdin
        assert writers.stdout
        # At least once in mid-write. How many kills that takes depends on the machine.
        for _ in attempts("a kill in mid-write"):
            if killed >= 30 and left:
                break
            print(file=writers.stdin, flush=True)
            writer = int(writers.stdout.readline())
            pause(chance.uniform(0, 0.02))
            os.kill(writer, signal.SIGKILL)
            assert int(writers.stdout.readline()) == -signal.SIGKILL
            killed += 1
            left += len(os.listdir(file.directory)) - 1
            found = Path(file.path).read_bytes()
            assert whole(found)
            file.sweep()
            assert os.listdir(file.directory) == [NAME], "the next writer sweeps"
    assert readers.bad() == 0
