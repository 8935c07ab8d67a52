"""The guest's JSON is that of the standard library."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.guest.inside.plain_json import dumps, loads

TEXTS = st.text(st.characters())  # lone surrogates, too
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_a_value_is_written_and_read_as_by_the_standard_library(value: Any) -> None:
    assert dumps(value) == json.dumps(value)
    assert loads(json.dumps(value).encode()) == value
    assert loads(json.dumps(value, indent=1).encode()) == value


@given(st.binary(max_size=60) | st.text('{}[]":,0123456789.eE-+ntrualsfNI\\ \n', max_size=30).map(str.encode))
def test_what_the_standard_library_refuses_is_refused(data: bytes) -> None:
    try:
        wanted = json.loads(data.decode("utf-8"))
    except ValueError:
        with pytest.raises(ValueError):  # noqa: PT011 - of any kind
            loads(data)
    else:
        assert repr(loads(data)) == repr(wanted)  # NaN equals nothing


def test_a_tuple_is_a_list_and_nothing_else_is_written() -> None:
    assert dumps((1, ("a",))) == '[1, ["a"]]'
    for value in (b"", {1}, object()):
        with pytest.raises(TypeError):
            dumps(value)
