"""The reader of hostile archives."""

from __future__ import annotations

import contextlib
import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.transfer.tar_reader import BLOCK, BadArchive, TarReader, parts
from tests.transfer.archives import FORMATS, archive, directory, member, read, symlink

NAME = st.text(st.characters(blacklist_characters="/\0", blacklist_categories=["Cs"]), min_size=1, max_size=40)
PATHS = st.lists(NAME.filter(lambda name: name not in (".", "..")), min_size=1, max_size=6).map("/".join)


@pytest.mark.parametrize("form", FORMATS)
@given(found=st.dictionaries(PATHS, st.binary(max_size=2000), max_size=4), step=st.integers(1, 1500))
def test_it_reads_what_python_writes(form: str, found: dict[str, bytes], step: int) -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=FORMATS[form]) as made:
        for path, content in list(found.items()):
            info = tarfile.TarInfo(path)
            info.size = len(content)
            try:
                info.tobuf(FORMATS[form])
            except ValueError:  # ustar cannot hold the name
                del found[path]
                continue
            made.addfile(info, io.BytesIO(content))
    entries, ended = read(stream.getvalue(), step)
    assert ended
    assert {b"/".join(entry.path).decode(): content for entry, content in entries} == {
        "/".join(part for part in path.split("/") if part != "."): content for path, content in found.items()
    }


def test_kinds_and_facts() -> None:
    data = archive(
        directory("./d/"),
        member("./d/run", b"x" * 600, mode=0o4755),
        symlink("./d/l", "../x"),
        member("./d/h", kind=tarfile.LNKTYPE, link="./d/run"),
        member("./d/p", kind=tarfile.FIFOTYPE),
        member("./d/c", kind=tarfile.CHRTYPE),
    )
    entries, ended = read(data)
    assert ended
    assert [(entry.kind, entry.path[-1], entry.size) for entry, _ in entries] == [
        ("directory", b"d", 0), ("file", b"run", 600), ("symlink", b"l", 0), ("hardlink", b"h", 0),
        ("other", b"p", 0), ("other", b"c", 0),
    ]  # fmt: skip
    assert (entries[1][0].mode, entries[1][0].mtime) == (0o4755, 1_700_000_000)
    assert entries[2][0].link == b"../x"
    assert entries[3][0].linked == (b"d", b"run")


@pytest.mark.parametrize("name", ["/etc/passwd", "../x", "a/../../x", "a/..", "x/" * 300 + "y"])
def test_a_path_outside_is_refused(name: str) -> None:
    info = tarfile.TarInfo("x")
    data = bytearray(archive(member(name)) if len(name) > 90 else archive(member("x")))
    if len(name) <= 90:
        block = bytearray(info.tobuf(tarfile.USTAR_FORMAT))
        block[:100] = name.encode().ljust(100, b"\0")
        block[148:156] = b" " * 8
        block[148:156] = b"%06o\0 " % sum(block)
        data[:BLOCK] = block
    with pytest.raises(BadArchive):
        read(bytes(data))


def test_a_pax_extension_can_name_a_path_outside() -> None:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as made:
        info = tarfile.TarInfo("x")
        info.pax_headers = {"path": "../../home/ada/.bashrc"}
        made.addfile(info)
    with pytest.raises(BadArchive, match="leads out"):
        read(stream.getvalue())


@pytest.mark.parametrize("kind", [b"L", b"K", b"x", b"g"])
def test_a_huge_extension_is_refused_before_it_is_read(kind: bytes) -> None:
    info = tarfile.TarInfo("x")
    info.type, info.size = kind, 8 << 30
    with pytest.raises(BadArchive, match="too long"):
        list(TarReader().feed(info.tobuf(tarfile.GNU_FORMAT)))


def test_sparse_files_and_unknown_kinds_are_refused() -> None:
    for kind in (b"S", b"V", b"?"):
        with pytest.raises(BadArchive):
            read(archive(member("x", kind=kind)))


def test_a_wrong_check_sum_is_refused() -> None:
    data = bytearray(archive(member("x")))
    data[0] = ord("y")
    with pytest.raises(BadArchive, match="check sum"):
        read(bytes(data))


def test_a_cut_archive_has_not_ended() -> None:
    data = archive(member("x", b"y" * 700))
    assert read(data)[1]
    for length in (0, 100, 512, 900, 1200, 1500):
        assert not read(data[:length])[1]


def test_what_follows_the_end_is_ignored() -> None:
    entries, ended = read(archive(member("x")) + member("y"))
    assert ended
    assert [entry.path for entry, _ in entries] == [(b"x",)]


@given(st.binary(max_size=2048), st.integers(1, 600))
def test_any_bytes_are_read_or_refused(data: bytes, step: int) -> None:
    with contextlib.suppress(BadArchive):
        read(data, step)


@given(st.binary(max_size=600), st.integers(0, 1500), st.integers(0, 255))
def test_a_changed_byte_is_read_or_refused_and_no_path_leads_out(content: bytes, at: int, byte: int) -> None:
    data = bytearray(archive(directory("a"), member("a/" + "n" * 120, content)))
    data[at % len(data)] = byte
    try:
        entries, _ = read(bytes(data))
    except BadArchive:
        return
    assert not any(part in (b"", b".", b"..") or b"/" in part for entry, _ in entries for part in entry.path)


@given(st.binary(max_size=60))
def test_parts_never_lead_out(name: bytes) -> None:
    try:
        found = parts(name)
    except BadArchive:
        return
    assert not name.startswith(b"/")
    assert not any(part in (b"", b".", b"..") or b"/" in part or b"\0" in part for part in found)
