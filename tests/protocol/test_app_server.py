"""The Codex App Server: what passes, what is refused, and what is removed from a client's frames."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podbot.protocol.app_server import CodexChannel
from podbot.protocol.methods import CODEX
from podbot.protocol.path_map import PathScope
from tests.protocol.drive import from_agent, from_client, outcome
from tests.protocol.golden import CODEX_DENIED, CODEX_FROM_AGENT, CODEX_FROM_CLIENT, CODEX_MASKED

MOUNT = PathScope("/home/me/shop", "/home/me/shop")


@pytest.mark.parametrize("frame", CODEX_FROM_AGENT)
def test_passed_frames_keep_their_bytes(frame: bytes) -> None:
    result = from_agent(frame, channel=CodexChannel())
    assert (result.to_client, result.to_agent, result.noise, result.said) == (frame, b"", b"", [])


@pytest.mark.parametrize("frame", CODEX_FROM_CLIENT)
def test_a_clients_frames_keep_their_bytes(frame: bytes) -> None:
    result = from_client(frame, channel=CodexChannel(mount=MOUNT))
    assert (result.to_agent, result.to_client, result.said) == (frame, b"", [])


@pytest.mark.parametrize("frame", CODEX_DENIED)
def test_a_denied_request_is_answered_without_a_version(frame: bytes) -> None:
    result = from_agent(frame, channel=CodexChannel())
    assert (result.to_client, result.noise, result.reasons) == (b"", b"", ["denied_method"])
    asked, answer = json.loads(frame), json.loads(result.to_agent)
    assert set(answer) == {"id", "error"}
    assert answer["id"] == asked["id"]
    assert answer["error"]["code"] == -32001
    assert answer["error"]["data"] == {"method": asked["method"], "reason": "podbot_capability_policy"}
    assert "agent.extra_methods" in answer["error"]["message"]


@pytest.mark.parametrize("method", sorted(CODEX))
def test_each_request_of_the_schema(method: str) -> None:
    frame = json.dumps({"method": method, "id": 0, "params": {}}).encode() + b"\n"
    result = from_agent(frame, channel=CodexChannel())
    assert bool(result.to_client) == CODEX[method]
    assert from_agent(frame, channel=CodexChannel(extra_methods=[method])).to_client == frame


def test_requests_that_pass_only_ask_the_user() -> None:
    assert {method for method, passes in CODEX.items() if passes} == {
        "item/commandExecution/requestApproval", "item/fileChange/requestApproval",
        "item/permissions/requestApproval", "item/tool/requestUserInput", "applyPatchApproval", "execCommandApproval",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("method", "raw_id", "passes"),
    [
        ("item/tool/call", None, False),  # a client may act before it looks for an id
        ("Item/Tool_Call", None, False),
        ("attestation/generate", None, False),
        ("anything/new", None, True),
        ("anything/new", "1", False),
        ("item/tool/call", "null", False),
        ("Item/tool/requestUserInput", "1", False),
        ("item/tool/requestUserInput ", "1", False),
        ("initialize", "1", False),
        ("fs/readFile", "1", False),
    ],
)
def test_a_request_passes_by_its_exact_name_and_a_notification_by_any(
    method: str, raw_id: str | None, passes: bool
) -> None:
    members = [f'"method":{json.dumps(method)}', *([] if raw_id is None else [f'"id":{raw_id}']), '"params":{}']
    for order in (members, members[::-1], [*members[1:], members[0]]):
        frame = f"{{{','.join(order)}}}\n".encode()
        result = from_agent(frame, channel=CodexChannel())
        assert bool(result.to_client) == passes
        assert result.reasons == ([] if passes else ["denied_method"])


@pytest.mark.parametrize(
    ("frame", "reason", "answered"),
    [
        (b'{"method":"item/started","method":"item/tool/call","id":1}', "duplicate_key", [1]),
        (b'{"method":"item/tool/call","ID":1}', "ambiguous_key", [1]),
        (b'{"method":"item/tool/call","__proto__":{"id":1}}', "ambiguous_key", []),
        (b'{"method":["item/tool/call"],"id":1}', "bad_method", [1]),
        (b'{"method":"item/tool/call","id":[1]}', "bad_id", [None]),
        (b'{"method":"item/tool/call","id":1', "unparseable", [1]),
        (b'{"method":"x"}{"method":"item/tool/call","id":1}', "unparseable", []),
        (b'{"method":"x",\r"id":1}', "carriage_return", [1]),
        (b'{"method":"x","params":"\xff"}', "not_utf8", []),
    ],
)
def test_a_frame_that_two_parsers_read_differently_is_refused(frame: bytes, reason: str, answered: list[Any]) -> None:
    result = from_agent(frame + b"\n", channel=CodexChannel())
    assert (result.to_client, result.errors, result.reasons) == (b"", b"", [reason])
    answers = [json.loads(line) for line in result.to_agent.splitlines()]
    assert [(answer["id"], answer["error"]["data"]["rule"]) for answer in answers] == [
        (raw, reason) for raw in answered
    ]
    assert all("jsonrpc" not in answer for answer in answers)


def test_noise_goes_to_stderr_and_is_not_searched_for_a_reply() -> None:
    channel = CodexChannel()
    channel.client_data(b'{"id":1,"method":"initialize","params":{}}\n')
    noise = b'hello\n\n{"level":"info"}\n{\n "a": 1\n}\nlog {"id":1,"result":{}}\n{"result":{"a":1}}\n'
    result = from_agent(noise + CODEX_FROM_AGENT[0], channel=channel)
    assert (result.to_client, result.noise, result.said) == (CODEX_FROM_AGENT[0], noise.replace(b"\n\n", b"\n"), [])
    assert result.kinds == ["text", "json", "pretty", "pretty", "pretty", "text", "json"]


def test_each_message_of_a_batch_is_judged_by_itself() -> None:
    good = b'{"method":"item/started","params":{}}'
    result = from_agent(b"[" + good + b"," + CODEX_DENIED[0].strip() + b"]\n", channel=CodexChannel())
    assert result.to_client == b"[" + good + b"]\n"
    assert result.reasons == ["denied_method"]


@pytest.mark.parametrize(
    "form",
    [
        '{"id":1,"result":{"type":"chatgpt","authUrl":%s,"loginId":"l"}}',
        '{"id":1,"result":{"auth_url":%s}}',
        '{"id":1,"result":{"authorizationUrl":%s,"loginId":null}}',
        '{"id":1,"result":{"prompt":{"userCode":"c","verification\\u0055rl": %s }}}',
        '{"method":"account/gatewayOAuth/changed","params":{"authUrl":%s,"providerId":"p"}}',
        '{"method":"app/list/updated","params":{"data":[{"id":"a","installUrl":%s}]}}',
        '{"id":1,"result":[{"authUrl":%s}]}',
        '{"id":1,"result":{"a":[{"b":{"authUrl":%s}}]}}',
        '{"id":1,"result":{"prompt":{"prompt":{"authUrl":%s}}}}',
        '{"id":1,"result":{"appsNeedingAuth":[{"installUrl":%s}],"x":["a"]}}',
        '{"id":1,"result":{"shareUrl":%s}}',
        '{"id":1,"result":{"data":[{"branding":{"privacyPolicyUrl":%s,"x":"a"}}]}}',
        '{"id":1,"result":{"termsOfServiceUrl":%s}}',
        '{"id":1,"result":{"interface":{"websiteUrl":%s}}}',
        '{"id":1,"result":{"notice":{"title":"t","action":{"label":"l","url":%s}}}}',
    ],
)
def test_a_client_gets_only_web_addresses_to_open(form: str) -> None:
    for url in ('"https://auth.openai.com/log-in?to=http://localhost:1455/"', '"http://10.0.0.7:1455/x"', "null"):
        fine = (form % url).encode() + b"\n"
        result = from_agent(fine, channel=CodexChannel())
        assert (result.to_client, result.said) == (fine, [])
    for url in (
        '"file:///etc/passwd"',
        '"vscode://x/y"',
        '"https://a@b.c/"',
        '"http://localhost:1455/x"',
        '""',
        "7",
        '["https://a.b"]',
        "{}",
        "true",
    ):
        result = from_agent((form % url).encode() + b"\n", channel=CodexChannel())
        assert (result.to_client.decode(), result.reasons) == (form % "null" + "\n", ["removed_address"])


@pytest.mark.parametrize(
    "frame",
    [
        b'{"id":1,"result":{"item":{"url":"data:image/png,x"},"text":"authUrl","action":["a"],"url":"x"}}\n',
        b'{"id":1,"result":"authUrl"}\n',
        b'{"id":1,"result":["authUrl"]}\n',
        b'{"method":"item/started","params":{"authUrl":"file:///x"}}\n',
        b'{"method":"account/gatewayOAuth/changed"}\n',
    ],
)
def test_addresses_that_no_client_opens_keep_their_bytes(frame: bytes) -> None:
    assert from_agent(frame, channel=CodexChannel()).to_client == frame


def test_each_of_two_addresses_is_checked_but_none_in_a_removed_part() -> None:
    frame = b'{"id":1,"result":{"authUrl":"https://a.b/","auth_url":%s,"shareUrl":"x:y"}}\n'
    for value in (b'"file:///x"', b'{"authUrl":["file:///x",{"authUrl":"file:///y"}]}'):
        result = from_agent(frame % value, channel=CodexChannel())
        assert (result.to_client, result.reasons) == ((frame % b"null").replace(b'"x:y"', b"null"), ["removed_address"])


# --- client to agent ---------------------------------------------------------------------------


@pytest.mark.parametrize(("frame", "masked"), CODEX_MASKED)
def test_members_that_cause_such_requests_are_removed(frame: bytes, masked: bytes) -> None:
    result = from_client(frame, channel=CodexChannel(mount=MOUNT))
    assert (result.to_agent, result.to_client, result.reasons) == (masked, b"", ["masked_capabilities"])
    again = from_client(masked, channel=CodexChannel(mount=MOUNT))
    assert (again.to_agent, again.said) == (masked, [])
    every = CodexChannel(mount=MOUNT, extra_methods=CODEX)
    assert from_client(frame, channel=every).to_agent == frame, "it is wanted with the requests themselves"


def test_allowing_a_method_keeps_its_opt_in() -> None:
    frame = CODEX_MASKED[0][0]
    result = from_client(frame, channel=CodexChannel(extra_methods=["attestation/generate"]))
    capabilities = json.loads(result.to_agent)["params"]["capabilities"]
    assert set(capabilities) == {"experimentalApi", "requestAttestation", "optOutNotificationMethods"}


@pytest.mark.parametrize(
    ("frame", "reason"),
    [
        ('{"id":1,"method":"initialize","params":[]}', "bad_params"),
        ('{"id":1,"method":"initialize","params":{"capabilities":[]}}', "bad_params"),
        ('{"id":1,"method":"thread/start","params":"x"}', "bad_params"),
        ('{"id":1,"method":"initialize","params":{"capabilities":{},"Capabilities":{}}}', "duplicate_key"),
        ('{"id":1,"method":"thread/start","params":{"dynamicTools":[],"dynamic_tools":[]}}', "duplicate_key"),
    ],
)
def test_a_frame_that_cannot_be_masked_is_refused(frame: str, reason: str) -> None:
    result = from_client(frame.encode() + b"\n", channel=CodexChannel(mount=MOUNT))
    assert (result.to_agent, result.errors, result.reasons) == (b"", b"", [reason])
    answer = json.loads(result.to_client)
    assert (set(answer), answer["id"], answer["error"]["data"]["rule"]) == ({"id", "error"}, 1, reason)


@pytest.mark.parametrize("params", ["null", "{}", '{"capabilities":null}', '{"capabilities":{}}', '{"cwd":null}'])
def test_a_frame_without_anything_to_mask_keeps_its_bytes(params: str) -> None:
    for method in ("initialize", "thread/start"):
        frame = f'{{"id":1,"method":"{method}","params":{params}}}\n'.encode()
        assert from_client(frame, channel=CodexChannel(mount=MOUNT)).to_agent == frame


@pytest.mark.parametrize("method", ["thread/start", "thread/resume", "thread/fork", "turn/start", "Thread_Start"])
def test_a_directory_outside_the_workspace_is_answered_with_an_error(method: str) -> None:
    frame = json.dumps({"id": "a", "method": method, "params": {"cwd": "/etc"}}).encode() + b"\n"
    result = from_client(frame, channel=CodexChannel(mount=MOUNT))
    assert (result.to_agent, result.reasons) == (b"", ["outside_mount"])
    answer = json.loads(result.to_client)
    assert set(answer) == {"id", "error"}
    assert (answer["id"], answer["error"]["code"]) == ("a", -32602)
    assert answer["error"]["data"]["reason"] == "podbot_outside_mount"
    assert from_client(frame, channel=CodexChannel()).to_agent == frame


def test_frames_of_both_kinds_stay_one_piece() -> None:
    """The usual ones take the fast path, wherever the id is."""
    channel = CodexChannel()
    stream = b"".join(CODEX_FROM_AGENT)
    channel.agent_data(stream + CODEX_DENIED[0] + stream)
    assert channel.for_client() == [stream + stream]
    assert outcome(channel).reasons == ["denied_method"]
