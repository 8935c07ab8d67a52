"""Properties for any bytes. The property tests and the fuzzer use the same checks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from podbot.config.models import Delegation
from podbot.protocol.acp import AcpChannel
from podbot.protocol.app_server import CodexChannel
from podbot.protocol.filter import FilterChannel
from podbot.protocol.path_map import PathScope
from podbot.protocol.refusal import REASONS, REWRITTEN
from tests.protocol import oracle
from tests.protocol.drive import Outcome, after, from_agent, from_client
from tests.protocol.golden import request

MOUNT = PathScope("/home/me/shop", "/home/me/shop")
DELEGATIONS: list[Delegation] = ["none", "fs", "terminal", "all"]
ALLOWED = {"none": (), "fs": ("fs",), "terminal": ("terminal",), "all": ("fs", "terminal", "mcp")}
LIMIT = 4096
OPEN = {"0": 0, "1": 1, '"1"': "1", "3": 3}  # ids of the client's requests, and what they mean


Make = Callable[[Delegation], FilterChannel]


def channel(delegation: Delegation = "none") -> AcpChannel:
    return AcpChannel(delegation=delegation, mount=MOUNT, limit=LIMIT)


def codex_channel(_: Delegation = "none") -> CodexChannel:
    return CodexChannel(mount=MOUNT, limit=LIMIT)


def check_agent(
    data: bytes, places: Iterable[int] = (), delegation: Delegation = "none", channel: Make = channel
) -> None:
    """Nothing denied comes out; what comes out is whole, in order, and the agent's own bytes."""
    result = from_agent(data, places=places, channel=_asked(channel(delegation)))
    assert not oracle.denied(result.to_client, ALLOWED[delegation]), result
    assert not oracle.hidden(result.to_client), result
    if "terminal" not in ALLOWED[delegation]:
        assert not oracle.logins(result.to_client), result
    _check_common(data, result, result.to_client)
    for answer in result.to_agent.splitlines():
        _check_answer(answer, data)
    _check_errors(result, lambda frames: from_agent(frames, channel=_asked(channel(delegation))))
    if delegation == "none" and len(data) < LIMIT and not result.counts.rewritten:
        _check_forwarded(data, result.to_client)
    _check_salvaged(data, result)
    # Only the paths of the agent's own spelling are not there a second time. So beyond MOST_CALLS calls, which no
    # stream here has, other calls may be forgotten, and a question that has its marker already may be called doubtful.
    again = from_agent(result.to_client, channel=channel(delegation))
    assert (again.to_client, again.said, again.noise) == (result.to_client, [], b"")
    assert from_agent(data, channel=_asked(channel(delegation))) == result


def _asked(channel: FilterChannel) -> FilterChannel:
    return after(*(request("session/prompt", raw_id) for raw_id in OPEN), channel=channel)


def check_client(
    data: bytes, places: Iterable[int] = (), delegation: Delegation = "none", channel: Make = channel
) -> None:
    """No host capability reaches the agent, and masking twice is masking once."""
    result = from_client(data, places=places, channel=channel(delegation))
    assert not oracle.capabilities(result.to_agent, ALLOWED[delegation]), result
    assert not result.noise
    _check_common(data, result, result.to_agent)
    for answer in result.to_client.splitlines():
        _check_answer(answer, data)
    _check_errors(result, lambda frames: from_client(frames, channel=channel(delegation)))
    again = from_client(result.to_agent, channel=channel(delegation))
    assert (again.to_agent, again.said, again.to_client) == (result.to_agent, [], b"")
    assert from_client(data, channel=channel(delegation)) == result


