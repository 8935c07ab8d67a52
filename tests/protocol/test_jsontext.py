from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.protocol.jsontext import (
    FEW,
    LONGEST_NAME,
    MAX_DEPTH,
    MAX_STRUCTURE,
    BadFrame,
    Cut,
    Part,
    alike,
    cuts_for,
    elements,
    fold_key,
    members,
    strict_text,
    without,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
SPACES = st.sampled_from(["", " ", "\t ", "\r", "\n\n"])


def spell(value: Any, space: str) -> str:
    return json.dumps(value, separators=(f"{space},{space}", f"{space}:{space}"), ensure_ascii=False)


@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=6), SPACES)
def test_members_are_found_where_they_are(value: dict[str, Any], space: str) -> None:
    text = spell(value, space)
    parts, end = members(text, 0)
    assert end == len(text)
    assert [part.key for part in parts] == list(value)
    for part in parts:
        assert json.loads(text[part.place : part.end]) == value[part.key]
        assert json.loads("{" + text[part.start : part.end] + "}") == {part.key: value[part.key]}


@given(st.lists(VALUES, max_size=6), SPACES, st.sets(st.integers(0, 5)))
def test_members_are_found_at_their_positions(value: list[Any], space: str, numbers: set[int]) -> None:
    text = spell(value, space)
    parts, end = elements(text, 0)
    assert end == len(text)
    assert [json.loads(text[part.start : part.end]) for part in parts] == value
    drop = {number for number in numbers if number < len(value)}
    kept = [element for number, element in enumerate(value) if number not in drop]
    assert json.loads(without(text, cuts_for(parts, drop))) == kept


@given(st.lists(st.tuples(st.sampled_from("abc"), VALUES), max_size=6), SPACES, st.sets(st.integers(0, 5)))
def test_members_can_be_cut_out(pairs: list[tuple[str, Any]], space: str, numbers: set[int]) -> None:
    text = "{" + f"{space},".join(f"{space}{json.dumps(key)}:{json.dumps(value)}" for key, value in pairs) + "}"
    parts, _ = members(text, 0)
    drop = {number for number in numbers if number < len(pairs)}
    kept = [pair for number, pair in enumerate(pairs) if number not in drop]
    left, _ = members(without(text, cuts_for(parts, drop)), 0)
    assert [(part.key, part.value) for part in left] == [
        (part.key, part.value) for number, part in enumerate(parts) if number not in drop
    ]
    assert len(left) == len(kept)


@pytest.mark.parametrize("cuts", [[(1, 4), (2, 3)], [(1, 4), (1, 2)], [(2, 5, "x"), (0, 3)], [(1, 3), (2, 2, "y")]])
def test_changes_that_overlap_are_refused(cuts: list[Cut]) -> None:
    with pytest.raises(BadFrame, match="overlapping_changes"):
        without("abcdef", cuts)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from(["", "X"])), max_size=4))
def test_changes_are_all_made_or_none(found: list[tuple[int, int, str]]) -> None:
    cuts: list[Cut] = [(min(start, end), max(start, end), instead) for start, end, instead in found]
    removed = [place for start, end, *_ in cuts for place in range(start, end)]
    try:
        left = without("abcdefghi", cuts)
    except BadFrame:
        # Inserted text inside what another change removes would overlap as well, so there may be no such place twice.
        assert len(set(removed)) < len(removed) or any(
            start < place == end < stop for start, stop, *_ in cuts for place, end, *_ in cuts
        )
    else:
        assert len(set(removed)) == len(removed)
        assert left.replace("X", "") == "".join(char for at, char in enumerate("abcdefghi") if at not in removed)
        assert left.count("X") == sum(cut[-1] == "X" for cut in cuts)


@pytest.mark.parametrize(
    "text",
    ['{"a":1,}', "{,}", '{"a"}', '{"a":}', '{"a" 1}', '{"a":1 "b":2}', "{a:1}", "{1:1}", '{"a":01}', '{"a":NaN}',
     '{"a":-Infinity}', '{"a":1.}', '{"a":.5}', '{"a":+1}', '{"a":0x1}', '{"a":"\t"}', '{"a\x01":1}', '{"a":"\\x"}',
     '{"a":\'1\'}', '{"a":1', '{"a":', '{"a', "{", '{"a":tru}', '{"a":"\\ud8"}', "{//\n}", '{"a":\xa01}', '{\f"a":1}',
     '{"a":1,,"b":2}', '{"a"::1}', '{"\\q":1}', '{"a":\u0661}'],
)  # fmt: skip
def test_text_that_is_not_json(text: str) -> None:
    with pytest.raises((ValueError, IndexError, StopIteration)):
        members(text, 0)


@pytest.mark.parametrize("text", ["[1,]", "[,]", "[1 2]", "[", "[1", "[1,", "[NaN]", "[]]"[:1]])
def test_text_that_is_not_an_array(text: str) -> None:
    with pytest.raises((ValueError, IndexError, StopIteration)):
        elements(text, 0)


def test_numbers_of_any_length_are_text() -> None:
    digits = "9" * 20_000
    assert members(f'{{"a":{digits},"b":{digits}.5}}', 0)[0][0].value == digits


def refused(frame: bytes) -> str:
    with pytest.raises(BadFrame) as caught:
        strict_text(frame)
    return caught.value.reason


@pytest.mark.parametrize(
    "frame", [b"\xff", b'{"a":"\xc0\xaf"}', b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b'{"a":"\xe2\x82']
)
def test_only_utf8(frame: bytes) -> None:
    assert refused(frame) == "not_utf8"


