"""Whoever waits for an id whose frame is refused for its form gets an error that names the rule."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.protocol.acp import AcpChannel
from podbot.protocol.app_server import CodexChannel
from podbot.protocol.awaited import Wait, waits_in
from podbot.protocol.filter import Direction, FilterChannel
from podbot.protocol.jsontext import MAX_DEPTH, MAX_MESSAGES, MAX_STRUCTURE, Cut
from podbot.protocol.lines import HEAD, TAIL
from podbot.protocol.message import Message
from podbot.protocol.refusal import POLICY, REASONS
from podbot.streams.protocol_channel import Own, Side
from tests.protocol.drive import Outcome, from_agent, from_client

LIMIT = 1 << 20
VALUES = b"[" + b"1," * MAX_STRUCTURE + b"1]"
DEEP = b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1)

#: For each rule of form: a value that makes a message break it.
BROKEN = {
    "over_limit": b'"' + b"x" * LIMIT + b'"',
    "not_utf8": b'"\xff"',
    "carriage_return": b"{\r}",
    "unparseable": b"NaN",
    "too_deep": DEEP,
    "too_many_values": VALUES,
}
#: A message that breaks a rule by itself; %s is what makes it a request or a response.
MORE = {
    "duplicate_key": b'{"jsonrpc":"2.0","jsonrpc":"2.0","id":"a",%s:{}}',
    "ambiguous_key": b'{"Jsonrpc":"2.0","id":"a",%s:{}}',
    "bad_method": b'{"id":"a","method":5,%s:{}}',
}
REQUEST, RESPONSE = b'"method":"x","params"', b'"result"'
OPENING = {
    "bad_params": b'{"id":"a","method":"initialize","params":[]}',
    "duplicate_key": b'{"id":"a","method":"initialize","params":{"capabilities":{},"capabilities":{}}}',
}


def made(protocol: str) -> FilterChannel:
    return CodexChannel(limit=LIMIT) if protocol == "codex" else AcpChannel(limit=LIMIT)


def sent(frame: bytes, side: Side, protocol: str = "acp") -> Outcome:
    channel = made(protocol)
    return from_agent(frame, channel=channel) if side == "agent" else from_client(frame, channel=channel)


def answered(result: Outcome, side: Side) -> bytes:
    """podbot's frames for the sender."""
    return result.to_agent if side == "agent" else result.to_client


def error_of(frame: bytes) -> tuple[Any, int, str]:
    (line,) = frame.splitlines()
    found = json.loads(line)
    rule = found["error"]["data"]["rule"]
    assert found["error"]["data"] == {"reason": "podbot_frame_form", "rule": rule}
    assert REASONS[rule] in found["error"]["message"]
    return found["id"], found["error"]["code"], rule


def check(frame: bytes, rule: str, side: Side, protocol: str, *, asks: bool, raw_id: Any = "a") -> None:
    after = b'{"id":2,"result":{}}\n'
    result = sent(frame + b"\n" + after, side, protocol)
    assert result.reasons == [rule]
    assert (result.to_client if side == "agent" else result.to_agent) == after, "the session goes on"
    back, forth = answered(result, side), result.errors
    assert error_of(back if asks else forth) == (raw_id, -32600 if asks else -32603, rule)
    assert (forth if asks else back) == b""
    assert ('"jsonrpc"' in (back + forth).decode()) == (protocol == "acp")


@pytest.mark.parametrize("protocol", ["acp", "codex"])
@pytest.mark.parametrize("side", ["agent", "client"])
@pytest.mark.parametrize("rule", BROKEN)
@pytest.mark.parametrize(
    "form", ['{"jsonrpc":"2.0","id":"a",%s:%s}', '{"jsonrpc":"2.0",%s:%s,"id":"a"}', '{%s:%s , "id" : "a" }']
)
def test_whoever_waits_gets_an_error_that_names_the_rule(form: str, rule: str, side: Side, protocol: str) -> None:
    for asks, kind in ((True, REQUEST), (False, RESPONSE), (False, b'"error"')):
        check(form.encode() % (kind, BROKEN[rule]), rule, side, protocol, asks=asks)


@pytest.mark.parametrize("protocol", ["acp", "codex"])
@pytest.mark.parametrize("side", ["agent", "client"])
@pytest.mark.parametrize("rule", MORE)
def test_the_same_for_the_rules_of_an_envelope(rule: str, side: Side, protocol: str) -> None:
    for asks, kind in ((True, REQUEST), (False, RESPONSE)):
        if rule == "bad_method" and asks:
            check(MORE[rule] % b'"params"', rule, side, protocol, asks=True)
        elif rule != "bad_method":
            check(MORE[rule] % kind, rule, side, protocol, asks=asks)


