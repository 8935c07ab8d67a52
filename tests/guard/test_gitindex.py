"""The parser of git's index, compared with git itself, and with input that git never writes."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podbot.guard.gitindex import Index, Unreadable, parse
from tests.examples import examples
from tests.guard.trees import ENV, checkout, git, write

BLOB = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"


def fed(where: Path, words: list[str], text: str | bytes) -> None:
    """git with input."""
    data = text.encode() if isinstance(text, str) else text
    subprocess.run(["git", *words], cwd=where, env=ENV, input=data, capture_output=True, check=True)


def made(where: Path, names: list[str], version: int, assumed: set[str], skipped: set[str]) -> bytes:
    """The index that git writes."""
    (where / ".git" / "index").unlink(missing_ok=True)
    lines = "".join(f"100644 {BLOB}\t{name}\0" for name in names)
    fed(where, ["update-index", "-z", "--index-info"], lines)
    git(where, "update-index", f"--index-version={version}")
    for option, chosen in (("--assume-unchanged", assumed), ("--skip-worktree", skipped)):
        fed(where, ["update-index", option, "-z", "--stdin"], "".join(f"{name}\0" for name in chosen))
    return (where / ".git" / "index").read_bytes()


part = st.text("abz é.-", min_size=1, max_size=6).filter(lambda text: text not in (".", "..", ".git", " "))
long = st.builds(lambda text, count: text * count, st.sampled_from(["x", "yz"]), st.sampled_from([100, 127]))
name = st.lists(part | long, min_size=1, max_size=4).map("/".join)


@pytest.fixture(scope="module")
def where(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("index")
    git(made, "init", "-q")
    return made


@settings(max_examples=examples(40))
@given(st.sets(name, min_size=1, max_size=12), st.sampled_from([2, 3, 4]), st.data())
def test_it_finds_the_entries_that_git_has_flagged(
    where: Path, names: set[str], version: int, data: st.DataObject
) -> None:
    names = {one for one in names if not any(other.startswith(f"{one}/") for other in names)}
    some = st.sets(st.sampled_from(sorted(names)))
    assumed, skipped = data.draw(some), data.draw(some)
    found = parse(made(where, sorted(names), version, assumed, skipped), 20)
    assert {one.decode() for one in found.assumed} == assumed
    assert {one.decode() for one in found.skipped} == skipped
    assert found.shared == ""


@pytest.mark.parametrize("version", [2, 4])
def test_names_longer_than_the_field_for_their_length(where: Path, version: int) -> None:
    name = "/".join(["d" * 200] * 20) + "/x"
    data = made(where, ["a", name[:4000], "z"], version, {name[:4000], "z"}, set())
    assert [one.decode() for one in parse(data, 20).assumed] == [name[:4000], "z"]


def test_an_index_with_longer_ids(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--object-format=sha256")
    for name in ("a", "b", "c"):
        write(tmp_path / name)
    git(tmp_path, "add", ".")
    git(tmp_path, "update-index", "--assume-unchanged", "b")
    git(tmp_path, "update-index", "--skip-worktree", "c")
    data = (tmp_path / ".git" / "index").read_bytes()
    found = parse(data, 32)
    assert (found.assumed, found.skipped) == ([b"b"], [b"c"])
    with pytest.raises(Unreadable):
        parse(data, 20)


def test_an_index_of_many_blocks_and_with_caches(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    git(tmp_path, "config", "index.threads", "3")
    names = [f"d{number % 7}/{number}" for number in range(30_000)]
    data = made(tmp_path, names, 4, {"d1/29996"}, set())
    assert {b"EOIE", b"IEOT"} <= parse(data, 20).extensions
    assert parse(data, 20).assumed == [b"d1/29996"]
    begin = data.index(b"IEOT") + 8 + 4
    with pytest.raises(Unreadable):  # git would begin to read elsewhere
        parse(data[: begin + 8] + b"\0\0\0\x10" + data[begin + 12 :], 20)
    with pytest.raises(Unreadable):
        parse(data[: begin + 4] + b"\0\0\0\x01" + data[begin + 8 :], 20)


def test_an_index_that_is_a_difference_to_another(tmp_path: Path) -> None:
    work = checkout(tmp_path / "work")
    git(work, "update-index", "--split-index")
    git(work, "update-index", "--assume-unchanged", "Makefile")
    found = parse((work / ".git" / "index").read_bytes(), 20)
    assert (work / ".git" / f"sharedindex.{found.shared}").exists()
    assert len(found.assumed) == 1
    assert found.assumed[0].startswith(b"object ")
    assert parse((work / ".git" / f"sharedindex.{found.shared}").read_bytes(), 20).assumed == []


def header(version: int = 2, count: int = 0) -> bytes:
    return b"DIRC" + version.to_bytes(4, "big") + count.to_bytes(4, "big")


END = bytes(20)


def compressed(drop: bytes, rest: bytes, flags: bytes = b"\x80\0") -> bytes:
    return bytes(60) + flags + drop + rest + b"\0"


@pytest.mark.parametrize(
    "data",
    [
        b"", b"DIRC", header(), header(5) + END, header(1) + END, b"XXXX" + header()[4:] + END, header(2, 1) + END,
        header(2, 1 << 31) + END, header(2, 1) + bytes(60) + b"\x0f\xff" + b"a" * 100,
        header(4, 1) + bytes(62) + b"\x80" * 90,
        header() + b"xxxx\0\0\0\0" + END, header() + b"TREE\0\0\xff\xff" + END, header() + b"link\0\0\0\1a" + END,
        header() + (b"link\0\0\0\x14" + b"a" * 20) * 2 + END,
        header(4, 1) + compressed(b"\x05", b"a") + END,
        header(4, 1) + compressed(b"\xff\xff\xff\xff\xff\x7f", b"a") + END,
        header(4, 1) + compressed(b"\0", b"a" * 5000) + END,
        header() + b"EOIE\0\0\0\x18\0\0\0\x0d" + bytes(20) + END,
        header(2, 1) + bytes(60) + b"\0\1" + b"a" + END,  # the padding is missing
        header() + b"TREE\0\0\0\0" * 2000 + END,
    ],
)  # fmt: skip
def test_what_is_no_index_that_git_writes(data: bytes) -> None:
    with pytest.raises(Unreadable):
        parse(data, 20)


def test_an_empty_index() -> None:
    assert parse(header() + END, 20) == Index([], [], "", frozenset())
    assert parse(header() + b"link\0\0\0\x14" + bytes(20) + END, 20).shared == ""


@given(st.binary(max_size=300), st.integers(2, 4), st.integers(0, 5), st.sampled_from([20, 32]))
def test_no_input_makes_it_fail_otherwise(rest: bytes, version: int, count: int, width: int) -> None:
    with suppress(Unreadable):
        parse(header(version, count) + rest, width)


@settings(max_examples=examples(40))
@given(st.integers(0), st.binary(min_size=1, max_size=3), st.sampled_from([2, 4]))
def test_a_damaged_index_is_read_or_refused(where: Path, at: int, bytes_: bytes, version: int) -> None:
    data = made(where, ["a", "ab/c", "ab/d"], version, {"a"}, {"ab/d"})
    at %= len(data)
    with suppress(Unreadable):
        parse(data[:at] + bytes_ + data[at + len(bytes_) :], 20)
