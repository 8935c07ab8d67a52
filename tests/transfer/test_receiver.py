"""Writing a hostile archive: nothing outside of one directory."""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.transfer.limits import CopyLimits, CopyReport, TooMuch
from podbot.transfer.receiver import Receiver, stays_inside
from podbot.transfer.tar_reader import BadArchive, Entry, TarReader
from tests.transfer.archives import archive, directory, member, symlink

LIMITS = CopyLimits()


@pytest.fixture
def top(tmp_path: Path) -> Path:
    found = tmp_path / "top"
    found.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "file").write_text("mine")
    return found


@pytest.fixture(autouse=True)
def _nothing_outside(tmp_path: Path) -> Iterator[None]:
    yield
    if (tmp_path / "outside").exists():
        assert sorted(path.name for path in (tmp_path / "outside").iterdir()) == ["file"]
        assert (tmp_path / "outside" / "file").read_text() == "mine"


def received(
    top: Path, data: bytes, *, source: str = "", name: str = "", limits: CopyLimits = LIMITS, umask: int = 0o022
) -> CopyReport:
    report = CopyReport()
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    try:
        reader = TarReader()
        with Receiver(
            fd, source=source.encode(), name=name.encode(), umask=umask, report=report, limits=limits
        ) as receiver:
            for item in reader.feed(data):
                receiver.take(item)
            receiver.finish()
    finally:
        os.close(fd)
        assert not list(top.rglob(".podbot-cp-*")), "no temporary file is left"
    return report


def reasons(report: CopyReport) -> dict[str, str]:
    return {left.path: left.reason for left in report.left_out}


def test_a_tree_under_a_name(top: Path) -> None:
    data = archive(directory("./src"), member("./src/a", b"A", mode=0o4777), directory("./src/d"), member("./src/d/b"))
    report = received(top, data, source="src", name="copy")
    assert (top / "copy" / "a").read_bytes() == b"A"
    assert (top / "copy" / "a").stat().st_mode & 0o7777 == 0o755
    assert (top / "copy" / "a").stat().st_mtime == 1_700_000_000
    assert (top / "copy" / "d" / "b").stat().st_mode & 0o7777 == 0o644
    assert (report.files, report.size, report.left_out) == (2, 1, [])


def test_the_content_of_a_directory(top: Path) -> None:
    (top / "a").write_text("before")
    (top / "other").write_text("stays")
    received(top, archive(directory("./"), member("./a", b"A")))
    assert ((top / "a").read_text(), (top / "other").read_text()) == ("A", "stays")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_a_private_tree_stays_private(top: Path) -> None:
    (top / "here").mkdir(mode=0o711)
    made = [("private", 0o700), ("private/in", 0o755), ("open", 0o2777), ("here", 0o777), ("closed", 0)]
    data = archive(*(member(name, kind=tarfile.DIRTYPE, mode=mode) for name, mode in made), member("none/x"))
    received(top, data)
    found = {name: mode(top / name) & 0o777 for name in [*(name for name, _ in made), "none"]}
    assert found == {
        "private": 0o700,
        "private/in": 0o755,
        "open": 0o755,
        "here": 0o711,
        "closed": 0o700,
        "none": 0o700,
    }


def test_the_umask_counts(top: Path) -> None:
    data = archive(directory("d"), member("d/a", b"A", mode=0o755), member("d/b", kind=tarfile.LNKTYPE, link="d/a"))
    received(top, data, umask=0o277)
    assert [mode(top / name) for name in ("d", "d/a", "d/b")] == [0o700, 0o700, 0o700]


def test_directories_are_private_until_the_copy_is_complete(top: Path) -> None:
    fd = os.open(top, os.O_RDONLY)
    with Receiver(fd, source=b"", name=b"", umask=0, report=CopyReport()) as receiver:
        for item in TarReader().feed(archive(directory("d"), directory("e"))):
            receiver.take(item)
        assert mode(top / "d") == 0o700
        (top / "e").rmdir()
        (top / "e").symlink_to(top.parent / "outside")
        before = mode(top.parent / "outside")
        receiver.finish()
    os.close(fd)
    assert mode(top / "d") == 0o755
    assert mode(top.parent / "outside") == before


def test_directories_on_the_way_are_limited_too(top: Path) -> None:
    with pytest.raises(TooMuch, match="3 files"):
        received(top, archive(member("a/b/c/d/x", b"x")), limits=CopyLimits(entries=3))


