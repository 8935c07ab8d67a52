from __future__ import annotations

import contextlib
import io
import os
import tarfile
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.integrations.archives import children, packed, replace_file, unpack


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> io.BytesIO:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as opened:
        for member, data in members:
            member.size = len(data)
            opened.addfile(member, io.BytesIO(data))
    made.seek(0)
    return made


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.linkname, made.mode = kind, link, mode
    return made


def test_files_and_directories_go_there_and_back(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "a" / "empty").mkdir(parents=True)
    (source / "a" / "run.sh").write_text("#!/bin/sh")
    (source / "a" / "run.sh").chmod(0o755)
    (source / "link").symlink_to("a/run.sh")
    data = packed(children(str(source)))
    with tarfile.open(fileobj=io.BytesIO(data)) as opened:
        assert {found.uid for found in opened} == {0}
        assert opened.getmember("link").issym()
    unpack(io.BytesIO(data), str(tmp_path / "new" / "target"))
    target = tmp_path / "new" / "target"
    assert (target / "a" / "run.sh").read_text() == "#!/bin/sh"
    assert os.access(target / "a" / "run.sh", os.X_OK)
    assert (target / "a" / "empty").is_dir()
    assert not (target / "link").is_symlink()


HOSTILE = [
    member("../out"),
    member("/tmp/podbot-harness-out"),
    member("a/../../out"),
]


@pytest.mark.parametrize("found", HOSTILE, ids=lambda found: found.name)
def test_nothing_is_written_outside(tmp_path: Path, found: tarfile.TarInfo) -> None:
    target = tmp_path / "in" / "target"
    with contextlib.suppress(tarfile.TarError):
        unpack(archive((found, b"x")), str(target))
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "in" / "out").exists()
    assert not Path("/tmp/podbot-harness-out").exists()


def test_links_devices_and_special_bits_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    unpack(
        archive(
            (member("link", tarfile.SYMTYPE, "../out"), b""),
            (member("link/file"), b"x"),
            (member("hard", tarfile.LNKTYPE, "/etc/passwd"), b""),
            (member("pipe", tarfile.FIFOTYPE), b""),
            (member("device", tarfile.CHRTYPE), b""),
            (member("root", mode=0o6755), b"x"),
        ),
        str(tmp_path / "in"),
    )
    assert os.listdir(tmp_path / "out") == []
    assert sorted(os.listdir(tmp_path / "in")) == ["link", "root"]
    assert (tmp_path / "in" / "link").is_dir()
    assert (tmp_path / "in" / "root").stat().st_mode & 0o7000 == 0


def test_a_sparse_file_does_not_fill_the_disk(tmp_path: Path) -> None:
    sparse = member("huge")
    sparse.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(1 << 50)}
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w", format=tarfile.PAX_FORMAT) as opened:
        data = b"0\n".ljust(512, b"\0")  # a map without data: all of it is one hole
        sparse.size = len(data)
        opened.addfile(sparse, io.BytesIO(data))
    made.seek(0)
    unpack(made, str(tmp_path / "in"))
    assert os.listdir(tmp_path / "in") == []


NAMES = st.text(st.sampled_from("ab./\\ \n"), min_size=1, max_size=12)
KINDS = st.sampled_from([tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE])


@given(st.lists(st.tuples(NAMES, KINDS, NAMES), max_size=6))
def test_any_archive_stays_inside(members: list[tuple[str, bytes, str]]) -> None:
    with tempfile.TemporaryDirectory() as made:
        place = Path(made)
        (place / "in").mkdir()
        (place / "a").write_text("outside")
        with contextlib.suppress(tarfile.TarError, OSError, ValueError):
            unpack(archive(*((member(name, kind, link), b"") for name, kind, link in members)), str(place / "in"))
        assert sorted(os.listdir(place)) == ["a", "in"]
        assert (place / "a").read_text() == "outside"


def test_a_file_replaces_a_link_and_does_not_follow_it(tmp_path: Path) -> None:
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    replace_file(str(tmp_path / "link"), io.BytesIO(b"new"))
    assert (tmp_path / "target").read_text() == "old"
    assert (tmp_path / "link").read_bytes() == b"new"
    assert not (tmp_path / "link").is_symlink()
    replace_file(str(tmp_path / "made" / "file"), io.BytesIO(b"x"))
    assert sorted(os.listdir(tmp_path / "made")) == ["file"]


def test_a_file_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_file(str(tmp_path / "directory"), io.BytesIO(b"x"))
    assert os.listdir(tmp_path) == ["directory"]
