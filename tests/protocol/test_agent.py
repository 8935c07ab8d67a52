"""agent -> client: denied methods, passed methods, and answers."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from podbot.config.models import Delegation
from podbot.protocol.acp import AcpChannel
from podbot.protocol.jsontext import MAX_DEPTH, MAX_MESSAGES, Cut
from podbot.protocol.judge import judge
from podbot.protocol.message import Message
from podbot.protocol.refusal import REASONS
from tests.protocol import oracle
from tests.protocol.drive import from_agent, outcome
from tests.protocol.golden import DENIED, FROM_AGENT, NOISE, request


@pytest.mark.parametrize("frame", FROM_AGENT)
def test_passed_frames_keep_their_bytes(frame: bytes) -> None:
    result = from_agent(frame)
    assert result.to_client == frame
    assert (result.to_agent, result.noise, result.said) == (b"", b"", [])
    assert result.counts == (0, 0, 1, len(frame), 0, 0)


@pytest.mark.parametrize(
    ("frame", "raw_id"),
    list(
        zip(DENIED, ["7", '"x"', "null", "1.0", "12345678901234567890", "1e3", "8", "9", "10", "11", "12"], strict=True)
    ),
)
def test_a_denied_request_is_answered_with_the_same_id(frame: bytes, raw_id: str) -> None:
    result = from_agent(frame)
    assert (result.to_client, result.noise) == (b"", b"")
    assert result.to_agent.startswith(f'{{"jsonrpc":"2.0","id":{raw_id},"error":{{"code":-32001,"message":"'.encode())
    assert result.to_agent.endswith(b"}\n")
    assert result.to_agent.count(b"\n") == 1
    answer = json.loads(result.to_agent)
    method = json.loads(frame)["method"]
    assert answer["error"]["data"] == {"method": method, "reason": "podbot_capability_policy"}
    assert "capability policy" in answer["error"]["message"]
    assert answer["id"] == json.loads(raw_id)
    assert [(said.direction, said.method, said.id, said.size, said.reason) for said in result.said] == [
        ("agent", method, raw_id, len(frame), "denied_method")
    ]
    assert result.counts == (1, len(result.to_agent), 0, 0, 1, 0)


@pytest.mark.parametrize(
    "method",
    [
        "fs/anything", "FS/read_text_file", "/fs/x", "//fs/x", "_fs/x", "./fs/x", "fs.read", "fs_read", "fs", "fs//x",
        "$/terminal/x", "TERMINAL/create", "terminal", "mcp/connect", "MCP/Connect", "/mcp//connect", "mcp.connect",
        "mcp/message", "mcp/disconnect", "_zed.dev/fs/thing", "session/fs", "session/new", "initialize", "x", "",
        "Session/Update", "session/update ", " session/update", "session/update/", "session\\update",
        "session%2fupdate", "session/update\0", "session/update\0fs/x", "\0session/update", "session/update\n",
        "\ufeffsession/update",
        "s\u00e9ssion/update", "\u017fession/update", "session\u2044update", "session/upd\u0430te", "\ud800fs/x",
        "f\ud800s/x", "session/update\ud800", "fs/x\u2028", "x" * 5000,
    ],
)  # fmt: skip
def test_a_method_without_a_known_exact_name_is_denied(method: str) -> None:
    result = from_agent(request(method))
    assert result.to_client == b""
    assert result.reasons == ["denied_method"]
    answer = json.loads(result.to_agent)["error"]
    assert (answer["code"], answer["data"]["method"]) == (-32001, method[:200])
    shown = result.said[0].method
    assert shown is not None
    assert shown.isascii()
    assert shown.isprintable() or not method


@pytest.mark.parametrize("method", sorted(oracle.SHOWN - {"elicitation/create"}))
def test_methods_that_pass(method: str) -> None:
    for raw_id in ("1", None):
        frame = request(method, raw_id)
        assert from_agent(frame).to_client == frame


def test_a_json_spelling_of_a_known_name_is_that_name() -> None:
    frame = b'{"method":"\\u0073ession\\/update","params":{}}\n'
    assert from_agent(frame).to_client == frame


def test_extra_methods_pass_by_their_exact_names_only() -> None:
    extra = ["_example.com/show", "fs/read_text_file"]
    for method in extra:
        frame = request(method)
        assert from_agent(frame, channel=AcpChannel(extra_methods=extra)).to_client == frame
    for method in (
        "_example.com/shown",
        "_example.com",
        "_Example.com/show",
        "fs/write_text_file",
        "/fs/read_text_file",
    ):
        result = from_agent(request(method), channel=AcpChannel(extra_methods=extra))
        assert (result.to_client, result.reasons) == (b"", ["denied_method"])


def test_a_denied_notification_is_dropped() -> None:
    result = from_agent(request("fs/write_text_file", None))
    assert (result.to_agent, result.to_client, result.reasons) == (b"", b"", ["denied_method"])
    assert result.said[0].id is None


@pytest.mark.parametrize("raw", ["1", "null", "true", "[]", '["fs/x"]', "{}", "1.5"])
def test_a_method_that_is_not_a_string(raw: str) -> None:
    result = from_agent(f'{{"id":1,"method":{raw}}}\n'.encode())
    assert (result.to_client, result.errors, result.reasons) == (b"", b"", ["bad_method"])
    assert result.said[0].id == "1"
    assert json.loads(result.to_agent)["id"] == 1


@pytest.mark.parametrize("raw", ["true", "false", "[1]", '{"a":1}'])
def test_an_id_that_is_not_valid(raw: str) -> None:
    result = from_agent(f'{{"id":{raw},"method":"fs/x"}}\n'.encode())
    assert (result.to_client, result.errors, result.reasons) == (b"", b"", ["bad_id"])
    assert json.loads(result.to_agent)["id"] is None


@pytest.mark.parametrize("name", ["jsonrpc", "id", "method", "params", "result", "error"])
@pytest.mark.parametrize("second", ["same", "escaped", "upper", "title", "zero", "spaced"])
def test_deciding_members_occur_once_in_plain_spelling(name: str, second: str) -> None:
    spelled = {
        "same": name, "escaped": f"\\u{ord(name[0]):04x}{name[1:]}", "upper": name.upper(), "title": name.title(),
        "zero": f"{name}\\u0000x", "spaced": f" {name}",
    }[second]  # fmt: skip
    frame = f'{{"{name}":"session/x","a":1,"{spelled}":"fs/x"}}\n'.encode()
    result = from_agent(frame)
    assert (result.to_agent, result.to_client) == (b"", b"")
    assert result.reasons == ["duplicate_key" if second in ("same", "escaped") else "ambiguous_key"]
    alone = from_agent(f'{{"{spelled}":"fs/x","a":1}}\n'.encode())
    assert alone.to_client == b"" or second in ("same", "escaped")


@pytest.mark.parametrize(
    "frame",
    [
        '{"id":1,"__proto__":{"method":"fs/x"}}',
        '{"id":1,"result":{"__proto__":{"authMethods":[{"type":"terminal"}]}}}',
        '{"id":1,"result":{"_meta":{"__proto__":{"terminal-auth":{}}}}}',
        '{"id":1,"error":{"__proto__":{"data":{}}}}',
    ],
)
def test_members_that_a_copy_in_javascript_would_have(frame: str) -> None:
    result = from_agent(frame.encode())
    assert (result.to_client, result.reasons) == (b"", ["ambiguous_key"])


def test_a_name_that_ends_at_nul_however_long_it_is() -> None:
    for tail in ("", "x" * 100):
        assert from_agent(f'{{"id":1,"method\\u0000{tail}":"fs/x"}}'.encode()).reasons == ["ambiguous_key"]


def test_duplicates_elsewhere_pass() -> None:
    frame = b'{"method":"session/update","params":{"a":1,"a":2,"method":"fs/x","method":"fs/y"},"x":1,"x":2}\n'
    assert from_agent(frame).to_client == frame


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        (b'{"method":"fs/x"', "unparseable"),
        (b'{"method":"fs/x"}}', "unparseable"),
        (b'{"method":"fs/x"} {"a":1}', "unparseable"),
        (b'\xef\xbb\xbf{"method":"fs/x"}', "unparseable"),
        (b'{"a":NaN}', "unparseable"),
        (b'{"a":"\x00"}', "unparseable"),
        (b'{"a":"\xff"}', "not_utf8"),
        (b'{"a":1,\r{"method":"fs/x"}\r}', "carriage_return"),
        (b'[{"a":1},', "unparseable"),
        (b"[]", "bad_batch"),
        (b"[[" * MAX_DEPTH + b"]]" * MAX_DEPTH, "too_deep"),
        (b'{"a":' * 100_000, "too_deep"),
        (b"[" + b"{}," * MAX_MESSAGES + b"{}]", "bad_batch"),
        (b'{"a":[' + b"1," * 3_000_000 + b"1]}", "too_many_values"),
    ],
)
def test_a_frame_that_cannot_be_judged_is_refused_once(frame: bytes, reason: str) -> None:
    for end in (b"\n", b""):
        result = from_agent(frame + end)
        assert (result.to_agent, result.to_client, result.noise) == (b"", b"", b"")
        assert result.reasons == [reason]
        assert result.said[0].size == len(frame + end)
        assert result.said[0].text == REASONS[reason]
        assert result.counts.refused == 1


def test_a_stack_that_is_nearly_used_up() -> None:
    depth = 100
    frame = b'{"method":"session/update","params":' + b"[" * depth + b"]" * depth + b"}\n"
    found = []

    def descend(left: int) -> None:
        if left:
            descend(left - 1)
        else:
            found.append(from_agent(frame))

    here = len(_stack())
    descend(sys.getrecursionlimit() - here - 100)
    assert found[0].reasons in (["too_deep"], [])
    assert found[0].to_client == (b"" if found[0].said else frame)


def test_a_stack_that_is_used_up_while_a_message_is_judged() -> None:
    def rule(message: Message) -> tuple[list[Cut], str]:
        return rule(message)

    verdict = judge(b'{"method":"x"}\n', "agent", rule)
    assert (verdict.forward, [said.reason for said in verdict.said]) == (None, ["too_deep"])


def _stack() -> list[Any]:
    frames = []
    frame: Any = sys._getframe()  # noqa: SLF001 - the standard library's only way
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    return frames


def test_over_the_limit() -> None:
    channel = AcpChannel(limit=40)
    frame = b'{"method":"session/update","a":"aaaaaa"}\n'
    assert len(frame) == 41
    fine = b'{"method":"session/update"}\n'
    result = from_agent(frame + fine + b"x" * 100, channel=channel, places=range(200))
    assert result.to_client == fine
    assert [(said.reason, said.size) for said in result.said] == [("over_limit", 41), ("over_limit", 100)]


def test_noise_goes_to_stderr() -> None:
    result = from_agent(b"".join(NOISE) + b"last")
    assert result.noise == b"".join(line for line in NOISE if line.strip()) + b"last"
    assert (result.to_client, result.said) == (b"", [])


def test_blank_lines_are_dropped() -> None:
    frame = b'{"id":1,"result":null}\n'
    result = from_agent(b"\n \t\r\n" * 1000 + frame + b"\n ")
    assert (result.to_client, result.moved, result.said) == (frame, [], [])


def test_the_last_frame_without_newline() -> None:
    assert from_agent(b'{"id":1,"result":null}').to_client == b'{"id":1,"result":null}'
    result = from_agent(request("fs/x")[:-1])
    assert result.to_client == b""
    assert result.to_agent


def test_a_chunk_of_valid_frames_is_one_piece() -> None:
    channel = AcpChannel()
    channel.agent_data(b"".join(FROM_AGENT) + DENIED[0] + FROM_AGENT[0])
    assert channel.for_client() == [b"".join(FROM_AGENT) + FROM_AGENT[0]]
    assert channel.for_client() == []
    assert len(channel.for_agent()) == 1
    assert channel.for_agent() == []
    assert len(channel.refusals()) == 1
    assert channel.refusals() == []
    assert channel.noise() == []


def test_no_answer_is_inserted_after_the_clients_last_frame() -> None:
    channel = AcpChannel()
    channel.client_data(b'{"id":1}')
    channel.client_eof()
    assert channel.for_agent() == [b'{"id":1}']
    result = from_agent(DENIED[0], channel=channel)
    assert (result.to_agent, result.to_client, result.reasons) == (b"", b"", ["denied_method"])


# --- batches ---------------------------------------------------------------------------------


def test_a_batch_is_rebuilt_from_its_own_bytes() -> None:
    good = b'{ "jsonrpc":"2.0","method":"session/update","params":{"n":1e3} }'
    other = b'{"id":9,"result":{"a":[1,2]}}'
    frame = (
        b" [ "
        + good
        + b" , "
        + DENIED[0][:-1]
        + b',[],"x",[{"method":"fs/x"}],'
        + other
        + b' , {"method":"fs/z"} ]\r\n'
    )
    result = from_agent(frame)
    assert result.to_client == b" [ " + good + b" , " + other + b" ]\r\n"
    assert result.reasons == ["denied_method", "not_object", "not_object", "not_object", "denied_method"]
    assert [said.size for said in result.said] == [len(DENIED[0]) - 1, 2, 3, 19, 17]
    assert result.to_agent.count(b"\n") == 1
    assert json.loads(result.to_agent)["id"] == 7


def test_a_batch_without_remaining_messages() -> None:
    result = from_agent(b"[" + DENIED[0][:-1] + b"," + DENIED[1][:-1] + b"]\n")
    assert result.to_client == b""
    assert result.to_agent.count(b"\n") == 2
    assert result.reasons == ["denied_method"] * 2


def test_an_invalid_element_does_not_affect_the_others() -> None:
    good = b'{"method":"session/update"}'
    result = from_agent(b"[" + good + b',{"method":"x","method":"fs/x","id":1},{"ID":1},{"a":1},{"id":1}]\n')
    assert result.to_client == b"[" + good + b"]\n"
    assert result.reasons == ["duplicate_key", "ambiguous_key", "not_jsonrpc", "not_jsonrpc"]
    assert [json.loads(answer)["id"] for answer in result.to_agent.splitlines()] == [1]
    assert [json.loads(error)["id"] for error in result.errors.splitlines()] == [1, 1]


# --- delegation ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("delegation", "parts"),
    [("none", ()), ("fs", ("fs",)), ("terminal", ("terminal",)), ("all", ("fs", "terminal", "mcp"))],
)
def test_delegation_lets_the_methods_of_its_parts_pass(delegation: Delegation, parts: tuple[str, ...]) -> None:
    assert sum(map(len, oracle.ACTING.values())) == 10
    for part, methods in oracle.ACTING.items():
        for method in (*methods, f"{part}/other"):
            result = from_agent(request(method), channel=AcpChannel(delegation=delegation))
            passes = part in parts and method in methods
            assert bool(result.to_client) == passes
            assert result.reasons == ([] if passes else ["denied_method"])
            if not passes:
                assert f"agent.delegation = {delegation}" in json.loads(result.to_agent)["error"]["message"]


def test_reports_contain_nothing_of_a_frame() -> None:
    secret = "hunter2"
    frames = [
        f'{{"method":"fs/write","id":1,"params":"{secret}"}}',
        f'{{"{secret}',
        f'{{"a":1,"A":"{secret}","method":"a","method":"{secret}"}}',
    ]
    channel = AcpChannel()
    channel.agent_data("\n".join([*frames, ""]).encode())
    result = outcome(channel)
    assert len(result.said) == 3
    assert secret not in repr(result.said)
    long = from_agent(request("fs/" + "x" * 500, '"' + "y" * 500 + '"')).said[0]
    assert (len(long.method or ""), len(long.id or "")) == (103, 103)


def test_an_answer_is_never_inserted_into_a_frame_of_the_client() -> None:
    channel = AcpChannel()
    channel.client_data(b'{"id":1,')
    channel.agent_data(b'{"id":9,"method":"fs/x"}\n')
    (answer,) = channel.for_agent()
    assert json.loads(answer)["id"] == 9
    channel.client_data(b'"method":"x"}\n')
    assert channel.for_agent() == [b'{"id":1,"method":"x"}\n']