@pytest.mark.parametrize("protocol", ["acp", "codex"])
@pytest.mark.parametrize("rule", OPENING)
def test_the_same_for_the_parameters_that_a_rule_examines(rule: str, protocol: str) -> None:
    check(OPENING[rule], rule, "client", protocol, asks=True)


def test_an_answer_with_two_lists_of_login_methods() -> None:
    check(b'{"id":"a","result":{"authMethods":[],"auth_methods":[]}}', "duplicate_key", "agent", "acp", asks=False)


@pytest.mark.parametrize("side", ["agent", "client"])
def test_a_request_whose_id_is_not_valid_is_answered_with_null(side: Side) -> None:
    for raw in (b"[1]", b"true", b'{"a":1}'):
        check(b'{"id":%s,"method":"x"}' % raw, "bad_id", side, "acp", asks=True, raw_id=None)
    assert sent(b'{"id":[1],"result":{}}\n', side).errors == b"", "nobody has asked with such an id"


@pytest.mark.parametrize("side", ["agent", "client"])
def test_each_message_of_a_batch(side: Side) -> None:
    good = b'{"id":1,"result":{}}'
    bad = b'{"id":2,"method":"x","params":[],"params":[]},{"id":3,"result":1,"error":1,"error":2}'
    result = sent(b"[" + good + b"," + bad + b"]\n", side)
    assert result.reasons == ["duplicate_key"] * 2
    assert error_of(answered(result, side)) == (2, -32600, "duplicate_key")
    assert error_of(result.errors) == (3, -32603, "duplicate_key")


@pytest.mark.parametrize("side", ["agent", "client"])
def test_each_message_of_a_batch_that_is_refused_as_a_whole(side: Side) -> None:
    """With too many messages, only those at its beginning: half a million would cost seconds and 100 MB of errors."""
    many = [b'{"id":%d,"result":{"id":0}}' % number for number in range(2 * MAX_MESSAGES)]
    result = sent(b"[" + b'{"id":"a","method":"x"},' + b",".join(many) + b"]\n", side)
    assert result.reasons == ["bad_batch"]
    ids = [json.loads(line)["id"] for line in result.errors.splitlines()]
    assert ids == list(range(len(ids)))
    assert 100 < len(ids) < 200
    assert error_of(answered(result, side)) == ("a", -32600, "bad_batch")
    short = sent(b'[{"id":1,"method":"x"},{"id":2,"result":[]},{"id":3,"result":NaN}]\n', side)
    assert error_of(answered(short, side))[0] == 1
    assert [json.loads(line)["id"] for line in short.errors.splitlines()] == [2, 3]


def test_every_rule_of_form_is_tested() -> None:
    here = {*BROKEN, *MORE, *OPENING, "bad_id", "bad_batch", "not_jsonrpc"}
    other = {"not_object", "too_many_marks", "overlapping_changes"}
    assert here | other == set(REASONS) - POLICY, "questions are answered"


def test_a_frame_in_which_a_rules_changes_overlap_is_refused_and_answered() -> None:
    def rule(_message: Message) -> tuple[list[Cut], str]:
        return [(1, 9), (2, 3, "x")], "marked_question"

    for frame in (b'{"id":1,"method":"x"}\n', b'[{"id":1,"method":"x"}]\n'):
        channel = FilterChannel(Direction(rule), Direction(rule), limit=1000, salvage=False, notices=[])
        result = from_agent(frame, channel=channel)
        assert (result.to_client, result.reasons) == (b"", ["overlapping_changes"])
        assert error_of(result.to_agent) == (1, -32600, "overlapping_changes")


@pytest.mark.parametrize("side", ["agent", "client"])
def test_nobody_waits_for_a_notification(side: Side) -> None:
    for value in BROKEN.values():
        result = sent(b'{"method":"x","params":%s}\n' % value, side)
        assert (answered(result, side), result.errors, len(result.said)) == (b"", b"", 1)


def test_the_error_comes_in_order_and_is_podbots() -> None:
    channel = AcpChannel()
    good = b'{"method":"session/update","params":{}}\n'
    channel.agent_data(good + b'{"id":1,"result":NaN}\n' + good)
    first, error, second = channel.for_client()
    assert (first, second) == (good, good)
    assert [isinstance(frame, Own) for frame in (first, error, second)] == [False, True, False]
    assert channel.counts == (0, 0, 3, len(first + error + second), 1, 0)
    assert channel.refusals()[0].id == "1"


