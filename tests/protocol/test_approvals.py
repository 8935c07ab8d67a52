"""Questions of the Codex App Server to the user: marked as ACP's questions are, otherwise unchanged."""

from __future__ import annotations

import json
import posixpath
import shlex
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.protocol.app_server import CodexChannel
from podbot.protocol.methods import CODEX
from podbot.protocol.path_map import PathScope
from podbot.protocol.questions import LONGEST_PATH
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
        "proposedExecpolicyAmendment": ["head", "-5"],
        "availableDecisions": [
            "accept",
            {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["head"]}},
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
        (COMMAND, {"command": "cat ~/.ssh/id", "commandActions": [
            {"type": "read", "command": "cat ~/.ssh/id", "path": "/root/.ssh/id"}]}, "/root/.ssh/id"),
        ("item/permissions/requestApproval", {"permissions": {"fileSystem": {"entries": [
            {"path": {"type": "special", "value": {"kind": "root"}}, "access": "write"}]}}}, "/"),
        # In another spelling, and one that is unknown here.
        (COMMAND, {"permissions": {"x": [{"value": {"kind": "Root"}}, {"KIND": "minimal"}]}}, "/"),
        (COMMAND, {"permissions": {"x": {"kind": "SLASH_TMP"}, "y": {"kind": "project_roots"}}}, "/tmp"),
        (COMMAND, {"permissions": {"x": {"kind": "TmpDir"}}}, "the directory for temporary files"),
        (COMMAND, {"additional_permissions": {"x": {"kind": "home"}}}, "home"),
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
                started(f"{number:06}" + "x" * 1000, *(f"/etc/{number}/{at}" + "y" * 1800 for at in range(10)))
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


LEFT_OUT = "[podbot: the description leaves out a part of the command: "
LASTING = "[podbot: the lasting permission is for another command: "
OFFER = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["ls"]}}
HOST = "[podbot: the lasting permission is for another host: "
BROAD = "[podbot: the lasting permission is for more than this command: "


def run_by_bash(script: str) -> str:
    return shlex.join(["/bin/bash", "-lc", script])


def marker_in(params: dict[str, Any], method: str = COMMAND) -> str:
    """What podbot says of a question; empty when it keeps its bytes."""
    result = asked(method, {**params, "reason": "r"})
    reason: str = json.loads(result.to_client)["params"]["reason"]
    assert result.reasons == ([] if reason == "r" else ["marked_question"])
    return reason.removesuffix("r").rstrip()


