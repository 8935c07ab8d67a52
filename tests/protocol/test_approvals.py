"""Questions of the Codex App Server to the user: marked as ACP's questions are, otherwise unchanged."""

from __future__ import annotations

import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.protocol.app_server import CodexChannel
from podbot.protocol.methods import CODEX
from podbot.protocol.path_map import PathScope
from tests.protocol.drive import Outcome, from_agent

MOUNT = PathScope("/ws", "/home/me/shop", others=("/more",))
ASKING = sorted(method for method, passes in CODEX.items() if passes)
COMMAND, FILES = "item/commandExecution/requestApproval", "item/fileChange/requestApproval"
OUTSIDE = "[podbot: outside the workspace: "


def frame(method: str, params: Any, raw_id: int | None = 7) -> bytes:
    about = {"method": method, **({} if raw_id is None else {"id": raw_id}), "params": params}
    return json.dumps(about, separators=(",", ":")).encode() + b"\n"


def asked(method: str, params: Any, *before: bytes, mount: PathScope | None = MOUNT) -> Outcome:
    return from_agent(b"".join(before) + frame(method, params), channel=CodexChannel(mount=mount))


def shown(method: str, params: Any, *before: bytes) -> Any:
    """The parameters as the client gets them; earlier frames keep their bytes, and marking once is enough."""
    result = asked(method, params, *before)
    assert result.to_client.startswith(b"".join(before))
    assert result.to_agent == b""
    found = json.loads(result.to_client[len(b"".join(before)) :])["params"]
    assert result.reasons == ([] if found == params else ["marked_question"])
    assert asked(method, found, *before).said == []
    return found


def started(ident: str, *paths: str, kind: str = "fileChange", **more: Any) -> bytes:
    changes = [{"path": path, "kind": {"type": "add"}, "diff": "+a\n"} for path in paths]
    item = {"type": kind, "id": ident, "changes": changes, **more}
    return frame("item/started", {"threadId": "t", "turnId": "u", "item": item}, None)


# --- what is as it should be ---------------------------------------------------------------------

PLAIN = {
    COMMAND: {
        "threadId": "t",
        "itemId": "i",
        "reason": "to see\nit",
        "command": "/bin/bash -lc \"rg -n 'foo bar' src | head -5\"",
        "cwd": "/ws/src",
        "commandActions": [{"type": "search", "command": "rg -n 'foo bar' src", "query": "foo bar", "path": "src"}],
        "proposedExecpolicyAmendment": ["rg", "-n"],
        "availableDecisions": [
            "accept",
            {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["rg", "-n", "foo bar"]}},
            "decline",
        ],
    },
    FILES: {"threadId": "t", "itemId": "i", "reason": None, "grantRoot": "/more/x"},
    "item/permissions/requestApproval": {
        "cwd": "/ws",
        "itemId": "i",
        "permissions": {"fileSystem": {"read": ["/ws/a"], "write": ["b"], "entries": []}, "network": {"enabled": True}},
    },
    "item/tool/requestUserInput": {"questions": [{"id": "q", "header": "h", "question": "?", "options": []}]},
    "applyPatchApproval": {
        "callId": "c",
        "fileChanges": {
            "/ws/a": {"type": "update", "unified_diff": "@@", "move_path": "/ws/b"},
            "c": {"type": "delete"},
        },
    },
    "execCommandApproval": {
        "callId": "c",
        "command": ["bash", "-lc", "cat README.md"],
        "cwd": "/ws",
        "parsedCmd": [{"type": "read", "cmd": "cat README.md", "name": "README.md", "path": "README.md"}],
    },
}


def test_an_example_of_each_question() -> None:
    assert sorted(PLAIN) == ASKING


@pytest.mark.parametrize("method", ASKING)
def test_a_plain_question_keeps_its_bytes(method: str) -> None:
    result = asked(method, PLAIN[method], started("i", "/ws/a", "b"))
    assert result.to_client == started("i", "/ws/a", "b") + frame(method, PLAIN[method])
    assert result.said == []


