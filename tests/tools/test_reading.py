"""Reading and listing by a real files worker."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from podbot.tools.files import Files
from podbot.tools.results import ReadFileResult
from tests.tools.workers import refused


def test_a_listing_is_sorted_and_says_what_each_entry_is(files: Files, root: Path) -> None:
    (root / "b").mkdir()
    (root / "a.txt").write_text("text")
    os.utime(root / "a.txt", ns=(0, 1_700_000_000_123_456_789))
    (root / "c").symlink_to("/etc/passwd")
    os.mkfifo(root / "d")
    listing = files.ls()
    assert [(entry.path, entry.kind, entry.size_bytes) for entry in listing.entries] == [
        ("a.txt", "file", 4), ("b", "directory", 0), ("c", "link", 0), ("d", "other", 0),
    ]  # fmt: skip
    assert not listing.truncated
    assert listing.entries[0].version == 1_700_000_000_123_456
    assert listing.entries[0].updated_at == datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC)


def test_paths_of_a_listing_begin_at_the_root(files: Files, root: Path) -> None:
    (root / "a" / "b").mkdir(parents=True)
    (root / "a" / "b" / "c").touch()
    assert [entry.path for entry in files.ls(("a", "b")).entries] == ["a/b/c"]
    assert files.stat(("a", "b")).path == "a/b"
    assert (files.stat(()).path, files.stat(()).kind) == ("", "directory")


def test_a_listing_ends_after_2000_entries(files: Files, root: Path) -> None:
    for number in range(2000):
        (root / f"{number:04}").touch()
    assert not files.ls().truncated
    (root / "last").touch()
    listing = files.ls()
    assert (len(listing.entries), listing.truncated) == (2000, True)
    assert listing.entries[-1].path == "1999"


def test_what_is_no_directory_cannot_be_listed(files: Files, root: Path) -> None:
    (root / "file").touch()
    (root / "link").symlink_to(root)
    refused(lambda: files.ls(("file",)), "not_a_directory")
    refused(lambda: files.ls(("link",)), "link")
    refused(lambda: files.ls(("none",)), "missing")
    refusal = refused(lambda: files.ls(("none", "below")), "missing")
    assert str(refusal) == "cannot ls none/below: none does not exist (missing)"


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        (b"\n", [""]),
        (b"a\r\nb\x0c\xe2\x80\xa8c\x00d", ["a\r", "b\x0c\u2028c\0d"]),
    ],
)
def test_only_a_newline_ends_a_line(files: Files, root: Path, data: bytes, lines: list[str]) -> None:
    (root / "file").write_bytes(data)
    assert files.read(("file",)) == ReadFileResult("file", "\n".join(lines), 0, len(lines), len(lines))


def test_a_part_of_a_file_is_read_by_lines(files: Files, root: Path) -> None:
    (root / "file").write_text("".join(f"{number}\n" for number in range(5000)))
    whole = files.read(("file",), limit=9999)
    assert (whole.offset, whole.limit, whole.total_lines) == (0, 2000, 5000)
    assert whole.content.split("\n") == [str(number) for number in range(2000)]
    part = files.read(("file",), offset=4998, limit=2000)
    assert (part.content, part.offset, part.limit, part.total_lines) == ("4998\n4999", 4998, 2, 5000)
    assert files.read(("file",), offset=1, limit=1).content == "1"
    behind = files.read(("file",), offset=5000)
    assert (behind.content, behind.limit, behind.total_lines) == ("", 0, 5000)


def test_lines_that_end_at_the_edge_of_a_piece(files: Files, root: Path) -> None:
    line = "é" * ((1 << 17) - 1) + "x\n"  # the second byte of a character lies in the next piece of 256 KiB
    (root / "file").write_text(line * 4)
    for number in range(4):
        assert files.read(("file",), offset=number, limit=1).content == line[:-1]
    assert files.read(("file",), offset=3).total_lines == 4


def test_reading_refuses_numbers_that_make_no_sense(files: Files) -> None:
    for words in ({"offset": -1}, {"limit": 0}):
        with pytest.raises(ValueError, match="at least"):
            files.read(("file",), **words)


@pytest.mark.parametrize("data", [b"\xff", b"text\n\xe2\x82", b"x" * (1 << 18) + b"\x80", b"\xed\xa0\x80"])
def test_what_is_not_utf8_is_not_read_and_not_edited(files: Files, root: Path, data: bytes) -> None:
    (root / "file").write_bytes(data)
    refused(lambda: files.read(("file",)), "not_text")
    refused(lambda: files.edit(("file",), "x", "y"), "not_text")
    assert (root / "file").read_bytes() == data


def test_a_text_full_of_what_json_quotes_is_read(files: Files, root: Path) -> None:
    text = '[{"\\",}],' * (90 << 10)
    (root / "file").write_text(text)
    assert files.read(("file",)).content == text


def test_an_answer_carries_a_mebibyte_of_lines(files: Files, root: Path) -> None:
    (root / "file").write_text("\x01" * (1 << 20))
    assert len(files.read(("file",)).content) == 1 << 20
    (root / "file").write_text("\x01" * ((1 << 20) + 1))
    assert "1048576 bytes" in str(refused(lambda: files.read(("file",)), "too_large"))


def test_a_text_in_place_of_a_path_is_refused(files: Files) -> None:
    with pytest.raises(TypeError) as caught:
        files.read("src/a.py")
    assert str(caught.value) == ("read(): path is a list of names, not the text 'src/a.py'. Write ('src', 'a.py').")