@pytest.mark.parametrize(
    ("script", "actions"),
    [
        # As Codex 0.169 describes them: each plain command, without those that only print or change what others print.
        ("git status", [{"command": "git status"}]),
        ("cat docs/guide/README.md", [{"command": "cat docs/guide/README.md", "name": "README.md"}]),
        ("cat web/src", [{"command": "cat web/src", "name": "web"}]),
        ("cat 'my notes/a b.txt'", [{"command": "cat 'my notes/a b.txt'", "name": "a b.txt"}]),
        ("cd lib && cat x.py", [{"command": "cat x.py", "name": "x.py"}]),
        ("echo ==; ls -la | head -n 40", [{"command": "ls -la", "path": None}]),
        ("printf '\\n== a\\n'; cat -- a/Cargo.toml", [{"command": "cat -- a/Cargo.toml", "name": "Cargo.toml"}]),
        ("rg -n 'BUG|TO DO' -S | sort -u | wc -l", [{"command": "rg -n 'BUG|TO DO' -S", "query": "BUG|TO DO"}]),
        ('rg -n "a b" -g"*.py" lib', [{"command": "rg -n 'a b' '-g*.py' lib", "query": "a b"}]),
        ("rg --files | sed -n 1,20p", [{"command": "rg --files"}]),
        ("rg --files | awk '{print $1, $2}' | sed 's/a/b/g' | tail -20", [{"command": "rg --files"}]),
        ("rg x \\\n  src", [{"command": "rg x src", "query": "x", "path": "src"}]),
        ("nl -ba a/b.rs | sed -n '1,9p'", [{"command": "nl -ba a/b.rs | sed -n '1,9p'", "name": "b.rs"}]),
        ("ls\ncat a\ncat b", [{"command": "ls"}, {"command": "cat a", "name": "a"}, {"command": "cat b", "name": "b"}]),
        ("ls a || true", [{"command": "ls a", "path": "a"}]),
        ("for i in 1 2; do rm $i; done", [{"command": "for i in 1 2; do rm $i; done"}]),
        ("FOO=1 make > log 2>&1", [{"command": "FOO=1 make > log 2>&1"}]),
        ("python3 - <<'EOF'\nprint(1)\nEOF", [{"command": "python3 - <<'EOF'\nprint(1)\nEOF"}]),
        ("ls # all of them", [{"command": "ls # all of them"}]),
        ("# all of them\nls", [{"command": "# all of them\nls"}]),
        ("git commit -m \"it's $USER\"", [{"command": "git commit -m \"it's $USER\""}]),
        ("cat a/b.py", [{"type": "read", "command": "cat a/b.py", "name": "b.py", "path": "/ws/x/a/b.py"}]),
        ("cat a/b.py", [{"type": "read", "command": "cat a/b.py", "name": "b.py", "path": "a/b.py"}]),
        ("cat /ws/b", [{"type": "read", "command": "cat /ws/b", "name": "b", "path": "/ws/b"}]),
        ("cat ../b", [{"type": "read", "command": "cat ../b", "name": "b", "path": "/ws/b"}]),
        ("cd lib && cat x.py", [{"type": "read", "command": "cat x.py", "name": "x.py", "path": "lib/x.py"}]),
        ("cd lib && cat x.py", [{"type": "read", "command": "cat x.py", "name": "x.py", "path": "/ws/x/lib/x.py"}]),
        ("cd lib/..; cat x", [{"type": "read", "command": "cat x", "path": "/ws/x/x"}]),
        ("sed -n '1,9p' a/b.rs", [{"type": "read", "command": "sed -n 1,9p a/b.rs", "path": "/ws/x/a/b.rs"}]),
        ("awk '{print $1}' b", [{"type": "read", "command": "awk '{print $1}' b", "path": "/ws/x/b"}]),
        ("nl -ba b | sed -n 1,9p", [{"type": "read", "command": "nl -ba b | sed -n 1,9p", "path": "/ws/x/b"}]),
        ("/usr/bin/tail -n +5 b", [{"type": "read", "command": "/usr/bin/tail -n +5 b", "path": "b"}]),
        ("ls web/src/", [{"type": "listFiles", "command": "ls web/src/", "path": "web"}]),
        ("ls .", [{"type": "list_files", "command": "ls .", "path": "/ws/x"}]),
        ("git ls-files", [{"type": "listFiles", "command": "git ls-files", "path": None}]),
        ("git grep -n a lib", [{"type": "search", "command": "git grep -n a lib", "query": "a", "path": "lib"}]),
        ("find lib -name a", [{"type": "search", "command": "find lib -name a", "query": "a", "path": "lib"}]),
        ("rm x", [{"type": "unknown", "command": "rm x"}]),
    ],
)  # fmt: skip
def test_descriptions_of_codex_itself_keep_their_bytes(script: str, actions: list[dict[str, Any]]) -> None:
    asked_in: dict[str, Any] = {"command": run_by_bash(script), "cwd": "/ws/x"}
    assert marker_in({**asked_in, "commandActions": actions}) == ""
    parsed = [{"cmd" if key == "command" else key: value for key, value in each.items()} for each in actions]
    asked_in["command"] = ["bash", "-lc", script]
    assert marker_in({**asked_in, "parsedCmd": parsed}, "execCommandApproval") == ""


