"""Properties for any bytes, and every division of the golden streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from podbot.config.models import Delegation
from podbot.events import ignore
from podbot.protocol.fast_path import FastPath
from podbot.protocol.filter import Direction, FilterChannel
from podbot.protocol.jsontext import Cut
from podbot.protocol.logins import ANY_LOGIN
from podbot.protocol.mask import client_rule
from podbot.protocol.message import Message
from podbot.protocol.policy import agent_rule
from podbot.protocol.servers import Servers
from podbot.streams.protocol_channel import Channel, Counts
from tests.examples import examples
from tests.protocol import oracle
from tests.protocol.drive import from_agent, from_client
from tests.protocol.golden import (
    CODEX_DENIED,
    CODEX_FROM_AGENT,
    CODEX_MASKED,
    CODEX_OPENED,
    DENIED,
    FROM_AGENT,
    FROM_CLIENT,
    LOGINS,
    MASKED,
    NOISE,
    ZED,
)
from tests.protocol.properties import (
    DELEGATIONS,
    LIMIT,
    MOUNT,
    channel,
    check_agent,
    check_client,
    check_codex_agent,
    check_codex_client,
    naive,
)
from tests.protocol.strategies import ASKING, CODEX_ASKING, CUTS, STREAMS

AGENT_STREAM = b"".join([FROM_AGENT[0], *NOISE, LOGINS, DENIED[0], DENIED[2], *FROM_AGENT[4:]]) + FROM_AGENT[1][:-1]
# Frames that the filter changed to invalid JSON, and to one that it would change again.
TITLE_WITHOUT_TEXT = (
    b'{"id":1,"method":"session/request_permission","params":{"toolCall":{"title":{"x\\u0000":1}},"options":[],'
    b'"path":"/etc"}}\n'
)
REASON_WITHOUT_TEXT = b'{"id":1,"method":"execCommandApproval","params":{"reason":{"x\\u0000":1},"cwd":"/etc"}}\n'
SHOWN_INSIDE = (
    b'{"id":1,"method":"session/request_permission","params":{"toolCall":{},"options":[],'
    b'"path":["initialize\\u0000","/HOME/ME/SHOP"]}}\n'
)
# What only the agent's spelling names has a marker of its own, in a later question of its call too.
SPELLED = (
    b'{"id":1,"method":"session/request_permission","params":{"toolCall":{"toolCallId":"t","title":"x","path":'
    b'["/tmp/a","\\ufeff/etc"]}}}\n'
    b'{"id":2,"method":"session/request_permission","params":{"toolCall":{"toolCallId":"t","title":"y","path":"/b"}}}\n'
)
CODEX_SPELLED = (
    b'{"id":1,"method":"execCommandApproval","params":{"reason":"x","cwd":["/tmp/a","\\ufeff/etc"],"command":'
    b'["ls","\\u202e"],"parsedCmd":[{"cmd":"ls"}],"proposedExecpolicyAmendment":["ls","\\\\u202e"]}}\n'
)
CLIENT_STREAM = b"".join([b"\n", *(frame for frame, _ in MASKED), *FROM_CLIENT, b"{bad\n"]) + ZED[:-1]


@settings(max_examples=examples(300))
@given(STREAMS | ASKING, CUTS, st.sampled_from(DELEGATIONS))
@example(TITLE_WITHOUT_TEXT, [], "none")
@example(SHOWN_INSIDE, [], "none")
@example(SPELLED, [], "none")
def test_agent(data: bytes, places: list[int], delegation: Delegation) -> None:
    check_agent(data, places, delegation)


@settings(max_examples=examples(300))
@given(STREAMS, CUTS, st.sampled_from(DELEGATIONS))
def test_client(data: bytes, places: list[int], delegation: Delegation) -> None:
    check_client(data, places, delegation)


@settings(max_examples=examples(300))
@given(STREAMS | CODEX_ASKING, CUTS)
@example(REASON_WITHOUT_TEXT, [])
@example(CODEX_SPELLED, [])
def test_codex(data: bytes, places: list[int]) -> None:
    check_codex_agent(data, places)
    check_codex_client(data, places)


@settings(deadline=None)
@given(st.binary(max_size=300), CUTS)
def test_arbitrary_bytes(data: bytes, places: list[int]) -> None:
    check_agent(data, places)
    check_client(data, places)
    check_codex_agent(data, places)
    check_codex_client(data, places)


def every_cut(stream: bytes) -> Iterator[list[int]]:
    """Each place once; two in one run, half of the stream apart, which takes half the time."""
    half = (len(stream) + 1) // 2
    return ([place, place + half] for place in range(half))


def test_every_cut_of_a_golden_stream_from_the_agent() -> None:
    whole = from_agent(AGENT_STREAM)
    assert {said.reason for said in whole.said} == {"removed_login", "denied_method"}
    for places in every_cut(AGENT_STREAM):
        assert from_agent(AGENT_STREAM, places=places) == whole
    assert from_agent(AGENT_STREAM, places=range(len(AGENT_STREAM))) == whole


def test_every_cut_of_a_golden_stream_from_the_client() -> None:
    whole = from_client(CLIENT_STREAM, channel=channel())
    assert {said.reason for said in whole.said} == {"masked_capabilities", "unparseable"}
    for places in every_cut(CLIENT_STREAM):
        assert from_client(CLIENT_STREAM, places=places, channel=channel()) == whole
    assert from_client(CLIENT_STREAM, places=range(len(CLIENT_STREAM)), channel=channel()) == whole


BAD: dict[Callable[..., None], bytes] = {
    check_agent: DENIED[0],
    check_client: ZED,
    check_codex_agent: CODEX_DENIED[0],
    check_codex_client: CODEX_MASKED[0][0],
}


def test_the_oracle_finds_bad_output() -> None:
    """A judge that finds nothing in bad output would make every property true."""
    assert all(oracle.denied(frame) for frame in DENIED)
    assert not any(oracle.denied(frame) for frame in FROM_AGENT)
    assert oracle.denied(b'{"a":1,\r{"METHOD":"FS/x"}\r}')
    assert oracle.denied(b'[{"method":"session/update","method":"fs/x"}]')
    assert oracle.denied(b'[{"method":"fs/x","method":"session/update"}]')
    assert oracle.denied(b'{"method\\u0000":"terminal/x"}')
    assert oracle.denied(b'{"\\u217fethod":"fs/x"}')
    assert oracle.logins(LOGINS)
    assert oracle.logins(b'{"error":{"data":{"auth_methods":[{"TYPE":"terminal"}]}}}')
    assert all(oracle.capabilities(frame) for frame, _ in MASKED)
    assert not any(oracle.capabilities(masked) for _, masked in MASKED)
    assert [naive(frame) for frame in DENIED] == [False] * len(DENIED)
    assert [naive(frame) for frame in FROM_AGENT] == [True, None, True, True, None, True, None, True]
    assert [naive(line) for line in NOISE] == [False] * len(NOISE)
    assert MOUNT.holds("/home/me/shop")
    assert oracle.hidden(b'{"method":"session/request_permission","params":{"a":["\\u202e"]}}')
    assert oracle.hidden(b'{"method":"elicitation/create","params":{"\\r":1}}')
    assert not oracle.hidden(b'{"method":"elicitation/create","params":{"a":"\\r\\n\\t"}}')
    assert all(oracle.codex_denied(frame) for frame in CODEX_DENIED)
    assert not any(oracle.codex_denied(frame) for frame in CODEX_FROM_AGENT)
    assert oracle.opened(CODEX_OPENED)
    assert oracle.codex_denied(b'{"method":"item/tool/call","ID":1}')
    assert all(oracle.codex_opt_ins(frame) for frame, _ in CODEX_MASKED)
    assert not any(oracle.codex_opt_ins(masked) for _, masked in CODEX_MASKED)


def test_it_is_a_channel() -> None:
    shape: Channel = channel()
    assert shape.counts == Counts()


def silent(_message: Message) -> tuple[list[Cut], str]:
    """A rule that changes and refuses nothing."""
    return [], ""


def filtering_nothing(_delegation: Delegation) -> FilterChannel:
    return FilterChannel(Direction(silent), Direction(silent), limit=LIMIT, salvage=False, notices=[])


class Blind(FastPath):
    """Lets everything pass."""

    def runs(self, block: bytes) -> list[tuple[bytes, int]]:
        return [(block, block.count(b"\n"))]


def with_a_blind_fast_path(delegation: Delegation) -> FilterChannel:
    """Agent Client Protocol with its own rules, which the fast path never asks."""
    client = Direction(client_rule(delegation, MOUNT, Servers("strip", ignore)), fast_path=Blind)
    agent = Direction(agent_rule(delegation, ANY_LOGIN, mount=MOUNT), fast_path=Blind)
    return FilterChannel(client, agent, limit=LIMIT, salvage=True, notices=[])


@pytest.mark.parametrize(("check", "bad"), list(BAD.items()))
def test_the_properties_fail_when_the_filter_does_nothing(check: Callable[..., None], bad: bytes) -> None:
    with pytest.raises(AssertionError):
        check(bad, channel=filtering_nothing)


@pytest.mark.parametrize(("check", "bad"), list(BAD.items()))
def test_the_properties_fail_when_the_fast_path_lets_all_through(check: Callable[..., None], bad: bytes) -> None:
    with pytest.raises(AssertionError):
        check(bad, channel=with_a_blind_fast_path)