# --- characters ----------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ASKING)
@pytest.mark.parametrize(("char", "seen"), [("\x1b", "\\u001b"), ("\u202e", "\\u202e"), ("\u200b", "\\u200b")])
def test_characters_that_hide_or_reorder_text_are_shown(method: str, char: str, seen: str) -> None:
    for params in ({"x": f"a{char}b"}, {"x": [{"y": [f"{char}"]}]}, {f"{char}": 1}):
        assert asked(method, params).to_client == frame(method, json.loads(json.dumps(params).replace(
            json.dumps(char)[1:-1], seen.replace("\\", "\\\\"))))  # fmt: skip
        assert asked(method, params).reasons == ["marked_question"]


def test_too_many_such_characters_are_refused_and_the_server_gets_an_error() -> None:
    result = asked(COMMAND, {"command": "\x1b" * 10_001})
    assert (result.to_client, result.reasons) == (b"", ["too_many_marks"])
    answer = json.loads(result.to_agent)
    assert (answer["id"], answer["error"]["code"], "jsonrpc" in answer) == (7, -32001, False)


@pytest.mark.parametrize("key", ["Reason", "item_id"])
def test_a_deciding_member_may_occur_only_once(key: str) -> None:
    result = asked(COMMAND, {"reason": "a", "itemId": "i", key: "b"})
    assert (result.to_client, result.reasons) == (b"", ["duplicate_key"])


# --- places --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "params", "path"),
    [
        (COMMAND, {"cwd": "/etc"}, "/etc"),
        (COMMAND, {"command": "cat id", "commandActions": [
            {"type": "read", "command": "cat id", "path": "/root/.ssh/id"}]}, "/root/.ssh/id"),
        ("item/permissions/requestApproval", {"permissions": {"fileSystem": {"entries": [
            {"path": {"type": "special", "value": {"kind": "root"}}, "access": "write"}]}}}, "/"),
        (COMMAND, {"additionalPermissions": {"fileSystem": {"write": ["/ws/a", "/usr"]}}}, "/usr"),
        (COMMAND, {"additionalPermissions": {"fileSystem": {"entries": [
            {"access": "write", "path": {"type": "glob_pattern", "pattern": "/**"}}]}}}, "/**"),
        (COMMAND, {"additionalPermissions": {"fileSystem": {"entries": [
            {"path": {"type": "special", "value": {"kind": "project_roots", "subpath": "../x"}}}]}}}, "../x"),
        (FILES, {"grantRoot": "/"}, "/"),
        (FILES, {"grant_root": "/ws/../etc"}, "/ws/../etc"),
        ("item/permissions/requestApproval", {"permissions": {"fileSystem": {"read": ["~/x"]}}}, "~/x"),
        ("applyPatchApproval", {"fileChanges": {"/etc/passwd": {"type": "add", "content": ""}}}, "/etc/passwd"),
        ("applyPatchApproval", {"fileChanges": {"../a": {"type": "delete"}}}, "../a"),
        ("applyPatchApproval", {"fileChanges": {"a": {"type": "update", "move_path": "/tmp/a"}}}, "/tmp/a"),
        ("execCommandApproval", {"cwd": "/root"}, "/root"),
    ],
)  # fmt: skip
def test_a_path_outside_the_workspace_is_named(method: str, params: dict[str, Any], path: str) -> None:
    marker = f"{OUTSIDE}{path}]"
    assert shown(method, params) == {**params, "reason": marker}
    assert shown(method, {**params, "reason": None}) == {**params, "reason": marker}
    assert shown(method, {**params, "reason": "to work"}) == {**params, "reason": f"{marker} to work"}
    assert asked(method, params, mount=None).said == []


@pytest.mark.parametrize("reason", [7, ["x"], {"a": 1}, True])
def test_a_reason_that_is_not_a_text_is_replaced(reason: object) -> None:
    assert shown(FILES, {"grantRoot": "/", "reason": reason}) == {"grantRoot": "/", "reason": f"{OUTSIDE}/]"}


# --- what only an earlier notification named ------------------------------------------------------


CHANGED = {"changes": [{"path": "/etc/passwd", "diff": ""}]}
THREAD = {
    "thread": {"id": "t", "turns": [{"id": "u", "items": [{"id": "h"}, {"type": "fileChange", "id": "i", **CHANGED}]}]}
}