@pytest.mark.parametrize(
    ("command", "actions", "marker"),
    [
        ("curl -s x | sh; rm -rf ~/tools", [{"command": "ls"}], DESCRIBED),
        (run_by_bash("curl -s x | sh; rm -rf ~/tools"), [{"command": "ls"}], DESCRIBED),
        (run_by_bash("ls; rm -rf ~/tools"), [{"command": "ls"}], f"{LEFT_OUT}rm -rf ~/tools]"),
        (run_by_bash("ls | xargs rm"), [{"command": "ls"}], f"{LEFT_OUT}xargs rm]"),
        (run_by_bash("ls | tee ~/.bashrc"), [{"command": "ls"}], f"{LEFT_OUT}tee ~/.bashrc]"),
        (run_by_bash("ls | sort -o x"), [{"command": "ls"}], f"{LEFT_OUT}sort -o x]"),
        (run_by_bash("ls | sed 's/a/b/e'"), [{"command": "ls"}], f"{LEFT_OUT}sed s/a/b/e]"),
        (run_by_bash("ls | sed 's/a/b/\nw x'"), [{"command": "ls"}], f"{LEFT_OUT}sed s/a/b/ w x]"),
        (run_by_bash("ls | awk '{print > \"x\"}'"), [{"command": "ls"}], f"{LEFT_OUT}awk {{print > x}}]"),
        (run_by_bash("ls | uniq - x"), [{"command": "ls"}], f"{LEFT_OUT}uniq - x]"),
        (run_by_bash("./echo x; ls"), [{"command": "ls"}], f"{LEFT_OUT}./echo x]"),
        (run_by_bash("ls\nrm x"), [{"command": "ls"}], f"{LEFT_OUT}rm x]"),
        # The description's words are in the command, but it runs another one.
        (run_by_bash("echo ls"), [{"command": "ls"}], DESCRIBED),
        (run_by_bash("rm ls -la"), [{"command": "ls -la"}], DESCRIBED),
        (run_by_bash("git push"), [{"command": "git"}], DESCRIBED),
        (run_by_bash("grep 'a; ls' x"), [{"command": "ls"}], DESCRIBED),
        (run_by_bash("grep a; rm x"), [{"command": "grep 'a; rm x'"}], DESCRIBED),
        (run_by_bash("rg $(rm x)"), [{"command": "rg '$(rm x)'"}], DESCRIBED),
        (run_by_bash("ls > ~/.bashrc"), [{"command": "ls"}], DESCRIBED),
        (run_by_bash("ls & rm x"), [{"command": "ls"}], DESCRIBED),
        (run_by_bash("ls; $(rm x)"), [{"command": "ls"}], DESCRIBED),
        (run_by_bash("ls; (rm x)"), [{"command": "ls"}], DESCRIBED),
        (run_by_bash("ls #; rm x"), [{"command": "rm x"}], DESCRIBED),
        ("ls 'x", [{"command": "ls"}], DESCRIBED),
        ("x" * 70_000, [{"command": "x"}], DESCRIBED),
        # A name or a pattern of something else in it.
        (run_by_bash("cat README ../key"), [{"command": "cat README ../key", "name": "docs"}], DESCRIBED),
        (run_by_bash("cat README/../key"), [{"command": "cat README/../key", "name": "README"}], DESCRIBED),
        (run_by_bash("ls; cat key"), [{"command": "ls", "name": "key"}, {"command": "cat key"}], DESCRIBED),
        (run_by_bash("rg 'a b'"), [{"command": "rg 'a b'", "query": "a"}], DESCRIBED),
        (run_by_bash("cat a"), [{"command": "cat a", "name": ["a"]}], DESCRIBED),
        # Clients differ in which of two members they read.
        (run_by_bash("rm x"), [{"command": "ls", "Command": "rm x"}], DESCRIBED),
        (run_by_bash("rm x"), [{"command": "rm x", "cmd": "ls"}], DESCRIBED),
        (run_by_bash("cat a"), [{"command": "cat a", "name": "a", "NAME": "b"}], DESCRIBED),
        (run_by_bash("cat a"), [{"command": "cat a", "path": "b"}], DESCRIBED),
        (run_by_bash("cat a"), [{"command": "cat a", "path": "/ws/b"}], DESCRIBED),
        (run_by_bash("cat a"), [{"command": "cat a", "path": "/ws/x/b/a"}], DESCRIBED),
        (run_by_bash("cat /ws/y/a"), [{"command": "cat /ws/y/a", "path": "/ws/x/a"}], DESCRIBED),
        (run_by_bash("cat ../../y/a"), [{"command": "cat ../../y/a", "path": "/ws/y/a"}], DESCRIBED),
        (run_by_bash("cat ~/a"), [{"command": "cat ~/a", "path": "/ws/a"}], DESCRIBED),
        (run_by_bash("cd lib; cat a"), [{"command": "cat a", "path": "/ws/x/a"}], DESCRIBED),
        (run_by_bash("cat a"), [{"command": "cat a", "path": ["a"]}], DESCRIBED),
        (run_by_bash("cat a"), [{"command": "cat a", "path": "a", "Path": "b"}], DESCRIBED),
        ("cat " + "a" * 1025, [{"command": "cat " + "a" * 1025, "path": "/ws/x/" + "a" * 1025}], DESCRIBED),
        # A type that says another thing than the command does.
        (run_by_bash("rm a"), [{"type": "read", "command": "rm a", "name": "a"}], DESCRIBED),
        (run_by_bash("rm a | cat"), [{"type": "read", "command": "rm a | cat", "name": "a"}], DESCRIBED),
        (run_by_bash("rm a"), [{"type": "list_files", "command": "rm a", "path": "a"}], DESCRIBED),
        (run_by_bash("sed -i s/a/b/ x"), [{"type": "read", "command": "sed -i s/a/b/ x", "name": "x"}], DESCRIBED),
        (run_by_bash("sed -n 1e"), [{"type": "read", "command": "sed -n 1e"}], DESCRIBED),
        (run_by_bash("sed -n 1p -i"), [{"type": "read", "command": "sed -n 1p -i"}], DESCRIBED),
        (run_by_bash("find . -delete"), [{"type": "search", "command": "find . -delete"}], DESCRIBED),
        (run_by_bash("fd x -x rm"), [{"type": "listFiles", "command": "fd x -x rm"}], DESCRIBED),
        (run_by_bash("rg x --pre=y"), [{"type": "search", "command": "rg x --pre=y"}], DESCRIBED),
        (run_by_bash("git rm x"), [{"type": "search", "command": "git rm x"}], DESCRIBED),
        (run_by_bash("./cat a"), [{"type": "read", "command": "./cat a"}], DESCRIBED),
        (run_by_bash("cat $(rm a)"), [{"type": "read", "command": "cat $(rm a)"}], DESCRIBED),
        (run_by_bash("cat a"), [{"type": ["read"], "command": "cat a"}], DESCRIBED),
        (run_by_bash("cat a"), [{"type": "unknown", "Type": {}, "command": "cat a"}], DESCRIBED),
        (run_by_bash("ls"), {"type": "read", "command": "cat README"}, DESCRIBED),
        (run_by_bash("ls"), "cat README", DESCRIBED),
        (run_by_bash("ls"), [{"command": "ls"}] * 1001, DESCRIBED),
        # A program of the workspace is no shell, whatever its name is.
        ("/ws/evil/bash -lc ls", [{"command": "ls"}], DESCRIBED),
        ("./bash -lc ls", [{"command": "ls"}], DESCRIBED),
        ("/bash -lc ls", [{"command": "ls"}], DESCRIBED),
        ("/usr/bin/../../ws/bash -lc ls", [{"command": "ls"}], DESCRIBED),
        (["/ws/evil/bash", "-lc", "ls"], [{"command": "ls"}], DESCRIBED),
        ("/usr/local/bin/bash -lc ls", [{"command": "ls"}], ""),
        ("zsh -c ls", [{"command": "ls"}], ""),
        # No command, or one without a description.
        (None, [{"command": "ls"}], DESCRIBED),
        ("", [{"command": "ls"}], DESCRIBED),
        (" ", [{"command": " "}], DESCRIBED),
        ([], [{"command": "ls"}], DESCRIBED),
        ({"x": "ls"}, [{"command": "ls"}], DESCRIBED),
        (run_by_bash("ls"), [{"type": "listFiles", "path": "src"}], DESCRIBED),
        (run_by_bash("ls"), [{"command": None}], DESCRIBED),
        (run_by_bash("ls"), [{"command": ["ls"]}], DESCRIBED),
        (run_by_bash("ls"), ["ls"], DESCRIBED),
    ],
)  # fmt: skip
def test_a_description_of_another_command_or_of_a_part_is_marked(command: Any, actions: Any, marker: str) -> None:
    assert marker_in({"command": command, "commandActions": actions, "cwd": "/ws/x"}) == marker


