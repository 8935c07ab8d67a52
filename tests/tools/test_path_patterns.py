from __future__ import annotations

import pathlib
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import ToolValidationError
from podbot.tools.path_patterns import PathPattern


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "a.py", True), ("*.py", "d/a.py", False), ("**/*.py", "a.py", True), ("**/*.py", "d/e/a.py", True),
        ("**", "a", True), ("**", "d/e/a", True), ("d/**", "d/e/a", True), ("d/**", "d", False), ("d/**", "e/a", False),
        ("d/*", "d/e/a", False), ("d/**/a", "d/a", True), ("a/**/b/**/c", "a/b/x/b/c", True), ("*", ".hidden", True),
        ("?", "ab", False), ("[ab]", "b", True), ("[!ab]", "b", False), ("A", "a", False), ("a*b", "a\nb", True),
        ("/a/", "a", True), ("./a", "a", True), ("$x", "$x", True), ("a/**/**/b", "a/b", True), ("**/**", "a", True),
    ],
)  # fmt: skip
def test_what_matches(pattern: str, path: str, expected: bool) -> None:
    assert PathPattern(pattern).matches(path.split("/")) is expected


def test_a_pattern_for_names_matches_in_any_directory() -> None:
    assert PathPattern("*.py").matches_anywhere(("d", "a.py"))
    assert not PathPattern("d/*.py").matches_anywhere(("e", "d", "a.py"))
    assert PathPattern("d/").one_name


@pytest.mark.parametrize("text", ["", "/", ".", "a/../b", "..", "a\0", "x" * 4097, None, b"a"])
def test_patterns_that_are_not_valid(text: object) -> None:
    with pytest.raises(ToolValidationError) as caught:
        PathPattern(text, "glob")
    assert caught.value.field == "glob"


def test_many_stars_take_no_exponential_time() -> None:
    assert not PathPattern("*a" * 300 + "b").matches(("a" * 1500,))
    assert not PathPattern("**/a/" * 150 + "b").matches(("a",) * 300)


_NAMES = st.sampled_from(["a", "b", "ab", ".a", "a.py"])
_WORDS = st.sampled_from(["a", "*", "?", "a*", "*.py", "[ab]", "[!a]", "**"])


@given(st.lists(st.lists(_NAMES, min_size=1, max_size=4), max_size=6), st.lists(_WORDS, min_size=1, max_size=4))
def test_pathlib_agrees(paths: list[list[str]], words: list[str]) -> None:
    """A final ``**`` is left out, for which pathlib gives directories before Python 3.13."""
    if words[-1] == "**":
        words = [*words, "*"]
    with tempfile.TemporaryDirectory() as top:
        root, files = pathlib.Path(top), set()
        for path in paths:
            place = root.joinpath(*path)
            if not any(parent.is_file() for parent in place.parents) and not place.exists():
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text("")
                files.add(tuple(path))
        expected = {found.relative_to(root).parts for found in root.glob("/".join(words)) if found.is_file()}
    pattern = PathPattern("/".join(words))
    assert {path for path in files if pattern.matches(path)} == expected
