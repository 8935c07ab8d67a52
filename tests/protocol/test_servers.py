"""The editor's MCP servers: the notices about them, and the rest of a frame without them."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.config.models import McpServers
from podbot.events import Event
from podbot.protocol.acp import AcpChannel
from podbot.protocol.app_server import CodexChannel
from podbot.protocol.filter import FilterChannel
from podbot.protocol.path_map import PathScope
from podbot.protocol.servers import MOST_NAMES
from tests.protocol.strategies import JSON

TOKEN = "ghp_secret"
LIST = (
    b'[ {"name":"git\\u0068ub","type":"http","url":"https://x/?k=ghp_secret","headers":[{"name":"A","value":'
    b'"ghp_secret"}]}, {"name":"db","command":"/bin/x","env":[{"name":"K","value":"ghp_secret"}]} ]'
)
FRAME = (
    b'{ "jsonrpc":"2.0","id":1e0,"method":"session/new","params":{"cwd":"/w","mcpServers": %s ,"_meta":{"n":1.50}}}\r\n'
)


def said(channel: FilterChannel, frame: bytes) -> tuple[bytes, list[str], list[Event]]:
    """The bytes for the agent, the reasons, and the notices."""
    channel.client_data(frame)
    forwarded = b"".join(channel.for_agent())
    return forwarded, [refusal.reason for refusal in channel.refusals()], channel.notices()


def test_they_are_removed_and_named() -> None:
    channel = AcpChannel()
    forwarded, reasons, (notice,) = said(channel, FRAME % LIST)
    assert (forwarded, reasons) == (FRAME % b"[]", ["stripped_servers"])
    assert (notice.level, notice.kind) == ("notice", "host.mcp_servers")
    assert notice.fields == {"servers": ["github", "db"], "passed": False}
    assert "are not passed to the agent: github, db;" in notice.message
    assert "agent.mcp_servers = strip" in notice.message
    assert TOKEN not in repr(notice)
    assert channel.counts.rewritten == 1


def test_they_are_passed_and_named() -> None:
    forwarded, reasons, (notice,) = said(AcpChannel(mcp_servers="pass"), FRAME % LIST)
    assert (forwarded, reasons) == (FRAME % LIST, [])
    assert notice.fields == {"servers": ["github", "db"], "passed": True}
    assert "are passed to the agent: github, db;" in notice.message
    assert TOKEN not in repr(notice)


@pytest.mark.parametrize("method", ["session/new", "session/load", "session/resume", "session/fork", "Session_New"])
@pytest.mark.parametrize("name", ["mcpServers", "mcp_servers", "\\u006dcpServers"])
def test_in_every_request_that_opens_a_session(method: str, name: str) -> None:
    frame = f'{{"id":1,"method":"{method}","params":{{"{name}":[{{"name":"a"}}]}}}}\n'.encode()
    forwarded, reasons, notices = said(AcpChannel(), frame)
    assert forwarded == frame.replace(b'[{"name":"a"}]', b"[]")
    assert (reasons, len(notices)) == (["stripped_servers"], 1)


@pytest.mark.parametrize("value", [b"[]", b"null", b"{}", b'""', b"false"])
@pytest.mark.parametrize("policy", ["strip", "pass"])
def test_without_servers(value: bytes, policy: McpServers) -> None:
    channel = AcpChannel(mcp_servers=policy)
    assert said(channel, FRAME % value) == (FRAME % value, [], [])


@pytest.mark.parametrize("value", [b'{"name":"x"}', b'"ghp_secret"', b"[1]", b'[{"name":""}]', b'[{"name":["a"]}]'])
def test_a_value_that_is_not_a_list_of_servers_is_removed_as_well(value: bytes) -> None:
    forwarded, _, (notice,) = said(AcpChannel(), FRAME % value)
    assert forwarded == FRAME % b"[]"
    assert notice.fields["servers"] == (["x"] if b"x" in value else ["a server without a name"])


def test_a_second_list_is_refused() -> None:
    frame = b'{"id":1,"method":"session/new","params":{"mcpServers":[],"mcp_servers":[{"name":"a"}]}}\n'
    assert said(AcpChannel(), frame) == (b"", ["duplicate_key"], [])


def test_each_name_is_reported_once_and_the_number_is_limited() -> None:
    channel = AcpChannel()
    for _ in range(3):
        said(channel, FRAME % LIST)
    assert channel.notices() == []
    _, _, (second,) = said(channel, FRAME % b'[{"name":"db"},{"name":"new\\u001b[2J\\u202e"}]')
    assert second.fields["servers"] == ["new\\u001b[2J\\u202e"]
    assert second.message.isprintable()
    many = json.dumps([{"name": f"s{number}"} for number in range(2 * MOST_NAMES)]).encode()
    _, _, (third,) = said(channel, FRAME % many)
    assert len(third.fields["servers"]) == MOST_NAMES - 3
    assert said(channel, FRAME % many)[2] == []


def test_other_methods_keep_their_members() -> None:
    frame = b'{"id":1,"method":"session/prompt","params":{"mcpServers":[{"name":"a"}]}}\n'
    assert said(AcpChannel(), frame) == (frame, [], [])


def test_a_session_outside_the_workspace_names_nothing() -> None:
    _, reasons, notices = said(AcpChannel(mount=PathScope("/ws", "/ws")), FRAME % LIST)
    assert (reasons, notices) == (["outside_mount"], [])


@given(JSON, st.sampled_from(["mcpServers", "mcp_servers", "MCPservers"]))
def test_nothing_else_of_the_frame_changes(value: str, name: str) -> None:
    def frame(servers: str) -> bytes:
        text = f'{{"id":1,"method":"session/new","params":{{"a":{value},"{name}": {servers} ,"b":{value}}}}}'
        return text.replace("\n", " ").encode("utf-8", "surrogatepass") + b"\n"

    forwarded, reasons, _ = said(AcpChannel(), frame(LIST.decode()))
    assert (forwarded, reasons) == (frame("[]"), ["stripped_servers"]) or not forwarded
    assert bool(forwarded) == bool(said(AcpChannel(), frame("[]"))[0]), "what is refused is refused without them, too"


# --- the Codex App Server: a thread's configuration ---------------------------------------------


THREAD = b'{"id":1,"method":"%s","params":{"cwd":"/w","config":{%s}}}\n'


@pytest.mark.parametrize("method", [b"thread/start", b"thread/resume", b"thread/fork"])
@pytest.mark.parametrize(
    ("config", "left", "names"),
    [
        (
            b'"model":"m", "mcp_servers":{"db":{"env":{"K":"ghp_secret"}},"gh":{}} ,"a":1',
            b'"model":"m", "a":1',
            ["db", "gh"],
        ),
        (b'"mcp_servers.db.env.K":"ghp_secret"', b"", ["db"]),
        (b'"mcp_servers.db.url":"u","mcp_servers.db.bearer":"ghp_secret"', b"", ["db"]),
        (b'"mcpServers":["ghp_secret"]', b"", ["a server without a name"]),
    ],
)
def test_they_are_removed_from_a_thread_too(method: bytes, config: bytes, left: bytes, names: list[str]) -> None:
    forwarded, reasons, (notice,) = said(CodexChannel(), THREAD % (method, config))
    assert (forwarded, reasons) == (THREAD % (method, left), ["stripped_servers"])
    assert notice.fields == {"servers": names, "passed": False}
    assert TOKEN not in repr(notice)
    forwarded, reasons, (notice,) = said(CodexChannel(mcp_servers="pass"), THREAD % (method, config))
    assert (forwarded, reasons) == (THREAD % (method, config), [])
    assert notice.fields == {"servers": names, "passed": True}


@pytest.mark.parametrize("config", [b"", b'"model":"m"', b'"mcp_servers":{}', b'"mcp":{"servers":{"a":1}}'])
def test_a_thread_without_servers(config: bytes) -> None:
    assert said(CodexChannel(), THREAD % (b"thread/start", config)) == (THREAD % (b"thread/start", config), [], [])


def test_tools_and_servers_of_one_thread() -> None:
    head, tail = b'{"id":1,"method":"thread/start","params":{', b',"cwd":"/w"}}\n'
    frame = head + b'"dynamicTools":[{}],"config":{"mcp_servers":{"a":{}}}' + tail
    forwarded, reasons, (notice,) = said(CodexChannel(), frame)
    assert forwarded == head + b'"config":{}' + tail
    assert reasons == ["masked_capabilities"]
    assert notice.fields["servers"] == ["a"]
