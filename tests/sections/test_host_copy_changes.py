"""Copies of what changed after it was planned, or may not be read."""

from __future__ import annotations

import ctypes
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from podbot.errors import ToolValidationError
from podbot.sections.host_copy import copy_into
from tests.faults import open_below, ordinary_user
from tests.sections.host_trees import BINARY, SCRIPT, content, plan


def vanish(file: Path) -> None:
    file.unlink()


def grow(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"m")


def grow_much(file: Path) -> None:
    os.truncate(file, 1 << 40)


def shrink(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def become_empty(file: Path) -> None:
    file.write_bytes(b"")


def become_a_link(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.parents[2] / "secret")


def become_a_link_inside(file: Path) -> None:
    file.rename(file.parent / "other.py")
    file.symlink_to("other.py")


def become_a_fifo(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


def become_a_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()


def become_a_socket(file: Path) -> None:
    file.unlink()
    with socket.socket(socket.AF_UNIX) as bound:
        directory = os.open(file.parent, os.O_PATH)
        bound.bind(f"/proc/self/fd/{directory}/{file.name}")  # the path of a temporary directory may be too long
        os.close(directory)


def the_directory_becomes_a_link(file: Path) -> None:
    file.parent.rename(file.parent.parent / "elsewhere")
    file.parent.symlink_to(file.parents[2] / "beside")


def the_directory_becomes_a_file(file: Path) -> None:
    file.parent.rename(file.parent.parent / "elsewhere")
    file.parent.write_text("file")


def the_root_becomes_a_link(file: Path) -> None:
    root = file.parents[1]
    root.rename(root.parent / "elsewhere")
    root.symlink_to(root.parent / "elsewhere")


def the_root_vanishes(file: Path) -> None:
    file.parents[1].rename(file.parents[2] / "elsewhere")


CHANGES = [
    vanish, grow, grow_much, shrink, become_empty, become_a_link, become_a_link_inside, become_a_fifo,
    become_a_directory, become_a_socket, the_directory_becomes_a_link, the_directory_becomes_a_file,
    the_root_becomes_a_link, the_root_vanishes,
]  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_a_file_that_changes_after_it_was_planned_is_an_error(
    root: Path, workspace: Path, change: Callable[[Path], None]
) -> None:
    made = plan(root)
    change(root / "src" / "a.py")
    with pytest.raises(ToolValidationError) as caught:
        copy_into(made, str(workspace))
    assert caught.value.field == "host_path"
    assert "'src/a.py'" in caught.value.value
    copied = content(workspace)
    assert b"SECRET" not in (copied.get("a.py") or b"")
    assert len(copied.get("a.py") or b"") <= len(BINARY) + 1


def test_new_files_are_not_copied_and_new_bytes_of_the_same_number_are(root: Path, workspace: Path) -> None:
    made = plan(root)
    (root / "src" / "new").write_text("new")
    (root / "src" / "a.py").write_bytes(BINARY[::-1])
    copy_into(made, str(workspace))
    assert content(workspace) == {"a.py": BINARY[::-1], "pkg": None, "pkg/b.sh": SCRIPT}


def test_nothing_outside_is_copied_while_the_directory_is_swapped_with_a_link(root: Path, workspace: Path) -> None:
    (root / "link").symlink_to(root.parent / "beside")
    made = plan(root, include_glob=("a.py",))
    exchange = ctypes.CDLL(None, use_errno=True).renameat2
    names = [os.fsencode(root / name) for name in ("src", "link")]
    over = threading.Event()

    def swap() -> None:
        while not over.is_set():
            exchange(-1, names[0], -1, names[1], 2)  # RENAME_EXCHANGE: each name is always there

    thread = threading.Thread(target=swap)
    thread.start()
    outcomes = set()
    try:
        for number in range(20_000):
            target = workspace / str(number)
            target.mkdir()
            try:
                copy_into(made, str(target))
                outcomes.add("copied")
                assert content(target) == {"a.py": BINARY}
            except ToolValidationError:
                outcomes.add("refused")
                assert content(target) == {}
            if number >= 500 and len(outcomes) == 2:
                break
    finally:
        over.set()
        thread.join()
    assert outcomes == {"copied", "refused"}  # else nothing was swapped


@pytest.mark.parametrize("what", ["src/a.py", "src", "."])
def test_what_may_not_be_read_is_named(open_directory: str, what: str) -> None:
    root, target = Path(open_directory, "root"), Path(open_directory, "target")
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.py").write_bytes(BINARY)
    target.mkdir()
    target.chmod(0o777)
    made = plan(root)
    (root / what).chmod(0)
    try:
        with ordinary_user(), pytest.raises(ToolValidationError, match="Permission denied") as caught:
            copy_into(made, str(target))
    finally:
        (root / what).chmod(0o700)
    assert "'src/a.py'" in caught.value.value


@pytest.mark.parametrize(
    "change",
    [None, vanish, become_a_fifo, the_root_vanishes],
    ids=lambda change: getattr(change, "__name__", "nothing"),
)
def test_no_descriptor_stays_open(root: Path, workspace: Path, change: Callable[[Path], None] | None) -> None:
    made = plan(root)
    if change is not None:
        change(root / "src" / "a.py")
    try:
        copy_into(made, str(workspace))
    except ToolValidationError:
        assert change is not None
    assert open_below(root) + open_below(workspace) == []
