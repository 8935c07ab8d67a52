"""The judge passes everything that the fast path passes, unchanged and without a report."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from podbot.config.models import Delegation
from podbot.protocol import app_server
from podbot.protocol.fast_path import FEW, REMEMBERED, FastPath
from podbot.protocol.jsontext import MAX_DEPTH, MAX_STRUCTURE, Cut
from podbot.protocol.judge import Verdict, judge
from podbot.protocol.lines import whole_lines
from podbot.protocol.mask import LOOKED_INTO, client_rule
from podbot.protocol.message import Message
from podbot.protocol.methods import ACP
from podbot.protocol.path_map import PathScope
from podbot.protocol.policy import LOOKED_INTO as QUESTIONS
from podbot.protocol.policy import Rule, agent_rule, may_be_tool_call
from podbot.protocol.servers import Servers
from podbot.streams.protocol_channel import Side
from tests.examples import examples
from tests.protocol.golden import (
    CODEX_DENIED,
    CODEX_FROM_AGENT,
    CODEX_FROM_CLIENT,
    CODEX_MASKED,
    FROM_AGENT,
    FROM_CLIENT,
    request,
)
from tests.protocol.properties import DELEGATIONS, MOUNT
from tests.protocol.strategies import GOLDEN, LINES, mutated, usual

HEAD = b'{"jsonrpc":"2.0","method":"session/update","params":'
SERVERS = Servers("strip", lambda _: None)
SIDES: list[Side] = ["agent", "client"]


def made(
    side: Side, delegation: Delegation = "none", mount: PathScope | None = MOUNT, *, is_codex: bool = False
) -> tuple[Rule, FastPath]:
    if is_codex and side == "agent":
        rule = app_server.agent_rule()
        return rule, FastPath(rule, look_into=app_server.AGENT_LOOKED_INTO)
    if is_codex:
        rule = app_server.client_rule(mount, SERVERS)
        return rule, FastPath(rule, look_into=app_server.LOOKED_INTO, answers=True)
    if side == "agent":
        rule = agent_rule(delegation, mount=mount)
        return rule, FastPath(rule, look_into=QUESTIONS, watch=may_be_tool_call)
    rule = client_rule(delegation, mount, SERVERS)
    return rule, FastPath(rule, look_into=LOOKED_INTO, answers=True)


def passed(line: bytes, side: Side = "agent", delegation: Delegation = "none") -> bool:
    """Whether ``line`` passes, after a valid line and before one; a line that passes is correct."""
    first, last = HEAD + b"1}\n", HEAD + b"2}\n"
    block = first + line + last
    found = check(block, side, delegation)
    assert b"\r" in line or found[0][1]
    return found == [(block, 3)]


def check(
    block: bytes, side: Side, delegation: Delegation = "none", *, is_codex: bool = False
) -> list[tuple[bytes, int]]:
    """The runs of ``block``, which cover all of it; the judge gives the same result for lines that pass."""
    rule, fast_path = made(side, delegation, is_codex=is_codex)
    found = fast_path.runs(block)
    assert b"".join(run for run, _ in found) == block
    for run, frames in found:
        lines = whole_lines(run)
        assert len(lines) == (frames or 1)
        if frames:
            assert [judge(line, side, rule) for line in lines] == [Verdict(line) for line in lines]
    return found


def value(inside: bytes) -> bytes:
    return HEAD + inside + b"}\n"


# Bytes that JSON's grammar is about, so that nearly valid values are frequent.
NEARLY = st.lists(
    st.sampled_from(
        [
            b'"', b"\\", b"u", b"d8", b"00", b"e", b"E", b"-", b"+", b".", b"0", b"1", b"9" * 20, b"{", b"}", b"[",
            b"]", b",", b":", b"null", b"true", b"NaN", b"Infinity", b"1e999", b"1e-999", b"-0", b"\t", b" ", b"\n",
            b"\0", b"\x7f", b"\xff", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80", b"\xc3\xa9",
            b"\xf0\x9f\x8c\x8d", b'"a"', b'"a":', b"\xef\xbb\xbf", b"//", b"'",
            b"\\ud83c\\udf0d", b"\\ud800", b"\x1f", b"\xe2\x80\xa8",
        ]
    ),
    max_size=8,
).map(b"".join)  # fmt: skip
TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
PARAMS: st.SearchStrategy[object] = st.recursive(
    TEXT
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from([True, None]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
VALUES = NEARLY | NEARLY.map(lambda inner: b'"' + inner + b'"') | NEARLY.map(lambda inner: b"[" + inner + b"]")


@st.composite
def blocks(draw: st.DrawFn) -> bytes:
    good = PARAMS.map(lambda params: value(json.dumps(params).encode()))
    kinds = st.one_of(good, usual(), VALUES.map(value), GOLDEN, LINES, mutated())
    lines: Iterable[bytes] = draw(st.lists(kinds, min_size=1, max_size=4))
    return b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines)


@settings(max_examples=examples(600))
@given(blocks(), st.sampled_from(DELEGATIONS), st.sampled_from(SIDES), st.booleans())
@example(value(b'{"a":1}'), "none", "agent", False)
def test_the_judge_passes_what_the_fast_path_passes(
    block: bytes, delegation: Delegation, side: Side, is_codex: bool
) -> None:
    found = check(block, side, delegation, is_codex=is_codex)
    quick = sum(frames for _, frames in found)
    event("all lines pass" if quick == len(whole_lines(block)) else "some lines pass" if quick else "no line passes")


@given(PARAMS, st.booleans(), st.sampled_from(SIDES))
def test_every_usual_message_passes(params: object, ascii_only: bool, side: Side) -> None:
    """The other half: the property above would also be true for a fast path that passes nothing."""
    assert passed(value(json.dumps(params, ensure_ascii=ascii_only).encode()), side)


def test_which_golden_frames_pass() -> None:
    assert [passed(frame) for frame in FROM_AGENT] == [True, False, False, False, False, False, False, True]
    assert [passed(frame, "client") for frame in FROM_CLIENT] == [False, True, True, True, False, True]


def test_which_golden_frames_of_the_codex_app_server_pass() -> None:
    def quick(frames: list[bytes], side: Side) -> list[bool]:
        return [check(frame, side, is_codex=True)[0][1] == 1 for frame in frames]

    assert quick(CODEX_FROM_AGENT, "agent") == [True, False, False, False, False, True, False, False]
    assert quick(CODEX_FROM_CLIENT, "client") == [False, False, False, False, True, True]
    assert not any(quick(CODEX_DENIED, "agent"))
    assert not any(quick([frame for frame, _ in CODEX_MASKED], "client"))


@pytest.mark.parametrize(
    ("side", "line", "passes"),
    [
        ("agent", '{"method":"a/b","params":{}}', True),
        ("agent", '{"method":"a/b","id":1,"params":{}}', False),
        ("agent", '{"id":1,"method":"a/b","params":{}}', False),
        ("agent", '{"method":"execCommandApproval","id":1,"params":{}}', False),
        ("agent", '{"method":"execCommandApproval","params":{}}', False),
        ("agent", '{"method":"account/gatewayOAuth/changed","params":{}}', False),
        ("agent", '{"id":1,"result":{}}', False),
        ("client", '{"method":"turn/interrupt","id":1,"params":{}}', True),
        ("client", '{"id":1,"method":"turn/interrupt","params":{}}', True),
        ("client", '{"id":1,"method":"turn/interrupt","id":2,"params":{}}', False),
        ("client", '{"method":"turn/interrupt","id":1,"id":2,"params":{}}', False),
    ],
)
def test_positions_of_the_id(side: Side, line: str, passes: bool) -> None:
    assert (check(line.encode() + b"\n", side, is_codex=True)[0][1] == 1) == passes


@pytest.mark.parametrize(
    ("line", "passes"),
    [('{"id":1,"result":{}}', True), ('{"result":{}}', False), ('{"id":1,"id":1,"result":{}}', False)],
)
def test_an_answer_has_an_id(line: str, passes: bool) -> None:
    assert (check(line.encode() + b"\n", "client", is_codex=True)[0][1] == 1) == passes


@pytest.mark.parametrize("raw_id", ["0", "7", "9" * 18, '"a-B_9"', '""', '"' + "a" * 64 + '"'])
def test_requests_and_answers(raw_id: str) -> None:
    call = f'{{"jsonrpc":"2.0","id":{raw_id},"method":"session/prompt","params":{{"a":[1,{{}}]}}}}\n'.encode()
    assert passed(call, "client")
    assert passed(call.replace(b"session/prompt", b"session/update"))
    answer = f'{{"jsonrpc":"2.0","id":{raw_id},"result":{{"authMethods":[]}}}}\n'.encode()
    assert passed(answer, "client")
    assert not passed(answer, "agent"), "it may offer a login"


def test_the_longest_prefix() -> None:
    longest = b'{"jsonrpc":"2.0","id":"%s","method":"%s","params":null}\n' % (b"i" * 64, b"m" * 64)
    assert passed(longest, "client")
    rule = agent_rule(extra=frozenset({"m" * 64}))
    assert FastPath(rule).runs(longest) == [(longest, 1)]


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b" \n",
        b"{}\n",
        b"}\n",
        b'{"jsonrpc":"2.0","method":"session/update"}\n',
        HEAD + b"\n",
        HEAD + b"}\n",
        HEAD + b" }\n",
        HEAD[:-1] + b"\n",
        b"\xef\xbb\xbf" + value(b"1"),
        b" " + value(b"1"),
        value(b"1").replace(b"2.0", b"2x0"),
        value(b"1").replace(b"update", b"upd\\u0061te"),
        value(b"1").replace(b"session", b"_sess\xc3\xafon"),
        value(b"1").replace(b"session", b"%66s"),
        value(b"1").replace(b"session/update", b""),
        value(b"1").replace(b"session/update", b"m" * 65),
        value(b"1").replace(b'"session/update"', b"1"),
        value(b"1").replace(b'"params"', b'"PARAMS"'),
        value(b"1").replace(b'"params"', b'"par\\u0061ms"'),
        value(b"1").replace(b":", b": "),
        value(b"1")[:-1] + b" \n",
        value(b"1")[:-1] + b"\r\n",
        value(b"1")[:-1] + b"{}\n",
        value(b"1")[:-1] + b"}\n",
        value(b"1")[:-1] + value(b"1"),
        value(b"{\r}"),
        value(b'"\r"'),
        value(b'1,"params":2'),
        value(b'1,"method":"fs/x"'),
        value(b'1,"METHOD":"fs/x"'),
        value(b'1,"__proto__":{"method":"fs/x"}'),
        value(b'1,"x":2'),
        value(b"1,"),
        value(b'{"a":1'),
        value(b'{"a":1}}'),
        value(b'{"a":1,}'),
        value(b"[1,]"),
        value(b"NaN"),
        value(b"-Infinity"),
        value(b"1e999"),
        value(b"01"),
        value(b"1."),
        value(b"+1"),
        value(b"'a'"),
        value(b"1//"),
        value(b'"\xff"'),
        value(b'"\xc0\xaf"'),
        value(b'"\xed\xa0\x80"'),
        value(b'"\\ud800"'),
        value(b'"\\x"'),
        value(b'"\t"'),
        value(b'"\0"'),
        value(b'"a'),
        value(b""),
    ],
)
@pytest.mark.parametrize("side", SIDES)
def test_lines_that_go_to_the_judge(line: bytes, side: Side) -> None:
    assert not passed(line, side)


@pytest.mark.parametrize(
    "raw_id", ["01", "-1", "1.0", "1e3", "9" * 19, "null", "true", "[]", '"\\u0061"', '"é"', '"a b"']
)
def test_ids_of_other_forms(raw_id: str) -> None:
    for kind in ('"method":"x","params"', '"result"'):
        assert not passed(f'{{"jsonrpc":"2.0","id":{raw_id},{kind}:{{}}}}\n'.encode(), "client")


@pytest.mark.parametrize(
    "method",
    ["fs/read_text_file", "FS/x", "/fs/x", "fs", "fs_x", "terminal/create", "Terminal", "mcp/connect", "x",
     "Session/update", "client/fs/read_text_file", "workspace/applyEdit", "shell/exec", "_open_url"],
)  # fmt: skip
def test_denied_methods(method: str) -> None:
    line = f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}\n'.encode()
    assert not passed(line)
    assert not check(line, "agent")[0][1], "not behind a good one only"
    assert passed(line, "agent", "all") == (method in ACP)
    assert passed(line, "client"), "only the agent's are denied"


@pytest.mark.parametrize(
    "method",
    ["initialize", "Initialize", "INITIALIZE", "init_ialize", "/initialize", "session/new", "session_new",
     "Session/Load", "session/resume", "sessionfork"],
)  # fmt: skip
def test_answers_that_go_to_the_judge(method: str) -> None:
    line = f'{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{}}}}\n'.encode()
    for delegation in DELEGATIONS:
        assert not passed(line, "client", delegation)


@pytest.mark.parametrize("side", SIDES)
def test_depth_and_size(side: Side) -> None:
    deepest = MAX_DEPTH - 1  # the message is one more
    assert passed(value(b"[" * deepest + b"]" * deepest), side)
    for levels in (deepest + 1, deepest + 2, 2000):
        assert not passed(value(b"[" * levels + b"]" * levels), side)
        assert not passed(value(b'{"a":[' * levels + b"]}" * levels), side)
    assert passed(value(b'"' + b"[" * (deepest - 1) + b"x" * 2000 + b'"'), side)
    assert not passed(value(b'"' + b"[" * 3000 + b'"'), side), "brackets in text are counted as well"
    room = MAX_STRUCTURE - len(value(b'""'))
    assert passed(value(b'"' + b"x" * room + b'"'), side)
    assert not passed(value(b'"' + b"x" * (room + 1) + b'"'), side)


def test_a_block_full_of_brackets_is_checked_line_by_line() -> None:
    flat, deep = value(b"[" + b"[]," * FEW + b'"' + b"x" * 2000 + b'"]'), value(b"[" * 600 + b"]" * 600)
    assert check(flat * 3 + deep + flat, "agent") == [(flat * 3, 3), (deep, 0), (flat, 1)]


def test_a_method_is_judged_again_when_too_many_others_came() -> None:
    """What is remembered is bounded, and forgetting changes nothing."""
    rule, _ = made("agent")
    judged: list[str | None] = []

    def counting(message: Message) -> tuple[list[Cut], str]:
        judged.append(message.method)
        return rule(message)

    fast_path = FastPath(counting, look_into=QUESTIONS, watch=may_be_tool_call)
    good, bad = value(b"1"), request("fs/x")
    names = []
    for number in range(2 * REMEMBERED):
        name = "".join(chr(97 + int(digit)) for digit in str(number))
        names.append(name)
        other = f'{{"jsonrpc":"2.0","method":"{name}","params":1}}\n'.encode()
        assert fast_path.runs(other + good + bad) == [(other, 0), (good, 1), (bad, 0)]
    assert judged.count("fs/x") == 1, "what comes often is not forgotten"
    judged.clear()
    for name in (names[-1], names[0]):
        fast_path.runs(f'{{"jsonrpc":"2.0","method":"{name}","params":1}}\n'.encode())
    assert judged == [names[0]], "the last ones are remembered, the first ones not"


def test_nothing_is_copied_when_all_lines_pass() -> None:
    block = value(b"1") * 10
    ((run, frames),) = made("agent")[1].runs(block)
    assert run is block
    assert frames == 10
    assert made("agent")[1].runs(b"") == []


def test_a_rule_that_would_remove_something_goes_to_the_judge() -> None:
    asked = []

    def cutting(message: Message) -> tuple[list[Cut], str]:
        asked.append(message.method)
        return ([(1, 2)], "removed_login") if message.method == "x" else ([], "")

    fast_path = FastPath(cutting)
    cut, good = value(b"1").replace(b"session/update", b"x"), value(b"1")
    assert fast_path.runs(cut + good + cut + good) == [(cut, 0), (good, 1), (cut, 0), (good, 1)]
    assert asked == ["x", "session/update"], "each method once"


@pytest.mark.parametrize("tail", [b"", b"}", b"}}", b"}}}"])
def test_a_last_line_without_its_newline_goes_to_the_judge(tail: bytes) -> None:
    line = b'{"jsonrpc":"2.0","method":"session/update","params":{}}\n'
    last = line[:-3] + tail
    assert FastPath(agent_rule("none")).runs(line + last) == [(line, 0), (last, 0)]