def check_codex_agent(
    data: bytes, places: Iterable[int] = (), delegation: Delegation = "none", channel: Make = codex_channel
) -> None:
    """As ``check_agent``, of the Codex App Server."""
    result = from_agent(data, places=places, channel=channel(delegation))
    assert not oracle.codex_denied(result.to_client), result
    assert not oracle.hidden(result.to_client, oracle.CODEX_ASKS), result
    _check_common(data, result, result.to_client)
    assert not oracle.opened(result.to_client), result
    for answer in result.to_agent.splitlines():
        _check_answer(answer, data, head=b'{"id":')
    _check_errors(result, lambda frames: from_agent(frames, channel=channel(delegation)), head=b'{"id":')
    again = from_agent(result.to_client, channel=channel(delegation))
    assert (again.to_client, again.said, again.noise) == (result.to_client, [], b"")
    assert from_agent(data, channel=channel(delegation)) == result


def check_codex_client(
    data: bytes, places: Iterable[int] = (), delegation: Delegation = "none", channel: Make = codex_channel
) -> None:
    """As ``check_client``, for the Codex App Server."""
    result = from_client(data, places=places, channel=channel(delegation))
    assert not oracle.codex_opt_ins(result.to_agent), result
    assert not result.noise
    _check_common(data, result, result.to_agent)
    for answer in result.to_client.splitlines():
        _check_answer(answer, data, head=b'{"id":')
    _check_errors(result, lambda frames: from_client(frames, channel=channel(delegation)), head=b'{"id":')
    again = from_client(result.to_agent, channel=channel(delegation))
    assert (again.to_agent, again.said, again.to_client) == (result.to_agent, [], b"")
    assert from_client(data, channel=channel(delegation)) == result


def _check_common(data: bytes, result: Outcome, forwarded: bytes) -> None:
    assert all(said.reason in REASONS for said in result.said)
    assert result.counts.rewritten == sum(said.reason in REWRITTEN for said in result.said)
    assert result.counts.refused == len(result.said) - result.counts.rewritten
    lines, given = _at_newlines(forwarded), _at_newlines(data)
    for line in lines:
        json.loads(line)
    if not result.counts.rewritten and not any(b"[" in line for line in given):
        rest = iter(given)  # in order, each with its own bytes, or the end of a line whose beginning was moved
        assert all(any(given_line.endswith(line) for given_line in rest) for line in lines), (lines, given)
    for noise in result.moved:
        assert noise.line in data


def _at_newlines(data: bytes) -> list[bytes]:
    found = [line + b"\n" for line in data.split(b"\n")]
    found[-1] = found[-1][:-1]
    return [line for line in found if line]


HEAD = b'{"jsonrpc":"2.0","id":'
CODES = {-32001: "podbot_capability_policy", -32602: "podbot_outside_mount", -32600: "podbot_frame_form"}


def _check_answer(answer: bytes, data: bytes, head: bytes = HEAD) -> None:
    error = json.loads(answer)["error"]
    assert error["data"]["reason"] == CODES[error["code"]]
    assert answer.startswith(head)
    raw = answer[len(head) : answer.index(b',"error":{"code":-32')]
    assert raw in data or (raw, error["code"]) == (b"null", -32600), (raw, data)


def _check_errors(result: Outcome, feed: Callable[[bytes], Outcome], head: bytes = HEAD) -> None:
    """Those who wait for an answer that was refused get an error that names the rule; the filter lets it pass."""
    rules = {said.reason for said in result.said} - REWRITTEN
    if "json" in result.kinds:  # such a line may be an answer without a result
        rules.add("not_jsonrpc")
    for line in result.errors.splitlines():
        error = json.loads(line)["error"]
        assert line.startswith(head)
        assert (error["code"], error["data"]["reason"]) == (-32603, "podbot_frame_form")
        assert error["data"]["rule"] in rules
        assert REASONS[error["data"]["rule"]] in error["message"]
    again = feed(result.errors)
    assert (again.to_agent or again.to_client, again.said, again.errors) == (result.errors, [], b"")


# --- a slow filter of its own, for single messages ---------------------------------------------

OURS = ("jsonrpc", "id", "method", "params", "result", "error")
TOUCHED = ("authmethods", "meta", "fieldmeta", "data", "proto")  # members of an answer that may be rewritten


class Pairs(list[tuple[str, Any]]):
    """All members of an object."""