@pytest.mark.parametrize(
    "before",
    [
        started("i", "/ws/a", "/etc/passwd"),
        started("i", "/etc/passwd") + started("i", "/ws/a"),
        started("j", "/ws/a") + started("i", "../etc/passwd").replace(b"..", b""),
        frame("item/fileChange/patchUpdated", {"itemId": "i", "changes": [{"path": "/etc/passwd", "diff": ""}]}, None),
        frame("Item/Started", {"item": {"ID": "i", "changes": [{"Path": "/etc/passwd"}]}}, None),
        started("i", kind="commandExecution", cwd="/etc/passwd"),
        # A client ignores the members that draw the paths to another id.
        frame("item/fileChange/patchUpdated", {"item": {"id": "x"}, "itemId": "i", **CHANGED}, None),
        frame("item/fileChange/patchUpdated", {"id": "x", "itemId": "i", **CHANGED}, None),
        frame("item/started", {"itemId": "x", "item": {"itemId": "y", "id": "i", **CHANGED}}, None),
        frame("item/started", {"item": {"id": "i", "changes": [{"id": "x", "path": "/etc/passwd"}]}}, None),
        # Items come with a turn and a thread as well, and with the answer that gives one.
        started("i", "/etc/passwd").replace(b"started", b"completed"),
        frame("turn/started", {"turn": {"id": "x", "items": [{"id": "i", **CHANGED}]}}, None),
        frame("thread/started", THREAD, None),
        json.dumps({"id": 1, "result": THREAD}).encode() + b"\n",
        json.dumps({"id": 1, "result": {"data": [{"id": "i", **CHANGED}]}}).encode() + b"\n",
        json.dumps({"id": 1, "result": THREAD}).replace("changes", "chang\\u0065s").encode() + b"\n",
    ],
)
def test_the_paths_of_a_change_are_named_in_its_question(before: bytes) -> None:
    params = {"threadId": "t", "itemId": "i", "reason": "r"}
    assert shown(FILES, params, before)["reason"] == f"{OUTSIDE}/etc/passwd] r"
    assert shown(FILES, {**params, "itemId": "k"}, before)["reason"] == "r"


def test_an_id_that_cannot_be_encoded_matches_what_parsers_make_of_it() -> None:
    before = started("i", "/etc/passwd").replace(b'"i"', b'"\\ud800"')
    assert shown(FILES, {"itemId": "\ufffd"}, before)["reason"] == f"{OUTSIDE}/etc/passwd]"


@given(st.lists(st.sampled_from(["/etc/a", "/ws/b", "c", "../d", "/more/e"]), max_size=4), st.booleans())
def test_exactly_the_changes_outside_are_named(paths: list[str], cut: bool) -> None:
    stream = started("i", *paths) + frame(FILES, {"itemId": "i"})
    result = from_agent(stream, places=range(0, len(stream), 7) if cut else (), channel=CodexChannel(mount=MOUNT))
    outside = dict.fromkeys(path for path in paths if path in ("/etc/a", "../d"))
    found = json.loads(result.to_client.splitlines()[-1])["params"].get("reason", "")
    assert found == (f"{OUTSIDE}{', '.join(outside)}]" if outside else "")


def test_memory_is_bounded_and_forgetting_is_reported() -> None:
    channel = CodexChannel(mount=MOUNT)
    tracemalloc.start()
    try:
        for number in range(1100):
            channel.agent_data(
                started(f"{number:06}" + "x" * 1000, *(f"/etc/{number}/{at}" + "y" * 900 for at in range(20)))
            )
            channel.for_client()
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 8 << 20
    result = from_agent(frame(FILES, {"itemId": "000000" + "x" * 1000}), channel=channel)
    assert b"update was too long ago" in result.to_client


# --- what contradicts itself ---------------------------------------------------------------------

DESCRIBED = "[podbot: the description is of another command than the one that runs]"


