"""client -> agent: masking by splicing, and paths outside the workspace."""

from __future__ import annotations

import json

import pytest

from podbot.config.models import Delegation
from podbot.protocol.acp import AcpChannel
from podbot.protocol.path_map import PathScope
from tests.protocol import oracle
from tests.protocol.drive import Outcome, from_agent, from_client
from tests.protocol.golden import FROM_CLIENT, MASKED, ZED, ZED_MASKED, request


@pytest.mark.parametrize(("frame", "masked"), MASKED)
def test_capabilities_are_masked(frame: bytes, masked: bytes) -> None:
    result = from_client(frame)
    assert result.to_agent == masked
    assert result.to_client == b""
    assert [(said.direction, said.method, said.size, said.reason) for said in result.said] == [
        ("client", "initialize", len(frame), "masked_capabilities")
    ]
    assert result.counts == (1, len(masked), 0, 0, 0, 1)
    again = from_client(masked)
    assert (again.to_agent, again.said) == (masked, [])
    assert oracle.capabilities(frame)
    assert not oracle.capabilities(masked)


@pytest.mark.parametrize("frame", FROM_CLIENT)
def test_other_frames_keep_their_bytes(frame: bytes) -> None:
    result = from_client(frame)
    assert (result.to_agent, result.to_client, result.said) == (frame, b"", [])


def test_a_chunk_of_valid_frames_is_one_piece() -> None:
    channel = AcpChannel()
    good = FROM_CLIENT[1] + FROM_CLIENT[2]
    channel.client_data(good * 2 + ZED + good + FROM_CLIENT[1][:-1])
    assert channel.for_agent() == [good * 2, ZED_MASKED, good]
    assert channel.counts[:2] == (7, len(good * 3 + ZED_MASKED))
    channel.client_data(b"\n" + good)
    assert channel.for_agent() == [FROM_CLIENT[1] + good]


def test_every_initialize_is_masked_at_any_time() -> None:
    stream = (
        b"\n noise \n" + ZED + FROM_CLIENT[0] + ZED + b"[" + FROM_CLIENT[1][:-1] + b"," + ZED[:-1] + b"]\n" + ZED[:-1]
    )
    result = from_client(stream)
    assert result.to_agent == (
        ZED_MASKED + FROM_CLIENT[0] + ZED_MASKED
        + b"[" + FROM_CLIENT[1][:-1] + b"," + ZED_MASKED[:-1] + b"]\n" + ZED_MASKED[:-1]
    )  # fmt: skip
    assert result.reasons == ["unparseable", *["masked_capabilities"] * 4]


def masked(capabilities: str, delegation: Delegation = "none", method: str = "initialize") -> str:
    """The remaining ``capabilities`` in version 1, checked to be the same in version 2; or the reason."""
    left = []
    for spot in ("clientCapabilities", "capabilities"):
        head, tail = f'{{"method":"{method}","params":{{"{spot}":', ',"protocolVersion":9}}\n'
        result = from_client((head + capabilities + tail).encode(), channel=AcpChannel(delegation=delegation))
        text = result.to_agent.decode()
        left.append(text.removeprefix(head).removesuffix(tail) if text else result.reasons[0])
    assert left[0] == left[1]
    return left[0]