@pytest.mark.parametrize("frame", [b"\r{}\n", b"{}\r", b"{}\r\r\n", b'{"a":\r1}\r\n', b"\r\n{}"])
def test_no_carriage_return_except_before_the_newline(frame: bytes) -> None:
    assert refused(frame) == "carriage_return"


@pytest.mark.parametrize("frame", [b"{}\r\n", b"\r\n", b"{}\n", b"{}", b'{"a":"\\r"}\n'])
def test_valid_carriage_returns(frame: bytes) -> None:
    assert strict_text(frame) == frame.decode()


def nested(depth: int) -> bytes:
    return b'{"a":[' * (depth // 2) + b"]}" * (depth // 2)


def test_depth() -> None:
    assert strict_text(nested(MAX_DEPTH))
    assert refused(nested(MAX_DEPTH + 2)) == "too_deep"
    assert refused(b"[" * 100_000) == "too_deep"
    assert strict_text(b"[" + b"[]," * 1000 + b"{}]")
    assert strict_text(b'["' + b"[{" * 100_000 + b'"]')
    assert strict_text(b'["\\\\\\"' + b"[{" * 1000 + b'\\\\"]')
    assert refused(b'["\\\\"' + b"[{" * 1000 + b'\\\\"]') == "too_deep"


@given(st.lists(st.sampled_from(["[", "{", "]", "}", '"', "\\", '\\"', "\\\\", "a", ","]), max_size=40))
def test_depth_is_never_underestimated(tokens: list[str]) -> None:
    text = "".join(tokens)
    # With fewer brackets than FEW nothing is counted at all.
    lists, members = "[]," * FEW, "".join(f'"{number}":[],' for number in range(FEW))
    for prefix in (f'[{lists}"', f'{{{members}"a":["\\\\'):
        whole = (prefix + text).encode()
        deepest = depth = 0
        inside = escaped = False
        for char in whole.decode():
            if inside:
                inside, escaped = (escaped or char != '"'), (char == "\\" and not escaped)
            elif char == '"':
                inside = True
            elif char in "[{":
                depth += 1
                deepest = max(deepest, depth)
            elif char in "]}":
                depth -= 1
        if depth < 0 or inside:
            continue  # no JSON: the parser sees to it
        try:
            strict_text(whole, 2)
        except BadFrame:
            continue
        assert deepest <= 2 or not _parses(whole)


def _parses(whole: bytes) -> bool:
    try:
        json.loads(whole)
    except ValueError:
        return False
    return True


def test_number_of_values() -> None:
    assert strict_text(b"[" + b"1," * (MAX_STRUCTURE - 3) + b"1]")
    assert refused(b"[" + b"1," * MAX_STRUCTURE + b"1]") == "too_many_values"
    assert refused(b'["' + b'","' * (2 * MAX_STRUCTURE) + b'"]') == "too_many_values"
    assert strict_text(b'["' + b"," * (2 * MAX_STRUCTURE) + b'"]')
    assert strict_text(b"[" + b"1," * (2 * MAX_STRUCTURE) + b"1]", values=3 * MAX_STRUCTURE)


@pytest.mark.parametrize("shift", range(6))
def test_strings_are_left_out_wherever_a_long_frame_is_divided(shift: int) -> None:
    strings = b'"[,{",' * (4 * MAX_STRUCTURE // 5)  # 1.9 MB
    assert strict_text(b"[" + b" " * shift + strings + b"1]")
    assert refused(b"[" + b" " * shift + strings * 2 + b"1]") == "too_many_values"


@pytest.mark.parametrize(
    "name",
    ["method", "METHOD", "Method", "me_thod", "method\0x", " method\t", "\uff4dethod", "method\u200b", "m-ethod"],
)  # fmt: skip
def test_names_that_some_parser_reads_as_method(name: str) -> None:
    assert fold_key(name) == "method"


def test_fold_key() -> None:
    assert fold_key("par\u0061m\u017f") == "params"  # Go: the long s
    assert fold_key("\u212aey") == "key"  # Go: the Kelvin sign
    assert fold_key("\u0131d") == fold_key("\u0130d") == "id"  # Java
    assert fold_key("methods") != "method"
    assert fold_key("m" * 100) == "m" * 100
    assert fold_key("terminal" + "_" * 100 + "-auth") == "terminalauth"  # found by the fuzzer
    assert fold_key("method" + "\u0301\u200b " * 100) == "method"
    assert set(fold_key("x" * LONGEST_NAME + "\0y")) == {"x"}
    with pytest.raises(BadFrame) as caught:
        fold_key("x" * LONGEST_NAME + "y")
    assert caught.value.reason == "ambiguous_key"
    assert fold_key("client_capabilities") == fold_key("clientCapabilities")


def test_equal_fold_keys() -> None:
    parts = [Part(0, 1, 0, 1, "Auth"), Part(2, 3, 2, 1, "b"), Part(4, 5, 4, 1, "B")]
    assert alike(parts, "auth") == parts[0]
    assert alike(parts, "c") is None
    with pytest.raises(BadFrame) as caught:
        alike(parts, "b")
    assert caught.value.reason == "duplicate_key"


def test_the_size_of_a_batch_is_limited() -> None:
    with pytest.raises(BadFrame) as caught:
        elements("[1,2,3,4", 0, 3)
    assert caught.value.reason == "bad_batch"