def test_a_path_without_a_directory_to_start_from_is_marked() -> None:
    question = {"command": "cat a", "commandActions": [{"command": "cat a", "path": "/ws/a"}]}
    assert marker_in(question) == marker_in({**question, "cwd": 7}) == DESCRIBED
    assert marker_in({**question, "cwd": "/ws"}) == ""


_PARTS = st.sampled_from(["a", "b.py", "..", ".", "lib"])
_RELATIVE = st.lists(_PARTS, min_size=1, max_size=4).map("/".join)


@given(st.lists(_RELATIVE, max_size=3), _RELATIVE, st.sampled_from(["/ws", "/ws/x/y"]), _RELATIVE)
def test_the_absolute_path_of_what_a_command_names(ways: list[str], word: str, cwd: str, other: str) -> None:
    script = "".join(f"cd {way} && " for way in ways) + f"cat {word}"
    action, mount = {"command": f"cat {word}"}, PathScope("/", "")
    for path in (posixpath.normpath(posixpath.join(cwd, *ways, word)), posixpath.normpath(posixpath.join(cwd, other))):
        params = {"command": run_by_bash(script), "cwd": cwd, "commandActions": [{**action, "path": path}]}
        right = path == posixpath.normpath(posixpath.join(cwd, *ways, word))
        assert (asked(COMMAND, params, mount=mount).said == []) == right


