"""What a client sends over stdio that is no message, or that cancels nothing: it is answered, and harms nothing."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from podbot.mcp.bounded_lines import LINE_BYTES, BoundedLines, LongLine
from podbot.mcp.refused_messages import DEPTH, DIGITS, refusal
from podbot.mcp.request_errors import invalid_parameter
from tests.mcp.pipes import HELLO, READY, Pipes, call, request
from tests.mcp.workspaces import Served
from tests.waiting import wait_until

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS = -32700, -32600, -32602  # of JSON-RPC 2.0
HALF = b"x" * (LINE_BYTES // 2)


def refused(served: Served) -> list[str]:
    """What was reported about them."""
    return [event.message for event in served.events if event.kind == "mcp.line_refused"]


@pytest.mark.parametrize(
    ("line", "code", "number"),
    [
        (b"no json", PARSE_ERROR, None),
        (b"\xff\xfe", PARSE_ERROR, None),
        (b"{" * 20_000, PARSE_ERROR, None),
        (b'{"jsonrpc": "2.0", "id": 7, "method": "ping"', PARSE_ERROR, None),
        (b'{"jsonrpc": "2.0", "id": NaN, "method": "ping"}', PARSE_ERROR, None),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', INVALID_REQUEST, None),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', INVALID_REQUEST, None),
        (b"[]", INVALID_REQUEST, None),
        (b"7", INVALID_REQUEST, None),
        (b'{"jsonrpc": "2.0"}', INVALID_REQUEST, None),
        (b'[{"jsonrpc": "2.0", "id": 7, "method": "ping"}]', INVALID_REQUEST, None),  # a batch
        (b'{"jsonrpc": "1.0", "id": 7, "method": "ping"}', INVALID_REQUEST, 7),
        (b'{"jsonrpc": "2.0", "id": "a", "method": "ping", "params": 1}', INVALID_REQUEST, "a"),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping", "params": 1}', INVALID_REQUEST, None),
        (b'{"jsonrpc": "2.0", "id": 7, "method": 8}', INVALID_REQUEST, None),
        (b'{"jsonrpc": "2.0", "id": 7, "result": 8}', INVALID_REQUEST, None),
        (HALF + HALF + b"x", INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":7,"method":"' + HALF + HALF, INVALID_REQUEST, 7),
        (b'{"method":"' + HALF + HALF + b'","jsonrpc":"2.0","id":"a-7"}', INVALID_REQUEST, "a-7"),
        (b'{"result":"' + HALF + HALF + b'","jsonrpc":"2.0","id":7}', INVALID_REQUEST, None),
        (b'{"jsonrpc":"2.0","id":7,"result":"' + HALF + HALF, INVALID_REQUEST, None),
    ],
    ids=lambda value: value[:50].decode("latin-1") if isinstance(value, bytes) else None,
)
def test_a_line_that_is_no_message_is_answered_with_an_error(
    served: Served, pipes: Pipes, line: bytes, code: int, number: str | int | None
) -> None:
    pipes.send(HELLO, READY)
    pipes.answer(1)
    pipes.send(line + b"\n")
    answer = pipes.next()
    assert (answer["error"]["code"], answer["id"]) == (code, number)
    assert f"{len(line.decode('utf-8', 'replace').encode()):,} bytes" in answer["error"]["message"]
    assert (f"{LINE_BYTES:,}" in answer["error"]["message"]) == (len(line) > LINE_BYTES)
    pipes.send(call(2, "sandbox_list"))
    assert not pipes.answer(2)["result"]["isError"]
    assert len(refused(served)) == 1


def listing(content: str, *, first: bool = True) -> str:
    """A request with an argument, as the SDKs write it: its id first, or last."""
    called = f'"method":"tools/call","params":{{"name":"ls","arguments":{{"path":{content}}}}}'
    return f'{{"jsonrpc":"2.0","id":7,{called}}}' if first else f'{{{called},"jsonrpc":"2.0","id":7}}'


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize("first", [True, False], ids=["id first", "id last"])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("9" * 5000, ("5,000 digits", f"{DIGITS:,}")),
        ("-" + "9" * 4301, ("4,301 digits", f"{DIGITS:,}")),
        (r'"\ud800"', ("lone surrogate",)),
        (r'"\udc00 and so on"', ("lone surrogate",)),
        (nested(400), ("403 deep", f"{DEPTH}")),
        (nested(100_000), (f"the limit is {DEPTH}",)),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else None,
)
def test_json_that_cannot_be_read_is_refused_with_the_reason_and_the_requests_id(
    served: Served, pipes: Pipes, content: str, words: tuple[str, ...], first: bool
) -> None:
    pipes.send(HELLO, READY)
    pipes.answer(1)
    pipes.send(listing(content, first=first).encode() + b"\n")
    answer = pipes.next()
    assert (answer["id"], answer["error"]["code"]) == (7, INVALID_REQUEST)
    for word in words:
        assert word in answer["error"]["message"]
    assert len(answer["error"]["message"]) < 200
    pipes.send(call(8, "sandbox_list"))
    assert not pipes.answer(8)["result"]["isError"]


@pytest.mark.parametrize(
    "line",
    [
        '{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}',
        f'{{"jsonrpc": "2.0", "id": {"9" * 5000}, "method": "ping"}}',
        f'{{"jsonrpc": "2.0", "id": 7, "result": {{"x": {"9" * 5000}}}}}',
        nested(400),
    ],
    ids=lambda line: line[:45],
)
def test_an_id_that_cannot_be_told_is_null(line: str) -> None:
    error = refusal(line)
    assert error is not None
    assert (error.id, error.error.code) == (None, INVALID_REQUEST)


def test_what_is_just_within_the_limits_of_json_is_read() -> None:
    assert refusal(listing("9" * DIGITS)) is None
    assert refusal(listing(nested(DEPTH - 3))) is None
    beyond = [refusal(listing(text)) for text in ("9" * (DIGITS + 1), nested(DEPTH - 2))]
    assert [error.id for error in beyond if error is not None] == [7, 7]


def test_the_reason_says_that_an_id_is_none() -> None:
    error = refusal('{"jsonrpc": "2.0", "id": null, "method": "ping"}')
    assert error is not None
    assert "id is neither text nor an integer" in error.error.message


def test_a_line_of_the_most_bytes_is_served(served: Served, pipes: Pipes) -> None:
    message = json.dumps(call(2, "ls", {"path": ""})).encode()
    pipes.send(HELLO, READY, message.ljust(LINE_BYTES) + b"\n")
    assert not pipes.answer(2)["result"]["isError"]
    pipes.send(message.ljust(LINE_BYTES + 1) + b"\n")
    assert pipes.answer(2)["error"]["code"] == INVALID_REQUEST


def test_lines_without_content_have_no_answer(served: Served, pipes: Pipes) -> None:
    pipes.send(b"\n", b"  \r\n", HELLO)
    assert pipes.next()["id"] == 1
    assert refused(served) == []


def test_a_request_that_is_malformed_harms_nothing(served: Served, pipes: Pipes) -> None:
    pipes.send(HELLO, READY, request(2, "nonsense/method"), request(3, "tools/call", {"name": 7}))
    pipes.send(request(4, "tools/call"), request(5, "tools/call", {"name": "ls", "arguments": []}))
    assert [pipes.answer(number)["error"]["code"] for number in (2, 3, 4, 5)] == [-32601, -32602, -32602, -32602]
    assert served.making.made == []
    pipes.send(call(6, "ls"))
    assert not pipes.answer(6)["result"]["isError"]


@pytest.mark.parametrize(
    ("method", "params", "text"),
    [
        ("tools/call", None, "params.name is missing"),
        ("tools/call", {"name": 7}, "params.name is 7, not a string"),
        ("tools/call", {"name": None}, "params.name is null, not a string"),
        ("tools/call", {"name": "ls", "arguments": []}, "params.arguments is a list, not an object"),
        ("tools/call", {"name": "ls", "_meta": True}, "params._meta is true, not an object"),
        ("resources/read", {"uri": {}}, "params.uri is an object, not a string"),
        ("tools/list", {"cursor": 1}, "params.cursor is 1, not a string"),
        ("tools/list", {"_meta": {"progressToken": []}}, "params._meta.progressToken is a list, which is not allowed"),
    ],
)
def test_the_error_for_wrong_parameters_names_the_parameter(
    served: Served, pipes: Pipes, method: str, params: Any, text: str
) -> None:
    pipes.send(HELLO, READY, request(2, method, params))
    assert pipes.answer(2)["error"] == {"code": INVALID_PARAMS, "message": text}


def test_a_request_without_parameters_that_needs_some_is_told_so(served: Served, pipes: Pipes) -> None:
    pipes.send(HELLO, READY, {"jsonrpc": "2.0", "id": 2, "method": "tools/call"})
    assert pipes.answer(2)["error"]["message"] == "params is missing"


def test_of_very_many_errors_only_their_number_is_told() -> None:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(list[str]).validate_python([1] * 5000)
    assert invalid_parameter(caught.value) == "params has 5,000 errors"


def test_errors_repeat_no_long_value(served: Served, pipes: Pipes) -> None:
    long = "x" * 100_000
    pipes.send(HELLO, READY, request(2, "tools/call", {"name": "ls", "arguments": long}), request(3, long))
    pipes.send(request(4, "resources/read", {"uri": f"podbot://{long}"}), request(5, "tools/call", {"name": long}))
    pipes.send(request(6, "completion/complete", {"ref": {"type": "ref/x", long: 1}, "argument": {long: 1}}))
    answers = {number: pipes.answer(number) for number in (2, 3, 4, 5, 6)}
    assert all(len(json.dumps(answer)) < 500 for answer in answers.values())
    assert "params.arguments is 'xxx" in answers[2]["error"]["message"]
    assert "100,009 characters, the limit is 4,096" in answers[4]["error"]["message"]


def test_the_error_for_an_unknown_resource_has_its_address_if_that_is_short(served: Served, pipes: Pipes) -> None:
    pipes.send(HELLO, READY, *(request(n, "resources/read", {"uri": "podbot://" + "x" * n}) for n in (9, 5000)))
    assert "data" not in pipes.answer(5000)["error"]  # asked for last
    assert pipes.answer(9)["error"]["data"] == {"uri": "podbot://" + "x" * 9}


def test_a_request_before_initialize_is_told_so(served: Served, pipes: Pipes) -> None:
    pipes.send(call(1, "ls"), HELLO)
    assert pipes.answer(1)["error"] == {"code": INVALID_PARAMS, "message": "'tools/call' came before initialize"}


def test_neither_the_report_nor_the_answer_has_what_was_sent(served: Served, pipes: Pipes) -> None:
    pipes.send(b'{"secret": 1}\n', b'{"secret": \n', b'"secret' + HALF + HALF + b"\n", HELLO)
    answers = [pipes.next() for _ in range(3)]
    assert len(refused(served)) == 3
    assert "secret" not in json.dumps(answers) + "".join(refused(served))


def test_errors_that_a_client_does_not_read_are_bounded_and_its_end_is_seen(served: Served, pipes: Pipes) -> None:
    while not any("does not read" in message for message in refused(served)):
        pipes.send(*[b"no json\n"] * 100)
    pipes.leave()
    pipes.join()
    assert pipes.number == [None]
    pipes.read_no_more()


@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_what_cannot_be_cancelled_harms_nothing(served: Served, pipes: Pipes, revision: str) -> None:
    hello = {**HELLO, "params": {**HELLO["params"], "protocolVersion": revision}}
    pipes.send(hello, READY, call(2, "ls"))
    assert pipes.answer(1)["result"]["protocolVersion"] == revision
    pipes.answer(2)
    begun, ended = (served.making.made[0].path / name for name in ("begun", "ended"))
    script = "trap 'touch ended; exit 1' TERM; touch begun; while :; do sleep 0.01; done"
    pipes.send(call(3, "shell_execute", {"command": ["sh", "-c", script], "timeout_seconds": 120}))
    wait_until(begun.exists)
    targets: list[Any] = [3, 3, 3, 2, 77, "77", None, [3], {}, -1]
    pipes.send(*[cancelled({"requestId": target}) for target in targets])
    pipes.send(cancelled({}), cancelled(None), call(4, "ls"))
    answer = pipes.next()
    assert answer["id"] == 4  # a cancelled request has none
    assert not answer["result"]["isError"]
    wait_until(ended.exists)
    pipes.send(cancelled({"requestId": 3}), call(3, "ls"))
    assert not pipes.answer(3)["result"]["isError"]  # its number is free again


def cancelled(params: Any) -> dict[str, Any]:
    found = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    return found if params is None else {**found, "params": params}


def test_a_message_of_100_megabytes_takes_no_memory(tmp_path: Path) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PYTHONPATH": os.getcwd()}
    argv = [sys.executable, "-m", "podbot", "mcp", "--backend", "unsafe-local"]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=env) as child:
        assert child.stdin is not None
        assert child.stdout is not None

        def exchanged(*data: bytes) -> Any:
            assert child.stdin is not None
            assert child.stdout is not None
            for part in data:
                child.stdin.write(part)
            child.stdin.flush()
            return json.loads(child.stdout.readline())

        try:
            exchanged(json.dumps(HELLO).encode() + b"\n" + json.dumps(READY).encode() + b"\n")
            exchanged(json.dumps(request(2, "tools/list")).encode() + b"\n")
            status = Path(f"/proc/{child.pid}/status").read_text(encoding="ascii")
            used = int(re.findall(r"VmSize:\s+(\d+) kB", status)[0]) * 1024
            _, hard = resource.prlimit(child.pid, resource.RLIMIT_AS)
            resource.prlimit(child.pid, resource.RLIMIT_AS, (used + (80 << 20), hard))  # as `ulimit -v` sets it
            begin = (
                b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"write_file","arguments":{"content":"'
            )
            answer = exchanged(begin, *[b"x" * (1 << 20)] * 100, b'"}}}\n')
            assert answer["id"] == 3
            assert "104,857," in answer["error"]["message"]
            assert not exchanged(json.dumps(call(4, "sandbox_list")).encode() + b"\n")["result"]["isError"]
        finally:
            child.kill()


LINES = st.lists(st.text("ab\u20ac", max_size=12), max_size=8)


@given(LINES, st.binary(max_size=5).filter(lambda rest: b"\n" not in rest), st.integers(1, 20))
def test_lines_are_read_whole_and_in_order(lines: list[str], rest: bytes, size: int) -> None:
    data = b"".join(line.encode() + b"\n" for line in lines) + rest
    reader = BoundedLines(100)
    found = [line for at in range(0, len(data), size) for line in reader.take(data[at : at + size])]
    assert found == lines


@given(st.integers(11, 3000), st.integers(1, 700))
def test_of_a_line_that_is_too_long_the_ends_are_kept(length: int, size: int) -> None:
    long = bytes(number % 7 + 48 for number in range(length))
    data = b"one\n" + long + b"\ntwo\n" + b"2" * 10 + b"\n"
    reader = BoundedLines(10)
    found = [line for at in range(0, len(data), size) for line in reader.take(data[at : at + size])]
    assert found == ["one", LongLine(length, long[:512], long[-512:]), "two", "2" * 10]


PARAMS = st.dictionaries(st.text(max_size=9), st.text(max_size=9) | st.integers(), max_size=4)
IDS = st.integers(-(10**17), 10**17) | st.text("aZ09_.:-", min_size=1, max_size=128)


@given(IDS, st.text(max_size=9), PARAMS, st.integers(0, 2), st.sampled_from([None, 2]))
def test_the_id_of_a_request_that_is_too_long_is_found_or_unknown(
    number: Any, method: str, params: Any, place: int, indent: int | None
) -> None:
    version = {"jsonrpc": "2.0", "id": number}
    content = {"method": method, "params": {**params, "content": "x" * 600}}
    wholes: list[dict[str, Any]] = [
        {**version, **content},
        {**content, **version},
        {"params": {}, **version, **content},
    ]
    text = json.dumps(wholes[place], indent=indent).replace("\n", " ").encode()
    (found,) = BoundedLines(500).take(text + b"\n")
    assert isinstance(found, LongLine)
    assert found.request_id == (number if place < 2 else None)


@given(st.text(max_size=200))
def test_any_text_is_a_message_or_has_an_error(text: str) -> None:
    error = refusal(text)
    if error is None:
        types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    else:
        assert error.error.code in (PARSE_ERROR, INVALID_REQUEST)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner)
       | st.dictionaries(st.sampled_from(["jsonrpc", "id", "method", "params", "result", "x"]), inner)))  # fmt: skip
def test_any_value_is_a_message_or_an_invalid_request(value: object) -> None:
    error = refusal(json.dumps(value))
    assert error is None or error.error.code == INVALID_REQUEST