def test_an_entry_that_was_not_asked_for_ends_the_copy(top: Path) -> None:
    with pytest.raises(BadArchive, match="not asked for"):
        received(top, archive(member("./src", b"x"), member("./other", b"x")), source="src", name="copy")
    assert sorted(os.listdir(top)) == ["copy"]


def test_a_link_that_may_lead_out_is_left_out(top: Path) -> None:
    data = archive(
        directory("s"), directory("s/d"),
        symlink("s/abs", "/etc/passwd"), symlink("s/up", "../x"), symlink("s/d/ok", "../file"),
        symlink("s/d/far", "../../x"), symlink("s/d/behind", "a/../../.."), symlink("s/ok", "d/ok"),
    )  # fmt: skip
    report = received(top, data, source="s", name="s")
    assert sorted(reasons(report)) == ["s/abs", "s/d/behind", "s/d/far", "s/up"]
    assert os.readlink(top / "s" / "d" / "ok") == "../file"
    assert os.readlink(top / "s" / "ok") == "d/ok"


def test_a_link_alone_is_left_out(top: Path) -> None:
    assert list(reasons(received(top, archive(symlink("l", "file")), source="l", name="l"))) == ["l"]


@pytest.mark.parametrize("place", ["link/x", "dir/link/x"])
def test_a_directory_that_is_a_link_is_not_entered(top: Path, place: str) -> None:
    """The agent made the link before, or makes it while the copy is written."""
    (top / "dir").mkdir()
    (top / "link").symlink_to(top.parent / "outside")
    (top / "dir" / "link").symlink_to(top.parent / "outside")
    report = received(top, archive(member(place, b"x"), member(os.path.dirname(place) + "/file", b"x")))
    assert set(reasons(report)) == {place, os.path.dirname(place) + "/file"}


def test_a_link_that_the_archive_itself_made_is_not_entered(top: Path) -> None:
    report = received(top, archive(directory("d"), symlink("l", "d"), member("l/x", b"x")))
    assert list(reasons(report)) == ["l/x"]


def test_a_link_in_the_place_of_a_file_is_replaced(top: Path) -> None:
    (top / "a").symlink_to(top.parent / "outside" / "file")
    received(top, archive(member("a", b"new")))
    assert not (top / "a").is_symlink()
    assert (top / "a").read_bytes() == b"new"


def test_a_directory_is_not_replaced_by_a_file(top: Path) -> None:
    (top / "a").mkdir()
    assert list(reasons(received(top, archive(member("a", b"x"))))) == ["a"]
    (top / "f").write_text("x")
    assert list(reasons(received(top, archive(member("f/a", b"x"), directory("f"))))) == ["f/a", "f"]


def test_devices_are_left_out(top: Path) -> None:
    data = archive(member("p", kind=tarfile.FIFOTYPE), member("c", kind=tarfile.CHRTYPE), member("a"))
    assert list(reasons(received(top, data))) == ["p", "c"]
    assert os.listdir(top) == ["a"]


def test_a_second_name_is_a_copy(top: Path) -> None:
    data = archive(member("a", b"one", mode=0o755), member("b", kind=tarfile.LNKTYPE, link="a"))
    report = received(top, data)
    assert (top / "b").read_bytes() == b"one"
    assert (top / "b").stat().st_nlink == 1
    assert (report.files, report.size) == (2, 6)


def second(name: str, first: str) -> bytes:
    return member(name, kind=tarfile.LNKTYPE, link=first)


@pytest.mark.parametrize("here", ["key", "l", "p", "d", "none", ""])
def test_a_second_name_of_what_was_here_already_ends_the_copy(top: Path, here: str) -> None:
    """An archive must not copy the operator's own files to where the agent can read them."""
    (top / "key").write_text("secret")
    (top / "l").symlink_to(top.parent / "outside" / "file")
    (top / "d").mkdir()
    os.mkfifo(top / "p")
    before = sorted(os.listdir(top))
    with pytest.raises(BadArchive, match="not brought"):
        received(top, archive(directory("d"), second("b", here)))
    assert sorted(os.listdir(top)) == before