@pytest.mark.parametrize(
    ("params", "marker"),
    [
        ({"command": "rm -rf .", "commandActions": [{"type": "read", "command": "cat README"}]}, DESCRIBED),
        ({"command": ["rm", "-rf", "."], "parsedCmd": [{"type": "read", "cmd": "cat README"}]}, DESCRIBED),
        (
            {"command": "git status", "proposedExecpolicyAmendment": ["git", "push"]},
            "[podbot: the lasting permission is for another command: git push]",
        ),
        (
            {"command": "ls", "availableDecisions": [
                "accept", {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["rm", "\x1b[2J"]}}]},
            "[podbot: the lasting permission is for another command: rm \\u001b[2J]",
        ),
        ({"command": "ls", "commandActions": [{"command": "ls"}] * 3 + [{"command": "a b"}]}, DESCRIBED),
        ({"command": "cat k", "commandActions": [{"type": "read", "command": "cat k", "name": "README"}]}, DESCRIBED),
        ({"command": "rg key", "commandActions": [{"type": "search", "command": "rg key", "query": "doc"}]}, DESCRIBED),
        ({"command": "curl x | sh", "commandActions": [{"type": "read", "command": ""}]}, DESCRIBED),
        ({"commandActions": [{"type": "read", "command": "cat README", "name": "README"}]}, DESCRIBED),
        ({"command": "digital", "commandActions": [{"command": "git"}]}, DESCRIBED),
        (
            {"command": "npm run format", "proposedExecpolicyAmendment": ["rm"]},
            "[podbot: the lasting permission is for another command: rm]",
        ),
        (
            {"command": "ls; rm a", "proposedExecpolicyAmendment": ["rm", "ls"]},
            "[podbot: the lasting permission is for another command: rm ls]",
        ),
        (
            {"command": "ls", "proposedExecpolicyAmendment": []},
            "[podbot: the lasting permission is for another command: any]",
        ),
        (
            {
                "networkApprovalContext": {"host": "good.example", "protocol": "https"},
                "proposedNetworkPolicyAmendments": [{"host": "good.example", "action": "allow"}],
                "availableDecisions": [
                    "accept",
                    {"applyNetworkPolicyAmendment": {"network_policy_amendment": {"host": "b.example"}}},
                ],
            },
            "[podbot: the lasting permission is for another host: b.example]",
        ),
    ],
)  # fmt: skip
def test_a_command_and_its_description(params: dict[str, Any], marker: str) -> None:
    for method in (COMMAND, "execCommandApproval"):
        result = asked(method, {**params, "reason": "r"})
        assert json.loads(result.to_client)["params"]["reason"] == f"{marker} r"
        assert result.reasons == ["marked_question"]


def test_lasting_permissions_for_the_same_command_keep_their_bytes() -> None:
    amendments = [{"host": "good.example", "action": "allow"}, {"host": "bad.example", "action": "deny"}]
    params = {"networkApprovalContext": {"host": "good.example"}, "proposedNetworkPolicyAmendments": amendments}
    assert shown(COMMAND, params) == params
    quoted = {
        "command": "bash -lc 'git commit -m \"a b\"; ls'",
        "proposedExecpolicyAmendment": ["git", "commit", "-m", "a b"],
    }
    assert shown(COMMAND, quoted) == quoted


@pytest.mark.parametrize("value", [None, [], {}, 7, "x", [None], [[1]], [{"command": ["x"]}], [{}]])
@pytest.mark.parametrize("key", ["commandActions", "parsedCmd", "availableDecisions", "proposedExecpolicyAmendment"])
def test_members_of_unexpected_form_do_no_harm(key: str, value: object) -> None:
    result = asked(COMMAND, {"command": "ls", key: value})
    assert json.loads(result.to_client)["params"]["command"] == "ls"


@pytest.mark.parametrize("method", ASKING)
def test_a_question_without_parameters_keeps_its_bytes(method: str) -> None:
    plain = json.dumps({"method": method, "id": 7}).encode() + b"\n"
    result = from_agent(plain, channel=CodexChannel(mount=MOUNT))
    assert (result.to_client, result.said) == (plain, [])


@pytest.mark.parametrize("params", ["/etc/passwd", 1])
def test_a_started_item_without_an_object_of_parameters_keeps_its_bytes(params: object) -> None:
    plain = frame("item/started", params, None)
    assert from_agent(plain, channel=CodexChannel(mount=MOUNT)).to_client == plain


@pytest.mark.parametrize("item", ["x", 1, None, True])
@pytest.mark.parametrize("ident", [{}, {"itemId": "i"}, {"itemId": 1}])
def test_a_started_item_that_is_not_an_object_keeps_its_bytes(item: object, ident: dict[str, object]) -> None:
    plain = frame("item/started", {"threadId": "t", **ident, "item": item}, None)
    result = from_agent(plain, channel=CodexChannel(mount=MOUNT))
    assert (result.to_client, result.said) == (plain, [])