@pytest.mark.parametrize(
    ("capabilities", "left"),
    [
        ("{}", "{}"),
        ("null", "null"),
        ('{"fs":{}}', "{}"),
        ('{ "fs":{} }', "{  }"),
        ('{"a":1,"fs":{}}', '{"a":1}'),
        ('{"fs":{},"a":1}', '{"a":1}'),
        ('{"fs":{} , "a":1 , "terminal":true}', '{"a":1}'),
        ('{"fs":1,"a":1,"terminal":true,"b":[1e5,{"fs":1}]}', '{"a":1,"b":[1e5,{"fs":1}]}'),
        ('{"\\u0066s":{},"x":"\\u00e9"}', '{"x":"\\u00e9"}'),
        ('{"FS":{},"Terminal":1}', "{}"),
        ('{"auth":{"terminal":true,"k":1}}', '{"auth":{"k":1}}'),
        ('{"auth":true}', '{"auth":true}'),
        ('{"auth":null,"_meta":null}', '{"auth":null,"_meta":null}'),
        ('{"Auth":{"Terminal":true}}', '{"Auth":{}}'),
        ('{"_meta":{"terminal-auth":true,"terminal_output":true}}', '{"_meta":{"terminal_output":true}}'),
        ('{"fs":1,"fs":2}', "duplicate_key"),
        ('{"terminal":1,"Terminal":2}', "duplicate_key"),
        ('{"auth":{},"auth":{"terminal":true}}', "duplicate_key"),
        ('{"auth":{"terminal":true,"terminal":true}}', "duplicate_key"),
        ('{"_meta":{},"_meta":{"terminal-auth":true}}', "duplicate_key"),
        ('{"a":1,"a":2}', '{"a":1,"a":2}'),
        ("[]", "bad_params"),
        ('"fs"', "bad_params"),
    ],
)
def test_the_remaining_capabilities(capabilities: str, left: str) -> None:
    assert masked(capabilities) == left
    if left.startswith("{"):
        assert masked(left) == left


def test_another_spelling_of_initialize_is_masked_too() -> None:
    assert masked('{"fs":1}', method="Initialize") == "{}"
    assert masked('{"fs":1}', method="\\u0069nitialize") == "{}"
    assert masked('{"fs":1}', method="session/prompt") == '{"fs":1}'


@pytest.mark.parametrize(
    ("delegation", "left"),
    [
        ("none", '{"auth":{},"_meta":{},"x":1}'),
        ("fs", '{"fs":1,"auth":{},"_meta":{},"x":1}'),
        ("terminal", '{"terminal":2,"auth":{"terminal":3},"_meta":{"terminal-auth":4},"x":1}'),
        ("all", '{"fs":1,"terminal":2,"auth":{"terminal":3},"_meta":{"terminal-auth":4},"x":1}'),
    ],
)
def test_delegation_narrows_the_mask(delegation: Delegation, left: str) -> None:
    whole = '{"fs":1,"terminal":2,"auth":{"terminal":3},"_meta":{"terminal-auth":4},"x":1}'
    assert masked(whole, delegation) == left


def test_both_places_in_one_frame() -> None:
    frame = b'{"method":"initialize","params":{"capabilities":{"fs":1},"clientCapabilities":{"fs":1,"terminal":1}}}\n'
    assert (
        from_client(frame).to_agent == b'{"method":"initialize","params":{"capabilities":{},"clientCapabilities":{}}}\n'
    )


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        ('{"method":"initialize","params":[{"clientCapabilities":{"fs":1}}]}', "bad_params"),
        ('{"method":"initialize","params":"x"}', "bad_params"),
        ('{"method":"initialize","params":{"capabilities":{},"capabilities":{"fs":1}}}', "duplicate_key"),
        ('{"method":"initialize","params":{"capabilities":{},"Capabilities":{"fs":1}}}', "duplicate_key"),
        ('{"method":"initialize","params":{},"params":{"capabilities":{"fs":1}}}', "duplicate_key"),
        ('{"method":"initialize","Params":{"capabilities":{"fs":1}}}', "ambiguous_key"),
        ('{"Method":"initialize","params":{"capabilities":{"fs":1}}}', "ambiguous_key"),
        ('{"method":"initialize","params":{"capabilities":{"fs":1}}', "unparseable"),
        ('{"method":5}', "bad_method"),
        ('{"method":"x","id":[]}', "bad_id"),
        ("[1]", "not_object"),
        ("[]", "bad_batch"),
        ("hello", "unparseable"),
        ("17", "unparseable"),
        ('{"a":1}\r', "carriage_return"),
        ("\ufeff{}", "unparseable"),
    ],
)
def test_a_frame_that_cannot_be_judged_never_reaches_the_agent(frame: str, reason: str) -> None:
    result = from_client(frame.encode())
    assert (result.to_agent, result.errors, result.reasons) == (b"", b"", [reason])
    assert result.said[0].direction == "client"
    assert bool(result.to_client) == (reason == "bad_id"), "nobody waits for a notification"


