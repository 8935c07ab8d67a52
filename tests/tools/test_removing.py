"""Removing by a real files worker."""

from __future__ import annotations

import os
from pathlib import Path

from podbot.guest.local import LocalGuest
from podbot.tools.files import Files
from podbot.tools.results import DeleteEntry
from tests.tools.workers import patient, refused


def test_what_is_removed(files: Files, root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "file").touch()
    (root / "a" / "out").symlink_to(outside)
    (root / "link").symlink_to(outside)
    os.mkfifo(root / "a" / "b" / "fifo")
    assert files.rm(("link",)) == DeleteEntry("link", "link", 1)
    assert files.rm(("a",)) == DeleteEntry("a", "directory", 5)
    assert os.listdir(root) == []
    assert (outside / "kept").read_text() == "kept"
    refused(lambda: files.rm(()), "is_root")
    refused(lambda: files.rm(("a",)), "missing")
    refused(lambda: files.rm(("a", "b")), "missing")


def test_a_tree_deeper_than_there_are_descriptors_is_removed(guest: LocalGuest, root: Path) -> None:
    top = os.open(root, os.O_RDONLY)
    fd = os.dup(top)
    for number in range(3000):
        os.mkdir("d", dir_fd=fd)
        if not number % 500:
            os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    with patient(guest, root) as files:
        assert files.rm(("d",)).entries == 3005
    assert os.listdir(root) == ["file"]
    os.close(top)
