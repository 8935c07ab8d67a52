"""agent -> client: output that is not a frame, the reply behind it, and JSON that is not JSON-RPC (issue 10.18)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podbot.protocol.acp import AcpChannel
from podbot.protocol.first_reply import LONGEST_ID, MOST_IDS, Opening
from podbot.protocol.noise import MOST_LINES, Spread
from podbot.protocol.path_map import PathScope
from tests.protocol.drive import after, from_agent
from tests.protocol.golden import DENIED, FROM_AGENT, LOGINS, ZED, request

REPLY = b'{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}\n'
ASKED = request("session/new", "1")
BANNERS = [b"Loading... ", b"\x1b[2K\x1b[1G", b"\x1b[32mready\x1b[0m", b"> ", b"\xff\xfe", b"C:\\", b"}", b"]"]


# --- the first reply, behind a banner -------------------------------------------------------------------


@pytest.mark.parametrize("banner", BANNERS)
@pytest.mark.parametrize("frame", [REPLY, FROM_AGENT[2], FROM_AGENT[4].replace(b":3,", b":1,"), REPLY[:-1]])
def test_a_banner_without_a_newline_does_not_hide_the_reply(banner: bytes, frame: bytes) -> None:
    result = from_agent(b"text\n" + banner + frame, channel=after(ASKED))
    assert result.to_client == frame
    assert [(noise.kind, noise.line) for noise in result.moved] == [("text", b"text\n"), ("before_frame", banner)]
    assert result.said == []
    assert result.counts.frames_to_client == 1


@pytest.mark.parametrize(
    "asked",
    [
        request("initialize", "1"),  # masked or not
        ZED.replace(b'"id":0', b'"id":1'),
        request("session/new", "2") + request("session/new", "1"),
        b'{"id": 1 , "method": "initialize", "params": {}}\r\n',
    ],
)
def test_a_reply_to_any_request_of_the_client_is_found(asked: bytes) -> None:
    assert from_agent(b"> " + REPLY, channel=after(asked)).to_client == REPLY


OTHERS = b'"result":{"protocolVersion":1}}'


@pytest.mark.parametrize(
    "line",
    [
        b'DEBUG mcp(evil) <- {"jsonrpc":"2.0","id":2,' + OTHERS,  # no request has this id
        b'DEBUG mcp(evil) <- {"jsonrpc":"2.0","id":"1",' + OTHERS,
        b'DEBUG mcp(evil) <- {"jsonrpc":"2.0","id":1.0,' + OTHERS,
        b'DEBUG mcp(evil) <- {"jsonrpc":"2.0",' + OTHERS,
        b'tool said: {"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{}}',
        b'tool said: {"jsonrpc":"2.0","method":"session/update","params":{}}',
        b'tool said: {"jsonrpc":"2.0","id":1,"method":"session/x","result":{}}',
        b'Result: {"message": {"jsonrpc":"2.0","id":1,"result":{}}',
        b'Result: "x {"jsonrpc":"2.0","id":1,"result":{}}',
        b'Result: [1, {"jsonrpc":"2.0","id":1,"result":{}}',
        b'[INFO] mcp <- {"jsonrpc":"2.0","id":1,"result":{}}',
        b'\x1b[1m[{"jsonrpc":"2.0","id":1,"result":{}}',
        b'request failed {"id":1,"error":"timeout"}',  # a log line's object, not a message
        b'sent {"jsonrpc":"1.0","id":1,"result":{}}',
        b'sent {"jsonrpc":"2.0","id":1}',
        b'sent {"jsonrpc":"2.0","id":1,"result":{}} in 5 ms',
        b'sent {"jsonrpc":"2.0","id":1,"result":{}}}',
        b'sent {"jsonrpc":"2.0","id":1,"result":"x}',
        b'sent {"jsonrpc":"2.0","id":1,"result":NaN}',
        b'sent {"jsonrpc":"2.0","id":1,"id":1,"result":{}}',
        b'sent {"jsonrpc":"2.0","id":1,"Result":1,"result":{}}',
        b'sent {"jsonrpc":"2.0","id":1,"result":"\xff"}',
        b'sent {"jsonrpc":"2.0","id":1,"result":[' + b"1," * 500_000 + b"1]}",
        b'sent {"jsonrpc":"2.0","id":1,"result":' + b"[" * 1000 + b"]" * 1000 + b"}",
        b"sent {",
    ],
)
def test_a_third_partys_message_in_the_agents_log_is_not_a_frame(line: bytes) -> None:
    """Before, a tool's or a server's JSON-RPC on a line of the agent's log was passed as the agent's own message."""
    result = from_agent(line + b"\n" + REPLY, channel=after(ASKED))
    assert (result.to_client, result.noise, result.kinds, result.said) == (REPLY, line + b"\n", ["text"], [])


@pytest.mark.parametrize("first", [REPLY, FROM_AGENT[0], FROM_AGENT[5], b"> " + REPLY])
def test_no_reply_is_extracted_once_the_agent_has_written_a_frame(first: bytes) -> None:
    """A banner comes at the beginning. ``first``: by the fast path, by the judge, and one that was extracted."""
    channel = after(ASKED, request("session/prompt", "2"))
    late = b'log <- {"jsonrpc":"2.0","id":2,"result":{}}\n'
    result = from_agent(first + late, channel=channel)
    assert (result.to_client, result.kinds[-1]) == (first.removeprefix(b"> "), "text")
    after(request("session/prompt", "3"), channel=channel)
    assert from_agent(late.replace(b":2,", b":3,"), channel=channel).to_client == b""


def test_an_invalid_frame_does_not_end_the_beginning() -> None:
    result = from_agent(b"{bad\n" + DENIED[0] + b'{"level":1}\n> ' + REPLY, channel=after(ASKED))
    assert (result.to_client, result.reasons) == (REPLY, ["unparseable", "denied_method"])


def test_only_requests_that_went_to_the_agent_have_a_reply() -> None:
    outside = AcpChannel(mount=PathScope("/ws", "/ws"))
    after(request("session/new", "1", cwd="/etc"), b'{"id":1,"result":{}}\n{"method":"x"}\n', channel=outside)
    result = from_agent(b"> " + REPLY, channel=outside)
    assert (result.errors.count(b"podbot_outside_mount"), result.kinds) == (1, ["text"])
    assert from_agent(b"> " + REPLY, channel=after(b"[" + ASKED.strip() + b"]\n")).to_client == b""  # a batch


def test_a_client_cannot_make_the_memory_grow() -> None:
    first = [request("x", str(number)) for number in range(MOST_IDS)]
    assert from_agent(b"> " + REPLY, channel=after(*first)).to_client == REPLY
    assert from_agent(b"> " + REPLY, channel=after(*first[2:], *first[:1], ASKED)).to_client == REPLY
    assert from_agent(b"> " + REPLY, channel=after(*first[2:], *first[:1], request("x", "-1"), ASKED)).to_client == b""
    long = '"' + "a" * LONGEST_ID + '"'
    reply = REPLY.replace(b":1,", b":%b," % long.encode())
    assert from_agent(b"> " + reply, channel=after(request("x", long))).to_client == b""


def test_an_extracted_reply_is_judged_like_a_line_of_its_own() -> None:
    asked = request("initialize", "0")
    assert from_agent(b"ready " + LOGINS, channel=after(asked)).to_client == from_agent(LOGINS).to_client != LOGINS
    twice = b'{"jsonrpc":"2.0","id":0,"result":{"authMethods":[],"authMethods":[]}}\n'
    result = from_agent(b"ready " + twice + b"> " + twice, channel=after(asked))
    assert (result.to_client, result.reasons, result.kinds) == (b"", ["duplicate_key"], ["before_frame", "text"])


def test_a_broken_line_that_begins_as_json_is_refused_and_not_searched() -> None:
    """A truncated frame may end with an object that another program wrote."""
    cut = b'{"jsonrpc":"2.0","method":"session/update","params":{"raw":{"jsonrpc":"2.0","id":1,"result":{}}\n'
    result = from_agent(cut, channel=after(ASKED))
    assert (result.to_client, result.reasons) == (b"", ["unparseable"])


INNER = st.recursive(
    st.sampled_from(["{", "}", '"', "\\", '{"jsonrpc":"2.0","method":"x"}', "", "a"]) | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('{}"\\a', max_size=4), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.binary(max_size=30), INNER)
def test_the_complete_reply_is_found_behind_any_text_that_is_not_json(noise: bytes, inner: object) -> None:
    front = b"#" + noise.translate(None, b'{["\n')
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": inner}).encode()
    assert _opening(ASKED).reply_at(front + body) == len(front)


@settings(deadline=None)
@given(st.text('{}[]"\\:,1 ', max_size=40), st.text('{}[]"\\:,1 ', max_size=12))
def test_nothing_is_extracted_after_the_beginning_of_a_value(noise: str, middle: str) -> None:
    line = f'{noise}{{"jsonrpc":"2.0","id":1,"result":{middle}}}'
    place = _opening(ASKED).reply_at(line.encode())
    assert place in (0, len(noise))
    if place:
        assert not set(noise) & set('{["')
        assert json.loads(line[place:])["id"] == 1


def _opening(frames: bytes) -> Opening:
    opening = Opening()
    opening.sent(frames)
    return opening


# --- JSON that is no JSON-RPC ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b'{"level":"info","msg":"ready"}\n',
        b"{}\n",
        b' {"id":1}\n',
        b'{"result":1}\n',
        b'{"jsonrpc":"2.0","id":1}\n',
        b'{"jsonrpc":"2.0","error":{"code":1}}\n',
        b'{"level":"info"}',
    ],
)
def test_json_that_is_not_json_rpc_is_moved(line: bytes) -> None:
    result = from_agent(line)
    assert (result.to_client, result.noise, result.kinds, result.said) == (b"", line, ["json"], [])


@pytest.mark.parametrize(
    "line",
    [
        b'{"method":"session/update"}\n',
        b'{"id":1,"result":null}\n',
        b'{"id":null,"error":1}\n',
        b'{"id":1,"method":"session/update"}\n',
    ],
)
def test_a_message_needs_no_version_member(line: bytes) -> None:
    assert from_agent(line).to_client == line
    assert from_agent(line.replace(b'"session/update"', b'"fs/x"').replace(b"null", b"7")).to_client == (
        b"" if b'"session/update"' in line else line.replace(b"null", b"7")
    )


def test_in_a_batch_it_is_refused_and_removed() -> None:
    result = from_agent(b'[{"level":"info"},{"method":"session/update"}]\n[{"level":"info"}]\n')
    assert result.to_client == b'[{"method":"session/update"}]\n'
    assert (result.reasons, result.moved, result.errors) == (["not_jsonrpc", "not_jsonrpc"], [], b"")
    answered = from_agent(b'[{"id":1},{"id":2,"level":"info"}]\n').errors
    assert [json.loads(line)["id"] for line in answered.splitlines()] == [1, 2]


# --- JSON that is spread over lines ----------------------------------------------------------------------

LOGGED = {"level": "info", "list": [{"id": 1, "result": {}}, [], [{}], "}"], "params": {"method": "fs/x"}}


@pytest.mark.parametrize("value", [LOGGED, [LOGGED, 1], [[]], {"jsonrpc": "2.0", "id": 1, "result": {"a": []}}])
@pytest.mark.parametrize("indent", [1, 2, "\t"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_json_over_several_lines_is_moved_as_a_whole_with_one_report(
    value: object, indent: int | str, end: bytes
) -> None:
    text = json.dumps(value, indent=indent).encode().replace(b"\n", end) + end
    result = from_agent(REPLY + text + REPLY + b"text\n")
    assert result.to_client == REPLY + REPLY
    assert result.noise == text + b"text\n"
    assert set(result.kinds[:-1]) == {"pretty"}
    assert result.kinds[-1] == "text"
    assert result.said == []


@pytest.mark.parametrize("frame", [REPLY, FROM_AGENT[0], FROM_AGENT[7]])
def test_a_frame_between_its_lines_is_a_frame(frame: bytes) -> None:
    result = from_agent(b'{\n  "a": 1,\n' + frame + b"text\n")
    assert result.to_client == frame
    assert result.kinds == ["pretty", "pretty", "text"]


def test_a_reply_behind_its_last_bracket_is_extracted_but_none_of_its_parts() -> None:
    parts = b'{\n  "a": {"jsonrpc":"2.0","id":1,"result":{}}\n  } {"jsonrpc":"2.0","id":1,"result":{}}\n}'
    result = from_agent(parts + REPLY, channel=after(ASKED))
    assert result.to_client == REPLY
    assert result.kinds == ["pretty"] * 3 + ["before_frame"]


def test_a_refused_frame_in_between_is_refused() -> None:
    result = from_agent(b"{\n" + DENIED[0] + b"text\n")
    assert (result.to_client, result.reasons, result.kinds) == (b"", ["denied_method"], ["pretty", "text"])


def test_a_line_that_only_begins_like_a_frame_belongs_to_it() -> None:
    result = from_agent(b'{\n{broken}\n{"a":1}\n' + REPLY)
    assert (result.to_client, result.kinds, result.said) == (REPLY, ["pretty"] * 3, [])


def test_its_length_is_limited() -> None:
    result = from_agent(b"{\n" + b" x\n" * (MOST_LINES + 1))
    assert result.kinds == ["pretty"] * (MOST_LINES + 1) + ["text"]


def test_the_first_bracket_is_alone_on_its_line() -> None:
    follows = Spread()
    assert follows.begins(b"[{\r\n")
    assert not follows.begins(b"{" + b" " * 20 + b"\n")
    assert not follows.begins(b"{}\n")


@pytest.mark.parametrize("size", [1, 3, 7])
def test_any_division_gives_the_same(size: int) -> None:
    stream = b"ready " + REPLY + json.dumps(LOGGED, indent=2).encode() + REPLY + b'{"level":1}\n' + b"end " + DENIED[1]
    places = range(0, len(stream), size)
    assert from_agent(stream, places=places, channel=after(ASKED)) == from_agent(stream, channel=after(ASKED))