@pytest.mark.parametrize("frame", ['{"method":"initialize"}', '{"method":"initialize","params":null}'])
def test_an_initialize_without_capabilities(frame: str) -> None:
    result = from_client(frame.encode())
    assert (result.to_agent, result.said) == (frame.encode(), [])


def test_blank_lines_are_dropped_and_overlong_ones_refused() -> None:
    result = from_client(b"\n\r\n  \n" + b"x" * 50 + b"\n{}\n", channel=AcpChannel(limit=40))
    assert (result.to_agent, result.reasons) == (b"{}\n", ["over_limit"])
    assert result.said[0].size == 51


# --- path truth ------------------------------------------------------------------------------

SAME = PathScope("/home/me/shop", "/home/me/shop")
INSIDE = "/work"
OTHER = PathScope(INSIDE, "/home/me/shop", ("/data",))


def opened(cwd: str, mount: PathScope | None, method: str = "session/new", raw_id: str | None = "4") -> Outcome:
    return from_client(request(method, raw_id, cwd=cwd, mcpServers=[]), channel=AcpChannel(mount=mount))


@pytest.mark.parametrize(
    "cwd", ["/home/me/shop", "/home/me/shop/", "/home/me/shop/a/../b", "//home/./me/shop/x", "/../home/me/shop"]
)
def test_inside_the_workspace(cwd: str) -> None:
    frame = request("session/new", "4", cwd=cwd, mcpServers=[])
    assert opened(cwd, SAME).to_agent == frame


@pytest.mark.parametrize(
    "cwd",
    [
        "/",
        "/home/me",
        "/home/me/shopping",
        "/home/me/shop/..",
        "/home/me/shop/../../x",
        "home/me/shop",
        "",
        ".",
        "C:\\shop",
        "/home/me/shop\0",
        "~/shop",
        "/home/me/SHOP",
    ],
)
@pytest.mark.parametrize("method", ["session/new", "session/load", "session/resume", "session/fork"])
def test_outside_the_workspace(cwd: str, method: str) -> None:
    result = opened(cwd, SAME, method)
    assert result.to_agent == b""
    answer = json.loads(result.to_client)
    assert answer["id"] == 4
    assert answer["error"]["code"] == -32602
    assert answer["error"]["data"] == {
        "cwd": cwd, "workspace": "/home/me/shop", "host_path": "/home/me/shop", "reason": "podbot_outside_mount",
    }  # fmt: skip
    assert cwd in answer["error"]["message"]
    assert "/home/me/shop" in answer["error"]["message"]
    assert "on the host" not in answer["error"]["message"]
    assert result.reasons == ["outside_mount"]
    assert result.counts == (0, 0, 1, len(result.to_client), 1, 0)


def test_where_the_paths_differ_both_are_named() -> None:
    message = json.loads(opened("/home/me/shop", OTHER).to_client)["error"]["message"]
    for path in ("/home/me/shop is outside", f"{INSIDE} (/home/me/shop on the host)"):
        assert path in message
    assert opened(f"{INSIDE}/a", OTHER).to_agent
    assert opened("/data", OTHER).to_agent
    assert opened("/data/../x", OTHER).to_client


def test_a_workspace_with_two_names() -> None:
    both = PathScope("/var/home/me/shop", "/var/home/me/shop", ("/home/me/shop",))
    for cwd in ("/home/me/shop", "/var/home/me/shop/", "/home/me/shop/a", "/home/me/../me/shop"):
        assert opened(cwd, both).to_agent
    for cwd in ("/home/me", "/home/me/shopping", "/var/home/me", "/var/home/me/shop/..", "/home/me/shop/.."):
        assert opened(cwd, both).reasons == ["outside_mount"]


def test_the_whole_file_system_as_workspace() -> None:
    assert opened("/anything", PathScope("/", "/")).to_agent


def test_a_workspace_that_is_not_absolute_contains_nothing() -> None:
    assert opened("/x", PathScope("x", "x")).to_client


def test_without_a_mount_nothing_is_checked() -> None:
    assert opened("/x", None).to_agent == request("session/new", "4", cwd="/x", mcpServers=[])


