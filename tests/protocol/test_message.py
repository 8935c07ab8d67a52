"""The short way through the usual message finds what the long way finds."""

from __future__ import annotations

import json
import unicodedata
from unittest import mock

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from podbot.config.models import Delegation
from podbot.protocol import judge as judging
from podbot.protocol.jsontext import likeness
from podbot.protocol.judge import judge
from podbot.protocol.mask import client_rule
from podbot.protocol.message import plain_message
from podbot.protocol.policy import agent_rule
from podbot.streams.channel import Side
from tests.protocol.properties import DELEGATIONS, MOUNT
from tests.protocol.strategies import JSON, KEYS, WORDS

USUAL = '{"jsonrpc":"2.0","method":"session/update","params":{"text":"a"}}\n'
METHODS = st.sampled_from([*WORDS, "", "FS/x", "mcp/connect", "terminal_output", "a" * 65, "\\u0066s/x", "fs"])
IDS = st.sampled_from(
    [
        "1", "0", "01", "-1", "1e3", "1.0", "null", "true", "[]", "9" * 19, '"a"', '""', '"\\u0061"', '"é"',
        '"\\q"', '"\t"', '"a\\"', '"\\""', '"' + "a" * 65 + '"',
    ]
)  # fmt: skip
TAILS = st.sampled_from(
    ["}\n", "}", "}\r\n", "}\r", "} \n", "}\n\n", "}}\n", "", "\n", '},"x"\n', ',"method":"fs/x"}\n']
)


@st.composite
def usual(draw: st.DrawFn) -> bytes:
    """Nearly a usual message: in the odd member, spelling or tail it is not."""
    raw_id = f'"id":{draw(IDS)},' if draw(st.booleans()) else ""
    more = f",{draw(KEYS)}:{draw(JSON)}" if draw(st.integers(0, 3)) == 0 else ""
    text = f'{{"jsonrpc":"2.0",{raw_id}"method":"{draw(METHODS)}","params":{draw(JSON)}{more}{draw(TAILS)}'
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        place = draw(st.integers(0, len(data)))
        if draw(st.booleans()):
            data[place:place] = draw(
                st.sampled_from([b'"', b"{", b"}", b",", b" ", b"\r", b"\\", b"\0", b"\xff", b"a"])
            )
        else:
            del data[place : place + draw(st.integers(1, 8))]
    return bytes(data)


@settings(max_examples=1000, deadline=None)
@given(usual(), st.sampled_from(DELEGATIONS), st.sampled_from(["agent", "client"]))
@example(USUAL.encode(), "none", "agent")
@example(b'{"jsonrpc":"2.0","id":1,"method":"fs/x","params":{}}\n', "none", "agent")
@example(b'{"jsonrpc":"2.0","id":"\\q","method":"x","params":{}}\n', "none", "agent")
@example(b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{"fs":1}}}\n', "none", "client")
@example(b'{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/etc"}}\n', "none", "client")
@example(b'{"jsonrpc":"2.0","method":"x","params":{},"method":"fs/x"}\n', "none", "agent")
def test_both_ways_give_one_verdict(frame: bytes, delegation: Delegation, direction: Side) -> None:
    rule = agent_rule(delegation) if direction == "agent" else client_rule(delegation, MOUNT)
    short = judge(frame, direction, rule)
    with mock.patch.object(judging, "plain_message", return_value=None):
        assert judge(frame, direction, rule) == short


@pytest.mark.parametrize("tail", ["\n", "", "\r\n"])
@pytest.mark.parametrize("raw_id", [None, "0", "17", '"a-B_9"'])
def test_the_usual_message_is_found(raw_id: str | None, tail: str) -> None:
    head = '{"jsonrpc":"2.0",' + ("" if raw_id is None else f'"id":{raw_id},')
    text = head + '"method":"session/update","params":{"text":"a"}}' + tail
    found = plain_message(text)
    assert found is not None
    params = found.fields["params"]
    assert (found.id, found.method, params.value, params.key) == (raw_id, "session/update", {"text": "a"}, "params")
    assert text[params.start : params.end] == '"params":{"text":"a"}'
    assert text[params.place : params.end] == '{"text":"a"}'


@pytest.mark.parametrize(
    "text",
    [
        USUAL[1:],
        USUAL.replace("2.0", "2x0"),
        USUAL.replace("}\n", ',"method":"fs/x"}\n'),
        USUAL.replace('"params"', '"id":01,"params"'),
        USUAL.replace('{"text":"a"}', ""),
        USUAL.replace('{"text":"a"}', "NaN"),
        USUAL.replace("update", "upd\\u0061te"),
        '{"jsonrpc":"2.0","method":"x","params":',
        USUAL + "{}",
    ],
)
def test_anything_else_goes_the_long_way(text: str) -> None:
    assert plain_message(text) is None


@given(st.text("met\u0301hod\u0345\u0327_K\ufdfa=\u0338ﬁ", min_size=60, max_size=400))
def test_a_long_name_is_like_what_it_is_like_as_a_whole(name: str) -> None:
    """Names are looked at in slices; what is recognised as a whole is recognised all the same."""
    plain = unicodedata.normalize("NFKC", name).casefold()
    whole = "".join(char for char in plain if char.isalnum())
    if whole.isascii():
        assert likeness(name) == whole or len(whole) > 60


def test_names_of_combining_marks_cost_no_square() -> None:
    """Each name of 4000 marks took 33 ms, three times over: minutes for a frame that the limit lets through."""
    marks = "\u0301" * 2000 + "\u0327" * 2000
    names = [f"{marks}{number}" for number in range(100)]
    frame = json.dumps({"id": 1, "result": dict.fromkeys(names, 1)}, ensure_ascii=False).encode() + b"\n"
    import time

    before = time.process_time()
    assert judge(frame, "agent", agent_rule("none")).forward == frame
    assert time.process_time() - before < 2