def _check_forwarded(data: bytes, forwarded: bytes) -> None:
    """Neither too much nor too little passes, as far as the slow filter can tell."""
    lines = _at_newlines(data)
    if any(line.strip() in (b"{", b"[", b"[{") for line in lines):
        return
    expected: list[bytes] = []
    for line in lines:
        frame = line
        if _is_text(line):
            frame = b"" if expected else _reply(line)
            if b"\\u" in frame or b"-0" in frame:  # an id may be another spelling of the same
                return
        passes = naive(frame)
        if passes is None:
            return
        expected += [frame] if passes else []
    assert forwarded == b"".join(expected)


def _check_salvaged(data: bytes, result: Outcome) -> None:
    """Text gives at most one frame: an answer to the client, which is the first frame that it gets."""
    fronts = [noise.line for noise in result.moved if noise.kind == "before_frame"]
    assert len(fronts) <= 1
    for front in fronts:
        assert not set(front.replace(b"\x1b[", b"")) & set(b'{["')
        assert any(_reply(line) and line.startswith(front) for line in _at_newlines(data)), (front, data)


def _is_text(line: bytes) -> bool:
    """A banner, or similar text that does not begin like a frame or a batch."""
    body = line.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
    return not (body[:1] == b"{" or (body[:1] == b"[" and body[1:].lstrip(b" \t\r\n")[:1] in (b"[", b"{", b"]")))


def _reply(line: bytes) -> bytes:
    """The end of a text line that answers a request of OPEN, found by trying every brace; empty when there is none."""
    for place in (place for place in range(1, len(line)) if line[place : place + 1] == b"{"):
        tail = line[place:]
        try:
            value = json.loads(tail.strip(b" \t\r\n").decode(), object_pairs_hook=Pairs, parse_constant=_no_constant)
        except (ValueError, RecursionError):
            continue
        return tail if _answers(line[:place], value) and b"\r" not in tail[:-2] else b""
    return b""


def _answers(front: bytes, pairs: Pairs) -> bool:
    message = dict(pairs)
    number = message.get("id")
    return (
        not set(front.replace(b"\x1b[", b"")) & set(b'{["')
        and message.get("jsonrpc") == "2.0"
        and "method" not in message
        and ("result" in message or "error" in message)
        and any(number == known and type(number) is type(known) for known in OPEN.values())
        and _passes(pairs) is not False
    )


def naive(line: bytes) -> bool | None:
    """Whether ``line`` from an agent passes; None: this filter cannot tell."""
    body = line[:-2] if line.endswith(b"\r\n") else line
    if line.count(b"{") + line.count(b"[") > 100:
        return None
    try:
        value = json.loads(line.decode(), object_pairs_hook=Pairs, parse_constant=_no_constant)
    except ValueError:
        return False
    if b"\r" in body:
        return False
    if isinstance(value, Pairs):
        return _passes(value)
    return None if isinstance(value, list) else False


def _no_constant(word: str) -> Any:
    raise ValueError(word)


def _passes(pairs: Pairs) -> bool | None:
    names = [key for key, _ in pairs]
    if "__proto__" in names:
        return False
    if any(names.count(name) > 1 for name in OURS) or any(_letters(name) in OURS for name in names if name not in OURS):
        return False
    message = dict(pairs)
    if isinstance(message.get("id"), bool | list):  # Pairs are lists, too
        return False
    if any(isinstance(message.get(name), Pairs) and _touched(message[name]) for name in ("result", "error")):
        return None
    if "method" in message:
        return _method_passes(message["method"])
    return "id" in message and ("result" in message or "error" in message)


def _letters(name: str) -> str:
    return "".join(char for char in oracle.folded(name.partition("\0")[0].replace("\u0131", "i")) if char.isalnum())


def _touched(pairs: Pairs) -> bool:
    return any(_letters(key) in TOUCHED for key, _ in pairs)


def _method_passes(method: Any) -> bool | None:
    if method in oracle.QUESTIONS:
        return None
    return isinstance(method, str) and method in oracle.SHOWN