def test_a_question_with_descriptions_and_no_command_is_marked() -> None:
    for key in ("commandActions", "parsedCmd", "command_actions"):
        assert marker_in({key: [{"type": "read", "command": "cat README", "name": "README"}]}) == DESCRIBED
        assert marker_in({key: []}) == marker_in({key: None}) == ""
        assert marker_in({key: {}}) == DESCRIBED


@pytest.mark.parametrize(
    ("command", "words", "marker"),
    [
        # What Codex proposes: the words of a plain command, or the model's prefix of them; of other scripts, the whole.
        (run_by_bash("git push origin main"), ["git", "push", "origin", "main"], ""),
        (run_by_bash("git push origin main"), ["git", "push"], ""),
        (run_by_bash("cd x && npm run build"), ["npm", "run", "build"], ""),
        (run_by_bash("cd x && npm run build"), ["npm", "run"], f"{BROAD}npm run]"),
        (run_by_bash("npm run x && rm y"), ["rm", "y"], ""),
        (run_by_bash("npm run x && rm y"), ["rm"], f"{BROAD}rm]"),
        (run_by_bash("git commit -m 'a  b'"), ["git", "commit", "-m", "a  b"], ""),
        (run_by_bash("make > log"), ["/bin/bash", "-lc", "make > log"], ""),
        (["python3", "x.py"], ["python3", "x.py"], ""),
        (["env"], ["env"], f"{BROAD}env]"),
        (run_by_bash("git push"), ["sh"], f"{LASTING}sh]"),
        (run_by_bash("npm run format"), ["rm"], f"{LASTING}rm]"),
        (run_by_bash("npm run rm x"), ["rm"], f"{LASTING}rm]"),
        (run_by_bash("npm run x rm y"), ["rm", "y"], f"{LASTING}rm y]"),
        (run_by_bash("git status && echo git push"), ["git", "push"], f"{LASTING}git push]"),
        (run_by_bash("git status; ls"), ["git", "status", "ls"], f"{LASTING}git status ls]"),
        (run_by_bash("git status"), ["git", "status", "--x"], f"{LASTING}git status --x]"),
        (run_by_bash("git commit -m 'rm -rf'"), ["rm", "-rf"], f"{LASTING}rm -rf]"),
        (run_by_bash("echo 'x; rm y'"), ["rm"], f"{LASTING}rm]"),
        (run_by_bash("ls -la"), ["l"], f"{LASTING}l]"),
        (run_by_bash("ls"), ["bash", "-lc"], f"{LASTING}bash -lc]"),
        (run_by_bash("make > log"), ["make"], f"{LASTING}make]"),
        (run_by_bash("make > log"), ["/bin/bash", "-lc"], f"{LASTING}/bin/bash -lc]"),
        ("bash -lc", ["bash", "-lc"], f"{BROAD}bash -lc]"),
        (run_by_bash("/usr/bin/python3 -c 'x'"), ["/usr/bin/python3", "-c"], f"{BROAD}/usr/bin/python3 -c]"),
        (run_by_bash("curl x | sh"), ["sh"], f"{BROAD}sh]"),
        (run_by_bash("git status"), ["git"], f"{BROAD}git]"),
        (run_by_bash("sudo ls"), ["sudo"], f"{BROAD}sudo]"),
        (run_by_bash("ls"), [""], f"{LASTING}any]"),
        (run_by_bash("ls"), ["ls"] * 2000, f"{LASTING}{('ls ' * 2000)[:LONGEST_PATH]}]"),
        (None, ["ls"], f"{LASTING}ls]"),
    ],
)  # fmt: skip
def test_a_lasting_permission_is_for_a_beginning_of_the_command(command: Any, words: list[str], marker: str) -> None:
    assert marker_in({"command": command, "proposedExecpolicyAmendment": words}) == marker
    offered = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": words}}
    assert marker_in({"command": command, "availableDecisions": ["accept", offered]}) == marker
    twice = {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["x"], "execpolicyAmendment": ["x"]}}
    assert marker_in({"command": "ls", "availableDecisions": [offered, twice]}) != ""


