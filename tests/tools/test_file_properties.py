"""Properties: nothing resolves outside the root, an edit keeps all other bytes, a glob finds what pathlib finds."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podbot.errors import FileRefused
from podbot.guest.local import LocalGuest
from podbot.tools.files import Files
from podbot.tools.inside.edits import replaced
from podbot.tools.inside.glob_pattern import Glob
from podbot.tools.inside.line_search import LineSearch
from podbot.tools.inside.refusals import Refused
from podbot.tools.inside.required_run import MARK
from podbot.tools.inside.required_text import RequiredText
from tests.inside import PROGRAM
from tests.tools.workers import files_beside_a_secret, files_in

LIMIT = 1 << 20
TEXTS = st.text(st.sampled_from("ab\r\né\0"), max_size=12)


@given(before=TEXTS, old=TEXTS.filter(bool), after=TEXTS, new=TEXTS)
@example(before="a\r\n", old="b\n", after="", new="")
def test_an_edit_keeps_all_bytes_outside_the_match(before: str, old: str, after: str, new: str) -> None:
    data = (before + old + after).encode()
    try:
        result, count = replaced(data, old, new, LIMIT, every=False)
    except Refused as caught:
        # The text is there, so it occurs more than once; or a newline of it means another one here.
        kind = caught.kind
    else:
        kind = ""
    if kind:
        assert kind == "several_matches" or _only_crlf(data)
        return
    assert count == 1
    candidates = {(old, new), (_crlf(old), _crlf(new))} if _only_crlf(data) else {(old, new)}
    assert any(
        data[:start] + new_text.encode() + data[start + len(old_text.encode()) :] == result
        for old_text, new_text in candidates
        for start in range(len(data))
        if data[start:].startswith(old_text.encode())
    )


@given(parts=st.lists(TEXTS, min_size=2, max_size=5), new=TEXTS)
def test_all_matches_are_replaced_and_nothing_else(parts: list[str], new: str) -> None:
    data = "<->".join(parts).encode()
    result, count = replaced(data, "<->", new, LIMIT, every=True)
    assert count == len(parts) - 1
    assert result == (_crlf(new) if "\r" not in new and _only_crlf(data) else new).join(parts).encode()


def _only_crlf(data: bytes) -> bool:
    return b"\n" in data and not re.search(rb"(?<!\r)\n", data)


def _crlf(text: str) -> str:
    return text if "\r" in text else text.replace("\n", "\r\n")


# Globs, with pathlib as the oracle

TREE = (
    "a", "b", ".c", "ab", "a.b", "d/a", "d/ab", "d/.c", "d/d/a", "d/d/d/b", "e/a", "e/[a]", "e/*", "e/-", "e/]", "e/!",
    "e/^", "f/d/a",
)  # fmt: skip
WORDS = st.one_of(
    st.sampled_from(
        ["**", "*", "?", "d", "a", "*a", "a*", "*.*", "[a-d]", "[!a]", "[]a]", "[!]]", "[", "[!", "[*]", "e"]
    ),
    st.text(st.sampled_from("abd*?.[]!^-"), min_size=1, max_size=6),
)


@pytest.fixture(scope="module")
def tree() -> Iterator[tuple[Files, Path]]:
    with tempfile.TemporaryDirectory() as place, LocalGuest.start(program=PROGRAM) as guest:
        root = Path(place, "root")
        root.mkdir()
        for path in TREE:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("x")
        with files_in(guest, root) as files:
            yield files, root


@given(words=st.lists(WORDS, min_size=1, max_size=4))
@example(words=["**", "**", "a"])
@example(words=["d", "**", "d", "**", "*"])
@example(words=["**", "."])
def test_a_glob_finds_the_files_that_pathlib_finds(tree: tuple[Files, Path], words: list[str]) -> None:
    files, root = tree
    try:
        found, kind = [match.path for match in files.glob("/".join(words)).matches], ""
    except FileRefused as refusal:
        found, kind = [], refusal.kind
    if kind:  # pathlib drops a range that ends before it begins
        assert kind == "bad_pattern"
        assert any(re.search(r".-.|^\.\.?$", word) for word in words)
        return
    if any(re.search(r"\*\*.|.\*\*", word) for word in words):
        return  # pathlib has no opinion: it refuses them
    named = [word for word in words if word != "."]  # pathlib drops them, too
    at_the_end = ["**", "*"] if named[-1] == "**" else named[-1:]
    expected = [path for path in root.glob("/".join([*named[:-1], *at_the_end])) if path.is_file()]
    assert found == ["/".join(parts) for parts in sorted({path.relative_to(root).parts for path in expected})]


@given(st.text(st.sampled_from("ab*"), max_size=40), st.text(st.sampled_from("ab"), max_size=60))
@example("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b", "a" * 200)  # exponential, if each star is tried again
def test_a_glob_of_one_segment_is_a_regular_expression(pattern: str, name: str) -> None:
    if not pattern or set(pattern) == {"*"} or not name:
        return
    glob = Glob(pattern)
    words = [re.escape(word) for word in re.split(r"\*+", pattern)]
    if pattern.count("*") < 8:
        assert glob.matches(glob.start, name) == bool(re.fullmatch(".*".join(words), name))
    else:
        glob.matches(glob.start, name)


ATOMS = st.sampled_from(
    ["a", "b", "ab", "k", "é", ".", "[ab]", "^", "$", r"\b", "x(?=a)", "(?<!a)b", " ", r"\s", r"\n", "[^a]", r"\Z", "K"]
)
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "+?"])).map(lambda two: f"({two[0]}){two[1]}"),
        inner.map(lambda part: f"(?i:{part})"),
        inner.map(lambda part: f"{part}|a"),
    ),
    max_leaves=6,
)


@given(
    st.lists(st.text(st.sampled_from("abxkKAB\u212aé \r"), max_size=6), max_size=6),
    st.tuples(st.sampled_from(["", "", "(?i)", "(?x)", "(?a)"]), EXPRESSIONS).map("".join),
)
@example(["foobar", "x", "bar foo"], "foo|bar")
@example(["\u212a"], "(?i)k")
@example(["a", "b"], r"\n")  # such a search did not end
def test_a_search_by_a_text_that_must_occur_finds_what_one_line_after_another_finds(
    lines: list[str], pattern: str
) -> None:
    text = "\n".join(lines)
    whole = text.split("\n")
    if whole[-1] == "":
        del whole[-1]
    plain = [line.removesuffix("\r") for line in whole]
    expected = [(number, line) for number, line in enumerate(plain, 1) if re.search(pattern, line)]
    assert list(LineSearch(pattern).lines(text.encode())) == expected


CLASSES = st.sampled_from(
    [
        "[0-9]", "[7-9]", r"\d", "[A-Z]", "[A-C]", "K", "k", r"\W", r"[^\w]", r"[^\s]", r"[^\D]", "[^a-z]", r"\S", "7",
        "[é1]", r"[\s1]", "[k1]", "[\u212a1]", "[\u0100-\u3000]", ".", r"\n", r"[\n1]", "([0-9])", "(?i:[a-c])",
        "(1|K)", "^", "$", r"\b",
    ]
)  # fmt: skip
RUNS = st.lists(
    st.tuples(CLASSES, st.sampled_from(["", "", "", "{2}", "{2,}", "{1,3}", "+", "+?", "*", "?"])).map("".join),
    min_size=1,
    max_size=4,
).map("".join)


@given(
    st.lists(st.text(st.sampled_from("17KkABé\u212a\u0660 \r\x1c"), max_size=5).map("filler ".__add__), max_size=12),
    st.tuples(st.sampled_from(["", "", "(?i)", "(?a)", "(?s)"]), RUNS).map("".join),
)
@example(["a line"] * 8 + ["77"], "[0-9]{2}")
@example(["a line"] * 8 + ["\u0660\u0661"], r"\d\d")
@example(["a line"] * 8 + ["\u212a1"], "(?i)[k1][k1]")
def test_a_search_by_a_run_that_must_occur_finds_what_one_line_after_another_finds(
    lines: list[str], pattern: str
) -> None:
    try:
        search = re.compile(pattern).search
    except re.error:  # such as $*
        return
    text = "\n".join(lines)
    plain = [line.removesuffix("\r") for line in text.split("\n")]
    expected = [(number, line) for number, line in enumerate(plain, 1) if text and search(line)]
    assert list(LineSearch(pattern).lines(text.encode())) == expected


@pytest.mark.parametrize(
    ("pattern", "length"),
    [("[0-9]{2}[78][79]$", 4), (r"\d{3}", 3), ("[A-Z]{3,}", 3), ("[0-9]{4000000000}", 64), (r"\w+", 0), ("[0-9]", 0)],
)
def test_an_expression_of_classes_needs_a_run_unless_it_is_frequent(pattern: str, length: int) -> None:
    assert RequiredText(pattern).texts == ([MARK * length] if length else [])


# Paths

NAMES = st.one_of(
    st.sampled_from(
        ["..", ".", "", "/", "a", "b", "out", "in", "a/../..", "\0", "..\0", "../outside", "/etc", "secret"]
    ),
    st.text(max_size=8),
)


@pytest.fixture(scope="module")
def beside() -> Iterator[tuple[Files, Path, Path]]:
    """A workspace with links out of it, and what is beside it."""
    with files_beside_a_secret() as made:
        yield made


@given(path=st.lists(NAMES, max_size=4), choice=st.integers(0, 6))
@example(path=["out", "secret"], choice=3)
@example(path=["..", "outside", "secret"], choice=3)
def test_no_path_leads_outside(beside: tuple[Files, Path, Path], path: list[str], choice: int) -> None:
    files, root, outside = beside
    for name, target in (("out", "../outside"), ("in", "."), ("a", "/")):
        with contextlib.suppress(OSError):
            (root / name).symlink_to(target)
    calls = (
        lambda: files.read(path).content, lambda: files.ls(path), lambda: files.write(path, "mine"),
        lambda: files.edit(path, "SECRET", "mine"), lambda: files.grep("SECRET", path), lambda: files.glob("**", path),
        lambda: files.stat(path),
    )  # fmt: skip
    try:
        result = repr(calls[choice]())
    except FileRefused:
        result = ""
    assert "SECRET" not in result
    with contextlib.suppress(FileRefused):
        files.rm(path)
    assert os.listdir(outside) == ["secret"]
    assert (outside / "secret").read_text() == "SECRET"
    assert sorted(os.listdir(root.parent)) == ["outside", "root"]