def test_a_second_name_of_what_was_not_copied_or_is_no_file_is_left_out(top: Path) -> None:
    """As tar writes it for links and devices with several names."""
    (top / "f").mkdir()
    data = archive(
        symlink("l", "f"), member("p", kind=tarfile.FIFOTYPE), member("f", b"x"),
        second("bl", "l"), second("bp", "p"), second("bf", "f"), second("bb", "bf"),
    )  # fmt: skip
    assert list(reasons(received(top, data))) == ["p", "f", "bl", "bp", "bf", "bb"]


def test_a_second_name_of_a_second_name(top: Path) -> None:
    received(top, archive(member("a", b"one"), second("b", "a"), second("c", "b")))
    assert (top / "c").read_bytes() == b"one"


@pytest.mark.parametrize("exchange", ["file", "link"])
def test_a_second_name_of_a_file_that_is_exchanged_meanwhile_is_left_out(top: Path, exchange: str) -> None:
    (top / "key").write_text("secret")
    report = CopyReport()
    fd = os.open(top, os.O_RDONLY)
    with Receiver(fd, source=b"", name=b"", umask=0o022, report=report) as receiver:
        for item in TarReader().feed(archive(member("a", b"one"), member("x"), second("b", "a"))):
            if isinstance(item, Entry) and item.kind == "hardlink":
                (top / "a").unlink()
                os.link(top / "key", top / "a") if exchange == "file" else os.symlink("key", top / "a")
            receiver.take(item)
        receiver.finish()
    os.close(fd)
    assert list(reasons(report)) == ["b"]
    assert not (top / "b").exists()


def test_limits(top: Path) -> None:
    with pytest.raises(TooMuch, match="100 bytes"):
        received(top, archive(member("a", b"x" * 60), member("b", b"x" * 60)), limits=CopyLimits(size=100))
    assert os.listdir(top) == ["a"]
    with pytest.raises(TooMuch):
        received(top, archive(member("a", b"x" * 60), second("b", "a")), limits=CopyLimits(size=100))
    with pytest.raises(TooMuch, match="3 files"):
        received(top, archive(*(directory(f"d{number}") for number in range(4))), limits=CopyLimits(entries=3))


def test_a_file_that_is_cut_leaves_nothing(top: Path) -> None:
    report = CopyReport()
    fd = os.open(top, os.O_RDONLY)
    with Receiver(fd, source=b"", name=b"", umask=0o022, report=report) as receiver:
        for item in TarReader().feed(member("a", b"x" * 2000)[:1024]):
            receiver.take(item)
    os.close(fd)
    assert (os.listdir(top), report.files) == ([], 0)


def test_names_that_the_file_system_refuses(top: Path) -> None:
    assert list(reasons(received(top, archive(member("n" * 300, b"x"), member("ok"))))) == ["n" * 300]


def test_many_things_left_out_are_counted(top: Path) -> None:
    report = received(top, archive(*(member(f"p{number}", kind=tarfile.FIFOTYPE) for number in range(30))))
    assert (len(report.left_out), report.more) == (20, 10)


TARGET = st.lists(st.sampled_from([b"..", b".", b"a", b"b", b""]), max_size=6).map(b"/".join)


@given(st.lists(st.tuples(st.sampled_from(["a", "b", "d/a", "d/b"]), TARGET), max_size=4))
def test_links_that_are_created_stay_inside_whatever_they_lead_through(links: list[tuple[str, bytes]]) -> None:
    """Also through each other: the kernel itself resolves them."""
    import tempfile

    with tempfile.TemporaryDirectory() as base:
        top = Path(base, "x", "top")
        (top / "d" / "a").mkdir(parents=True)
        (top / "b").mkdir()
        data = archive(*(symlink(path, target.decode()) for path, target in links if target))
        received(top, data)
        for path in [*top.rglob("*")]:
            if path.is_symlink():
                try:
                    end = os.path.realpath(path, strict=True)
                except OSError:  # it leads nowhere, or in a circle
                    continue
                assert end == str(top.resolve()) or end.startswith(f"{top.resolve()}/")


@pytest.mark.parametrize(
    ("target", "depth", "inside"),
    [(b"a", 0, True), (b"../a", 1, True), (b"../a", 0, False), (b"a/..", 5, False), (b"/a", 5, False), (b"", 1, False),
     (b"./.././a", 1, True), (b"a", -1, False), (b"..", 0, False)],
)  # fmt: skip
def test_where_a_link_leads(target: bytes, depth: int, inside: bool) -> None:
    assert stays_inside(target, depth) is inside