def test_a_notification_gets_no_answer() -> None:
    result = opened("/x", SAME, raw_id=None)
    assert (result.to_agent, result.to_client, result.reasons) == (b"", b"", ["outside_mount"])


@pytest.mark.parametrize("raw_id", ["1.0", '"\\u00e9"', "null", "1e3", "12345678901234567890"])
def test_the_id_is_returned_unchanged(raw_id: str) -> None:
    assert opened("/x", SAME, raw_id=raw_id).to_client.startswith(f'{{"jsonrpc":"2.0","id":{raw_id},"error"'.encode())


@pytest.mark.parametrize("params", ["null", "[]", "{}", '{"cwd":null}', '{"cwd":5}', '{"cwd":["/"]}'])
def test_requests_without_a_directory_are_left_to_the_agent(params: str) -> None:
    for text in (f'{{"method":"session/new","params":{params}}}\n', '{"method":"session/new"}\n'):
        assert from_client(text.encode(), channel=AcpChannel(mount=SAME)).to_agent == text.encode()


def test_two_directories() -> None:
    frame = b'{"id":1,"method":"session/new","params":{"cwd":"/home/me/shop","cwd":"/etc"}}\n'
    assert from_client(frame, channel=AcpChannel(mount=SAME)).reasons == ["duplicate_key"]


def test_only_messages_outside_are_removed_from_a_batch() -> None:
    good, bad = request("session/new", "1", cwd="/home/me/shop")[:-1], request("session/new", "2", cwd="/etc")[:-1]
    result = from_client(b"[" + bad + b", " + good + b"]\n", channel=AcpChannel(mount=SAME))
    assert result.to_agent == b"[" + good + b"]\n"
    assert json.loads(result.to_client)["id"] == 2


def test_the_answer_is_inserted_between_the_agents_frames() -> None:
    channel = AcpChannel(mount=SAME)
    channel.agent_data(b'{"id":1,"result":{}}\n{"id":2,')
    channel.client_data(request("session/new", "4", cwd="/etc"))
    channel.agent_data(b'"result":{}}\n')
    first, answer, second = channel.for_client()
    assert (first, second) == (b'{"id":1,"result":{}}\n', b'{"id":2,"result":{}}\n')
    assert json.loads(answer)["id"] == 4


def test_no_answer_is_inserted_after_the_agents_last_frame() -> None:
    channel = AcpChannel(mount=SAME)
    assert from_agent(b'{"id":1,"result":{}}', channel=channel).to_client == b'{"id":1,"result":{}}'
    result = from_client(request("session/new", "4", cwd="/etc"), channel=channel)
    assert (result.to_client, result.to_agent, result.reasons) == (b"", b"", ["outside_mount"])


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b'{"id":1,"method":"initial', "unparseable"),
        (b"GET / HTTP/1.1\r\n\r\n", "unparseable"),
        (b"\xff\n", "not_utf8"),
        (b'{"id":1,"method":"x"}\n' + b"y" * 5000, "over_limit"),
        (b'garbage\n{"id":1,"method":"x"}\n', ""),
        (b'{"id":1,"method":"x"}', ""),
        (b'{"id":1,"method":"session/new","params":{"cwd":"/elsewhere"}}\n', ""),
        (b"\n\n", ""),
        (b"", ""),
    ],
)
def test_an_incomplete_last_frame_of_the_client(sent: bytes, reason: str) -> None:
    channel = AcpChannel(mount=PathScope("/ws", "/ws"), limit=4096)
    channel.client_data(sent)
    assert not channel.client_broken, "it may still fix that as long as it is there"
    channel.client_eof()
    assert channel.client_broken == reason


def test_a_clone_has_no_host_path() -> None:
    channel = AcpChannel(mount=PathScope("/code/shop", ""))
    channel.client_data(b'{"id":1,"method":"session/new","params":{"cwd":"/home/me/shop"}}\n')
    (answer,) = channel.for_client()
    error = json.loads(answer)["error"]
    assert error["data"]["host_path"] is None
    assert error["message"].endswith("workspace /code/shop; it is a clone: open the session there")
