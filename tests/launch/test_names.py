from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import InvalidValue
from podbot.launch.names import LONGEST, is_name, session_name

ENGINE_RULE = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{0,62}")


@given(st.text(), st.text(alphabet="0123456789abcdef", min_size=6, max_size=6))
def test_a_made_name_is_always_valid(path: str, nonce: str) -> None:
    name = session_name(None, path, nonce)
    assert ENGINE_RULE.fullmatch(name)
    assert name.startswith("podbot-")
    assert name.endswith(f"-{nonce}")
    assert name == name.lower()


@given(st.text(max_size=80))
def test_is_name_follows_the_engines_rule(text: str) -> None:
    assert is_name(text) == (ENGINE_RULE.fullmatch(text) is not None)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/home/ann/My Project", "my-project"),
        ("/home/ann/proj/", "proj"),
        ("/srv/..--..", "workspace"),
        ("/srv/日本", "workspace"),
        ("/srv/" + "a" * 200, "a" * 40),
        ("/srv/\u212a2", "k2"),  # KELVIN SIGN, whose lower case is ASCII
    ],
)
def test_slugs(path: str, expected: str) -> None:
    assert session_name(None, path, "0a1b2c") == f"podbot-{expected}-0a1b2c"


@pytest.mark.parametrize("chosen", ["a", "A.b_c-9", "x" * LONGEST])
def test_a_chosen_name_is_kept(chosen: str) -> None:
    assert session_name(chosen, "/srv/p", "0a1b2c") == chosen


@pytest.mark.parametrize("chosen", ["", "-a", ".a", "..", "a/b", "a b", "ä", "a\n", "x" * (LONGEST + 1)])
def test_a_chosen_name_that_the_engine_would_refuse(chosen: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        session_name(chosen, "/srv/p", "0a1b2c")
    assert caught.value.origin == "flag --name"
    assert "\n" not in str(caught.value)