def test_an_overlong_frame_in_order() -> None:
    channel = AcpChannel(limit=100)
    good = b'{"method":"session/update","params":{}}\n'
    channel.agent_data(good + b'{"id":1,"result":"' + b"x" * 200)
    channel.agent_data(b'"}\n' + good)
    assert [isinstance(frame, Own) for frame in channel.for_client()] == [False, True, False]


UNFINISHED = [b'{"jsonrpc":"2.0","id":"a"}', b'{"id":"a"}', b' {"jsonrpc":"2.0","id":"a","_meta":{}}']


@pytest.mark.parametrize("protocol", ["acp", "codex"])
@pytest.mark.parametrize("frame", UNFINISHED)
def test_whoever_waits_for_an_answer_without_a_result_gets_an_error(frame: bytes, protocol: str) -> None:
    """JSON.stringify leaves an undefined result out. The line itself is moved to stderr like other output."""
    after = b'{"id":2,"result":{}}\n'
    result = sent(frame + b"\n" + after, "agent", protocol)
    assert error_of(result.errors) == ("a", -32603, "not_jsonrpc")
    assert (result.to_agent, result.to_client) == (b"", after)
    assert (result.noise, result.kinds, result.said) == (frame + b"\n", ["json"], [])
    assert ('"jsonrpc"' in result.errors.decode()) == (protocol == "acp")


@pytest.mark.parametrize("protocol", ["acp", "codex"])
@pytest.mark.parametrize("frame", [b'{"jsonrpc":"2.0","id":"a","params":{}}', b'{"params":[],"id":"a"}'])
def test_an_agent_that_waits_for_a_request_without_a_method_gets_an_error(frame: bytes, protocol: str) -> None:
    result = sent(frame, "agent", protocol)
    assert error_of(result.to_agent) == ("a", -32600, "not_jsonrpc")
    assert (result.errors, result.noise, result.said) == (b"", frame, [])


@pytest.mark.parametrize("protocol", ["acp", "codex"])
@pytest.mark.parametrize("frame", UNFINISHED)
def test_a_clients_answer_without_a_result_is_passed_on(frame: bytes, protocol: str) -> None:
    result = sent(frame + b"\n", "client", protocol)
    assert (result.to_agent, result.to_client, result.errors, result.said) == (frame + b"\n", b"", b"", [])


def test_the_error_for_an_unfinished_answer_comes_in_order_and_a_real_one_may_follow() -> None:
    channel = AcpChannel()
    good, late = b'{"method":"session/update","params":{}}\n', b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
    channel.agent_data(good + b'{"jsonrpc":"2.0","id":1}\n' + late)
    first, error, second = channel.for_client()
    assert (first, second) == (good, late), "as after any other refused answer"
    assert [isinstance(frame, Own) for frame in (first, error, second)] == [False, True, False]
    assert channel.counts == (0, 0, 3, len(first + error + second), 0, 0), "noise is not a refused frame"


def test_each_unfinished_message_gives_at_most_one_error() -> None:
    unfinished = b'{"jsonrpc":"2.0","id":1}\n'
    assert error_of(from_agent(b'{"jsonrpc":"2.0","id":1,"id":1}\n').errors) == (1, -32603, "duplicate_key")
    channel = AcpChannel()
    channel.client_eof()
    channel.agent_data(unfinished.replace(b"}", b',"params":{}}'))
    assert channel.for_agent() == [], "the agent's stdin is closed"
    result = from_agent(b"[\n" + unfinished + b"]\n")
    assert (result.errors, result.kinds) == (b"", ["pretty"] * 3), "a log may print a tool server's messages"
    result = from_agent(unfinished)
    assert (error_of(result.errors), result.kinds) == ((1, -32603, "not_jsonrpc"), ["json"])


NOISE = [
    b'log {"id":1,"result":NaN}',
    b'{"id":1,"level":"info"}',  # a line of a structured log, whose id is another one
    b'{"level":"info"}',
    b'{"jsonrpc":"2.0"}',
    b'{"jsonrpc":"2.0","id":null}',
    # JSON over several lines, also a whole answer: a log may print what tool servers send in this form, and
    # their ids are the small numbers that the client uses.
    b'{\n "id": 1,\n "result": NaN\n}',
    b'{\n  "jsonrpc": "2.0",\n  "id": 1,\n  "result": {}\n}',
    b'{\n{"id":1,"result":NaN}\n}',
]