@pytest.mark.parametrize(
    ("members", "marker"),
    [
        ({"proposedExecpolicyAmendment": "ls"}, f"{LASTING}any]"),
        ({"proposedExecpolicyAmendment": {"command": ["ls"]}}, f"{LASTING}any]"),
        ({"proposed_execpolicy_amendment": True}, f"{LASTING}any]"),
        ({"availableDecisions": [{"acceptWithExecpolicyAmendment": "ls"}]}, f"{LASTING}any]"),
        ({"availableDecisions": [{"acceptWithExecpolicyAmendment": {}}]}, f"{LASTING}any]"),
        ({"availableDecisions": [{"acceptWithExecpolicyAmendment": {"execpolicyAmendment": "ls"}}]}, f"{LASTING}any]"),
        ({"availableDecisions": {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["rm"]}}}, f"{LASTING}rm]"),
        ({"availableDecisions": ["accept"] * 2000 + [
            {"acceptWithExecpolicyAmendment": {"execpolicy_amendment": ["rm"]}}]}, f"{LASTING}rm]"),
        ({"availableDecisions": [OFFER] * 17}, f"{LASTING}any]"),
        ({"availableDecisions": [OFFER] * 16}, ""),
        ({"availableDecisions": [{"applyNetworkPolicyAmendment": "b.example"}]}, f"{HOST}any]"),
        ({"proposedNetworkPolicyAmendments": "b.example"}, f"{HOST}any]"),
        ({"proposedNetworkPolicyAmendments": {"host": "b.example", "action": "allow"}}, f"{HOST}b.example]"),
        ({"proposedNetworkPolicyAmendments": [{"host": ["b.example"]}]}, f"{HOST}any]"),
        ({"proposedNetworkPolicyAmendments": [{"host": "a.example", "Host": "b.example"}]}, f"{HOST}b.example]"),
        ({"proposedNetworkPolicyAmendments": [{"host": "a.example", "Host": "a.example"}]}, f"{HOST}any]"),
        ({"proposedNetworkPolicyAmendments": [{"action": "allow"}, {"host": "a.example"}]}, f"{HOST}any]"),
        ({"proposedNetworkPolicyAmendments": [{"action": "deny"}, {"host": "a.example"}]}, ""),
    ],
)  # fmt: skip
def test_a_lasting_permission_of_another_form_is_for_any(members: dict[str, Any], marker: str) -> None:
    assert marker_in({"command": "ls", "networkApprovalContext": {"host": "a.example"}, **members}) == marker


