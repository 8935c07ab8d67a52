"""The token file is private, and complete for every reader, whatever happens to its writer."""

from __future__ import annotations

import multiprocessing
import os
import random
import stat
import threading
import time
from collections.abc import Iterator
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podbot.errors import DiskFull, PathError, UnsafeDirectory
from podbot.github.token_file import NAME, TokenFile
from tests.faults import STRANGER, GiveAway, full_disk

FORK = multiprocessing.get_context("fork")  # a fresh interpreter takes longer than everything else
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


def _read_on(path: str, stop: Synchronized[int], bad: Synchronized[int], seen: Synchronized[int]) -> None:
    while not stop.value:
        with open(path, "rb") as file:
            found = file.read()
        seen.value += 1
        if not whole(found):
            bad.value += 1


@pytest.fixture
def readers(file: TokenFile) -> Iterator[tuple[Synchronized[int], Synchronized[int]]]:
    """Two processes that read all the time: (how often they read no whole token, how often they read)."""
    file.write(token_of(0))
    stop, bad, seen = (FORK.Value("q", 0) for _ in range(3))
    children = [FORK.Process(target=_read_on, args=(file.path, stop, bad, seen)) for _ in range(2)]
    for child in children:
        child.start()
    yield bad, seen
    stop.value = 1
    for child in children:
        child.join(10)
        assert child.exitcode == 0, "a reader found no file"


def test_readers_in_other_processes_see_whole_tokens_only(
    file: TokenFile, readers: tuple[Synchronized[int], Synchronized[int]]
) -> None:
    bad, seen = readers
    for number in range(500):
        file.write(token_of(number))
    while seen.value < 100:
        time.sleep(0.01)
    assert bad.value == 0


@settings(max_examples=25)
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


def _write_on(directory: str, ready: Synchronized[int]) -> None:
    file = TokenFile(directory)
    ready.value = 1
    number = 0
    while True:
        number += 1
        file.write(token_of(number))


def test_a_writer_that_is_killed_at_any_moment(
    file: TokenFile, readers: tuple[Synchronized[int], Synchronized[int]]
) -> None:
    bad, _ = readers
    chance = random.Random(4)
    left = 0
    for _ in range(30):
        ready = FORK.Value("q", 0)
        child = FORK.Process(target=_write_on, args=(file.directory, ready))
        child.start()
        while not ready.value:
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.02))
        child.kill()
        child.join()
        left += len(os.listdir(file.directory)) - 1
        found = Path(file.path).read_bytes()
        assert whole(found)
        file.sweep()
        assert os.listdir(file.directory) == [NAME], "the next writer sweeps"
    assert bad.value == 0
    assert left, "no writer was hit in mid-write: this proves nothing"