@pytest.mark.parametrize("lines", NOISE)
def test_noise_is_not_answered(lines: bytes) -> None:
    result = from_agent(lines + b"\n")
    assert (result.to_agent, result.errors, result.said) == (b"", b"", [])
    assert result.noise == lines + b"\n"


BIG = b'"' + b"x" * (HEAD + TAIL) + b'"'


@pytest.mark.parametrize(
    ("frame", "waits"),
    [
        (b'{"id":1,"result":{"id":2}', [Wait("1", False)]),
        (b'\xef\xbb\xbf {"id" : -1.5e3 , "method":"x"}', [Wait("-1.5e3", True)]),
        (b'{"id":"\\u0061\\"","result"', [Wait('"\\u0061\\""', False)]),
        (b'{"i\\u0064":1,"ID":2,"id\\u0000x":3,"result":1}', [Wait(number, False) for number in "123"]),
        (b'{"id":1,"id":1,"result":1}', [Wait("1", False)]),
        (b'{"id":1,"params":{}', [Wait("1", True)]),
        (b'{"id":null,"method":"x"}', [Wait("null", True)]),
        (b'{"id":null,"result":1}', []),
        (b'{"id":12', []),
        (b'{"id":"ab', []),
        (b'{"id":"\\q","result":1}', []),
        (b'{"id":"\t","result":1}', []),
        (b'{"id":"\xff","result":1}', []),
        (b'{"id":01,"result":1}', []),
        (b'{"id":NaN,"result":1}', []),
        (b'{"id":Infinity,"method":1}', [Wait("null", True)]),
        (b'{"id":%s,"result":1}' % (b"9" * 3000), [Wait("9" * 3000, False)]),
        (b'{"\\q":1,"id":1,"result":1}', [Wait("1", False)]),
        (b'{"%s":1,"id":1,"result":1}' % (b"x" * 3000), [Wait("1", False)]),
        (b'{"a":"id","b":["id",1],"c":{"id":5}}', []),
        (b'{"a":1}{"id":1,"result":1}', []),
        (b"]]", []),
        (b"", []),
        (b'text {"id":1,"result":1}', []),
        (b'[{"id":1,"result":1},[{"id":2,"result":1}],{"id":3,"method":"x"', [Wait("1", False), Wait("3", True)]),
        (b'{"result":%s,"jsonrpc":"2.0","id":7}\n' % BIG, [Wait("7", False)]),
        (b'{"params":%s,"method":"x","id":"7" } \r\n' % BIG, [Wait('"7"', True)]),
        (b'{"result":%s,"id":7,"x":{}}\n' % BIG, []),
        (b'{"result":%s,"a":",\\"id\\":7"}\n' % BIG, []),
        (b'{"result":{"a":%s,"id":7}}\n' % BIG, []),
        (b'[{"id":1,"result":%s,"id":7}\n' % BIG, [Wait("1", False)]),
        (b'{"id":1,"result":[%s]}\n' % (b'"' + b'\\"' * 10_000 + b'"'), [Wait("1", False)]),
    ],
)
def test_ids_that_are_found(frame: bytes, waits: list[Wait]) -> None:
    assert waits_in(frame[:HEAD], frame[-TAIL:] if len(frame) > HEAD else b"") == waits


BYTES = st.binary() | st.lists(st.sampled_from(b'{}[]",:\\ \nid1a'), max_size=60).map(bytes)


@given(BYTES, BYTES)
def test_what_is_found_is_a_valid_id(head: bytes, tail: bytes) -> None:
    for raw, asks in waits_in(b'{"id":' + head, tail):
        assert isinstance(json.loads(raw), (str, int, float)) or (raw, asks) == ("null", True)
        assert "\n" not in raw


def test_the_frame_limit_decides_how_many_values_a_frame_may_have() -> None:
    values = b"[" + b"1," * 500_000 + b"1]"
    frame = b'{"jsonrpc":"2.0","id":3,"result":%s}\n' % values
    assert from_agent(frame).to_client == frame, "64 MiB allow 2,097,152"
    assert from_agent(frame, channel=AcpChannel(limit=4 << 20)).reasons == ["too_many_values"]
    assert from_agent(frame, channel=AcpChannel(limit=17 << 20)).to_client == frame
    assert from_agent(frame, channel=CodexChannel()).to_client == frame
    assert from_client(frame, channel=AcpChannel(limit=17 << 20)).to_agent == frame