@pytest.mark.parametrize(
    "key",
    ["Command", "command_actions", "parsed_cmd", "PROPOSED_EXECPOLICY_AMENDMENT", "available_decisions",
     "network_approval_context", "proposedNetworkPolicyAmendment_s"],
)  # fmt: skip
def test_a_question_with_two_members_that_decide_is_refused(key: str) -> None:
    """One client shows this one, another client that one."""
    own = {"command": "ls", "commandActions": [], "parsedCmd": [], "proposedExecpolicyAmendment": ["ls"],
           "availableDecisions": [], "networkApprovalContext": None, "proposedNetworkPolicyAmendments": []}  # fmt: skip
    assert asked(COMMAND, own).said == []
    for params in ({**own, key: "ls"}, {key: None, **own}):
        result = asked(COMMAND, params)
        assert (result.to_client, result.reasons) == (b"", ["duplicate_key"])


_PLAIN = st.text("abc/-_.", min_size=1, max_size=6)
_WORDS = st.builds(
    lambda program, rest: [program, *rest], st.sampled_from(["cat", "rm", "a/b", "make"]),
    st.lists(_PLAIN | st.text("ab '\"$;|&()<>#*~=\n{}", min_size=1, max_size=6), max_size=3),
)  # fmt: skip
_JOINED = st.lists(st.tuples(_WORDS, st.sampled_from([" && ", ";", " | ", "||", "\n"])), min_size=1, max_size=4)


@given(_JOINED, st.data())
def test_descriptions_and_permissions_of_any_plain_script(
    script: list[tuple[list[str], str]], data: st.DataObject
) -> None:
    commands = [words for words, _ in script]
    text = "".join(shlex.join(words) + joint for words, joint in script[:-1]) + shlex.join(commands[-1])
    command = {"command": run_by_bash(text)}
    actions = [{"command": shlex.join(words)} for words in commands]
    assert marker_in({**command, "commandActions": actions}) == ""
    assert marker_in({**command, "commandActions": [{"command": text}]}) == ""
    out = data.draw(st.sampled_from(commands))
    fewer = [action for action in actions if action["command"] != shlex.join(out)]
    if fewer:
        assert marker_in({**command, "commandActions": fewer}).startswith(LEFT_OUT)
    words = out[: data.draw(st.integers(1, len(out)))]
    found = marker_in({**command, "proposedExecpolicyAmendment": words})
    assert found == "" or (out[0] != "cat" and found.startswith(BROAD))
    other = data.draw(_WORDS)
    if not any(bare(known)[: len(other)] == bare(other) for known in commands):
        assert marker_in({**command, "proposedExecpolicyAmendment": other}).startswith(LASTING)
        assert marker_in({**command, "commandActions": [{"command": shlex.join(other)}]}) == DESCRIBED


def bare(words: list[str]) -> list[str]:
    """Without the marks by which shells quote: two spellings of one word are equal without them."""
    return [word.translate(str.maketrans("", "", "'\"\\")) for word in words]


@given(st.text("ab '\"\\$;|&()<>#*\n", max_size=30), st.text("ab '\"\\$;|&()<>#*\n", max_size=30))
def test_any_command_and_description_are_read(command: str, description: str) -> None:
    """Whatever they are, the question reaches the user, and a command described by itself is not marked."""
    for each in (command, run_by_bash(command)):
        found = marker_in({"command": each, "commandActions": [{"command": description}]})
        assert found == "" or found.startswith("[podbot: the description ")
    if command.strip():
        assert marker_in({"command": run_by_bash(command), "commandActions": [{"command": command}]}) == ""


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
