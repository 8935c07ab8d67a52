"""Foreign text is shown as what it is: nothing in it is invisible, and what people write stays readable."""

from __future__ import annotations

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.visible_text import HIDDEN, is_printable, printable

JOINERS = "\u200c\u200d\ufe0f"
BLANKS = "\u2800\u3164\ufe00\ufe0e\u034f\u115f\u1160\uffa0\u180b\u180e\u200b\u2060\u2063\ufeff\xad\U000e0020\U000e0100"
BLANKS += "\U0001d159\U00013441\U0001bca0"
PEOPLE_WRITE = [
    "naïve-Übung.md",
    "資料 2026",
    "שלום",
    "مرحبا",
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",  # Persian, with a non-joiner
    "ക\u0d4d\u200d",  # an older Malayalam final letter, which ends in a joiner
    "क\u094d\u200cष",
    "\u2764\ufe0f",  # a heart
    "\U0001f469\u200d\U0001f4bb",  # a woman with a computer
    "\U0001f469\U0001f3fd\u200d\U0001f680 launch",
    "\U0001f3f3\ufe0f\u200d\U0001f308",  # a flag of a rainbow
    "1\ufe0f\u20e3 first",
    "\u2714\ufe0f done",
    "\U0001f1e9\U0001f1ea",
]


@pytest.mark.parametrize("text", PEOPLE_WRITE)
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert printable(text) == text
    assert is_printable(text)


@pytest.mark.parametrize("char", BLANKS + "\u202e\u2066\u061c\x1b\x9b\x7f\n\u2028\xa0\u3000\ud800")
def test_what_cannot_be_seen_is_escaped(char: str) -> None:
    escape = ascii(char)[1:-1]
    for text in ("{}", "a{}", "{}b", "a{}b", "資{}料", "\U0001f469{}\U0001f4bb", "\u2764\ufe0f{}"):
        assert printable(text.format(char)) == text.format(escape)
        assert not is_printable(text.format(char))
    assert printable(f"a{char}b", instead="?") == "a?b"
    assert printable(f"a{char}b", keep=char) == f"a{char}b"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sh\u200dop", "sh\\u200dop"),
        ("sh\u200cop", "sh\\u200cop"),
        ("\u200d", "\\u200d"),
        (".git\ufe0f", ".git\\ufe0f"),
        ("\u2764\ufe0f\ufe0f", "\u2764\ufe0f\\ufe0f"),
        ("\U0001f469\u200d", "\U0001f469\\u200d"),
        ("\u200d\U0001f4bb", "\\u200d\U0001f4bb"),
        ("\U0001f469\u200d\u200d\U0001f4bb", "\U0001f469\\u200d\\u200d\U0001f4bb"),
        ("\U0001f469\u200d\u2800\U0001f4bb", "\U0001f469\\u200d\\u2800\U0001f4bb"),
        ("1\ufe0f", "1\\ufe0f"),
        ("م\u200c", "م\\u200c"),
        ("م\u200ca", "م\\u200ca"),
        ("\U0001f3f4\U000e0067\U000e007f", "\U0001f3f4\\U000e0067\\U000e007f"),
    ],
)
def test_a_joiner_stays_only_where_it_joins(text: str, shown: str) -> None:
    """Elsewhere it makes two names that look alike."""
    assert printable(text) == shown


ODD = st.sampled_from([*BLANKS, *JOINERS, *"\u202e\x1b\n\t \xa0", "\U0001f469", "\u2764", "م", "\u094d", "1", "\u20e3"])


@given(st.text(st.characters() | ODD))
def test_nothing_invisible_is_left_and_nothing_else_changes(text: str) -> None:
    shown = printable(text)
    assert not re.search(f"[{HIDDEN}]", shown)
    assert all(char.isprintable() or char in "\u200c\u200d" for char in shown)
    assert is_printable(shown)
    assert printable(shown) == shown
    assert is_printable(text) == (shown == text)
    for at, char in enumerate(shown):
        if char in JOINERS:  # it stands between, or behind, what can be seen
            before = shown[at - 1] if shown[at - 1] != "\ufe0f" else shown[at - 2]
            assert at
            assert before not in JOINERS
            assert before not in BLANKS
    if not set(text) & {*JOINERS}:
        assert shown == "".join(
            char if char.isprintable() and not re.match(f"[{HIDDEN}]", char) else ascii(char)[1:-1] for char in text
        )


@given(st.text(st.characters() | ODD))
def test_other_ways_of_showing_leave_the_same_characters(text: str) -> None:
    without = printable(text, instead="")
    assert not re.search(f"[{HIDDEN}]", without)
    kept = printable(text, keep="\n\t")
    assert printable(kept.replace("\n", "").replace("\t", "")) == kept.replace("\n", "").replace("\t", "")


def test_every_character_that_shows_nothing_is_hidden_or_joins() -> None:
    """By Unicode's categories: formats, controls, separators of lines, and the variation selectors."""
    for number in range(sys.maxunicode + 1):
        char = chr(number)
        category = unicodedata.category(char)
        blank = category in ("Cc", "Zl", "Zp", "Cs") or (category == "Cf" and char not in "\u200c\u200d")
        if blank or "VARIATION SELECTOR" in unicodedata.name(char, ""):
            assert not is_printable(char), hex(number)
            assert printable(f"a{char}b") == f"a{ascii(char)[1:-1]}b", hex(number)
