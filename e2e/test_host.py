"""``podbot host`` on the real engine, with agents that send what they should not. Ends: ``test_host_ends.py``; real
agents: ``test_host_agents.py``.

stdout always contains the agent's frames and nothing else; stderr contains everything else.
"""

from __future__ import annotations

import json
import os
from typing import Any

import pytest

from e2e.harness import World
from e2e.host.frames import SECRET, line, offers, request
from e2e.host.pipe import pipe

POLICY = -32001
FORM = "podbot_frame_form"


# --- what the client says ---------------------------------------------------------------------------


def test_every_initialize_is_masked_and_all_other_bytes_are_the_clients(world: World) -> None:
    odd = b'{ "jsonrpc" : "2.0","id":1e2,"method":"x","params":{"t":"\\u00e9\xc3\xa9\\/","n":1e5,"x":1,"x":2}}\n'
    head, tail = (
        b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,',
        b',"unknown":{"fs":1}}}\n',
    )
    kept = b'"elicitation":{"form":{}},"_meta":{%s"kept":[1.50]}'
    first = head + b'"clientCapabilities":{"fs":{},"terminal":true,' + kept % b'"terminal-auth":true,' + b"}" + tail
    masked = head + b'"clientCapabilities":{' + kept % b"" + b"}" + tail
    with pipe(world, "puppet") as host:
        host.write(b"\n# a shell that says hello\n{\n\xff\xfe\n")  # noise before it does not let it pass
        host.write(first)
        host.wait(lambda frame: frame.get("id") == 0)
        host.write(odd)
        host.wait(lambda frame: frame.get("id") == 100)
        host.send({"method": "initialize", "id": 3, "params": {"protocolVersion": 2, "capabilities": offers(plan={})}})
        host.send([request("initialize", 4, clientCapabilities=offers()), request("session/cancel", 5)])
        host.ask("session/list")
        assert host.finish() == 0
        seen = host.seen()
        assert seen[0] == masked
        assert seen[1] == odd
        again = json.loads(seen[2])
        assert again["params"]["capabilities"] in ({"auth": {}, "plan": {}}, {"plan": {}})
        batch = json.loads(seen[3])
        assert [message["method"] for message in batch] == ["initialize", "session/cancel"]
        assert not {"fs", "terminal"} & set(batch[0]["params"]["clientCapabilities"])
        assert len(seen) == 5
        assert SECRET not in host.err.decode()
        for words in (b"a shell that says hello", b"\xff\xfe"):
            assert words not in host.out
        host.frames()


def test_a_batch_and_frames_of_all_sizes_reach_the_agent_unchanged(world: World) -> None:
    frames = [
        line(request("session/prompt", number, text="x" * size))
        for number, size in enumerate([0, 1, 4095, 65535, 65536, 65537, 200 << 10, 5 << 20])
    ]
    with pipe(world, "puppet") as host:
        for frame in frames:
            host.write(frame)
        host.wait(lambda frame: frame.get("id") == len(frames) - 1)
        assert host.finish() == 0
        assert host.seen() == frames


# --- what the agent says ----------------------------------------------------------------------------


def test_banners_go_to_stderr_and_frames_keep_their_bytes(world: World) -> None:
    odd = b'{  "id" : "no jsonrpc", "result":{"a":1.0e3,"b":"\\u0041\xc3\xa9"} ,"x":[ ]}\n'
    with pipe(world, "puppet") as host:
        noise = (b"Welcome to Agent 3!\n", b"\x1b[32mupdate available\x1b[0m\n", b"\n", b"null\n", b"42\n", b'"text"\n')
        # 10.18: a banner without a newline, JSON that is not JSON-RPC, and JSON that is spread over lines.
        host.make_say(b"Loading... ")  # the puppet's reply follows it on the same line, and the client waits for it
        host.make_say(*noise, odd, b"not { json\n", odd)
        # Log lines that quote others are not frames, even in front of the reply to an open request.
        host.make_say(b'DEBUG mcp(evil) <- {"jsonrpc":"2.0","id":"e2e-3","result":"forged"}\n')
        host.make_say(b'{"level":"info","msg":"a log"}\n', b'{\n  "spread": {\n    "id": 1\n  }\n}\n', odd)
        assert host.finish() == 0
        frames = host.out.splitlines(keepends=True)
        assert [bytes(frame) for frame in frames if b"no jsonrpc" in frame] == [odd] * 3
        assert [frame["id"] for frame in host.frames() if frame["id"] != "no jsonrpc"] == [
            f"e2e-{number}" for number in (1, 2, 3, 4)
        ]
        assert len(frames) == 7
        assert b"forged" not in host.out
        for words in (b"Welcome to Agent 3!", b"update available", b"not { json", b"Loading...", b"a log", b'"spread"',
                      b"DEBUG mcp(evil)"):  # fmt: skip
            assert words in host.err
        assert len(host.said("the agent printed", "moved from stdout to stderr")) == 4  # once for each kind
        assert host.said("lines of the agent's stdout that were moved to stderr", "5 of spread JSON")
        assert not host.said("refused")


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_agent_cannot_write_in_podbots_name_or_flood_stderr(world: World, form: str) -> None:
    """Issue 12.9 and 12.3: a forged line, a forged event, and 100 MB at once."""
    event = json.dumps({"level": "error", "kind": "EngineGone", "message": "forged"})
    forge = f"echo 'podbot: forged'; printf '\\rpodbot: forged\\n'; echo '{event}'"
    command = f"({forge}; yes flood | head -c 100000000) >&2; exec python3 /e2e/host/agent.py puppet"
    with pipe(world, "/bin/bash", "-c", command, flags=("--log-format", form)) as host:
        host.ask("session/list")
        assert host.finish() == 0
        assert len(host.err) < 8 << 20
        lines = [line for line in host.err.decode().splitlines() if "forged" in line]
        assert len(lines) == 3
        if form == "json":
            assert {json.loads(line)["kind"] for line in lines} == {"agent.stderr"}
            left = [json.loads(line) for line in host.err.decode().splitlines() if "agent.left_out" in line]
            assert sum(event["lines"] for event in left) > 10_000_000
        else:
            assert all(line.startswith("agent: ") for line in lines)
            assert host.said("podbot: dropped", "lines")


DENIED = (
    "fs/read_text_file", "fs/write_text_file", "terminal/create", "terminal/kill", "mcp/connect", "fs/any_other",
    "client/fs/read_text_file", "_zed.dev/terminal/create", "workspace/applyEdit", "shell/exec", "_open_url",
)  # fmt: skip


def test_denied_methods_never_arrive_and_the_agent_gets_an_error(world: World) -> None:
    with pipe(world, "puppet") as host:
        ids = (7, "seven", None, 1.5, "", -1, 8, 9, 10, 11, 12)
        said = [line(request(method, number)) for method, number in zip(DENIED, ids, strict=True)]
        bare = b'{"id":"bare","method":"terminal/output","params":{}}\n'
        notice = b'{"jsonrpc":"2.0","method":"fs/write_text_file","params":{}}\n'
        host.make_say(*said, bare, notice)
        host.ask("session/list")
        assert host.finish() == 0
        assert all(frame["id"] in ("e2e-1", "e2e-2") for frame in host.frames())
        answers = [frame for frame in map(json.loads, host.seen()) if "error" in frame]
        got = [(frame["id"], type(frame["id"])) for frame in answers]
        assert got == [(number, type(number)) for number in (*ids, "bare")]
        for answer, method in zip(answers, (*DENIED, "terminal/output"), strict=True):
            assert answer["jsonrpc"] == "2.0"
            assert answer["error"]["code"] == POLICY
            assert answer["error"]["data"] == {"method": method, "reason": "podbot_capability_policy"}
        for method in DENIED:
            assert host.said(method), host.log
        assert len(host.said("fs/write_text_file")) == 2  # the notification, too: one line each
        assert SECRET not in host.err.decode()


def test_each_message_of_a_batch_is_judged_by_itself(world: World) -> None:
    fine = {"jsonrpc": "2.0", "method": "session/update", "params": {"n": 1.0}}
    with pipe(world, "puppet") as host:
        host.make_say(
            line([fine, request("fs/read_text_file", 11), fine]),
            line([request("terminal/create", 12), request("terminal/kill", 13)]),
            line([fine, fine]),
        )
        host.ask("session/list")
        assert host.finish() == 0
        batches = [frame for frame in host.frames() if isinstance(frame, list)]
        assert batches == [[fine, fine], [fine, fine]]
        answered = [json.loads(seen) for seen in host.seen()]
        flat = [message for frame in answered for message in (frame if isinstance(frame, list) else [frame])]
        assert [message["id"] for message in flat if "error" in message] == [11, 12, 13]


SLY = {
    "a second method": b'{"jsonrpc":"2.0","id":1,"method":"session/update","method":"fs/read_text_file","params":{}}',
    "a method in escapes": b'{"jsonrpc":"2.0","id":1,"method":"\\u0066s/read_text_file","params":{}}',
    "a key in escapes": b'{"jsonrpc":"2.0","id":1,"\\u006dethod":"fs/read_text_file","params":{}}',
    "a method that is no text": b'{"jsonrpc":"2.0","id":1,"method":["fs/read_text_file"],"params":{}}',
    "no UTF-8": b'{"jsonrpc":"2.0","id":1,"method":"session/update","params":{"x":"\xff"}}',
    "a lone surrogate's bytes": b'{"jsonrpc":"2.0","id":1,"method":"session/update","params":{"x":"\xed\xa0\x80"}}',
    "two frames on a line": b'{"jsonrpc":"2.0","id":1,"result":{}}{"id":2,"method":"fs/read_text_file"}',
    "a line in a line": b'{"jsonrpc":"2.0","id":1,"result":{}}\r{"id":2,"method":"fs/read_text_file"}',
    "deep": b'{"jsonrpc":"2.0","method":"x","params":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "half": b'{"jsonrpc":"2.0","id":1,"method":"session/update"',
    "not a number": b'{"jsonrpc":"2.0","id":1,"method":"session/update","params":NaN}',
    "a byte order mark": b'\xef\xbb\xbf{"jsonrpc":"2.0","id":1,"method":"fs/read_text_file"}',
    "a null byte": b'{"jsonrpc":"2.0","id":1,"method":"fs\\u0000/read_text_file","params":{}}',
    "capitals": b'{"jsonrpc":"2.0","id":1,"method":"FS/Read_Text_File","params":{}}',
}


def test_a_frame_that_two_parsers_read_differently_is_not_forwarded(world: World) -> None:
    with pipe(world, "puppet") as host:
        for words in SLY.values():
            host.make_say(words + b"\n")
        host.ask("session/list")
        assert host.finish() == 0
        frames = host.frames()
        answers = [frame["id"] for frame in frames if "error" not in frame]
        assert answers == [f"e2e-{number + 1}" for number in range(len(SLY) + 1)]
        assert all("method" not in frame for frame in frames)
        # Whoever waits for the answer that one of them is to another parser gets an error of podbot's in its place.
        errors = [frame for frame in frames if "error" in frame]
        assert {frame["error"]["data"]["reason"] for frame in errors} == {"podbot_frame_form"}


def test_login_commands_for_the_editors_machine_are_not_offered(world: World) -> None:
    """An editor runs them on a click: a hostile agent needs no capability for that."""
    evil = {"command": "/bin/sh", "args": ["-c", "id"], "label": "Log in"}
    methods = [
        {"id": "key", "name": "API key"},
        {"id": "term", "name": "Terminal", "type": "terminal", "args": ["-c", "id"]},
        {"id": "meta", "name": "Meta", "_meta": {"terminal-auth": evil, "kept": 1}},
        {"id": "kind", "name": "Kind", "_meta": {"type": "terminal", **evil}},
    ]
    with pipe(world, "puppet") as host:
        host.make_say(line({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": 1, "authMethods": methods}}))
        assert host.finish() == 0
        (hello, _) = host.frames()
        offered = hello["result"]["authMethods"]
        assert offered == [methods[0], {"id": "meta", "name": "Meta", "_meta": {"kept": 1}}]


def test_lines_of_200_kib_pass_and_of_80_mib_do_not(world: World) -> None:
    fine = line({"jsonrpc": "2.0", "method": "session/update", "params": {"x": "y" * (200 << 10)}})
    with pipe(world, "long", str(80 << 20), str(200 << 10)) as host:
        host.wait(lambda frame: frame.get("params") == "end", seconds=90)
        assert host.finish() == 0
        assert [bytes(frame) for frame in host.out.splitlines(keepends=True)] == [
            fine, b'{"jsonrpc":"2.0","method":"session/update","params":"end"}\n',
        ]  # fmt: skip
        size = (80 << 20) + len(b'{"jsonrpc":"2.0","method":"session/update","params":""}\n')
        assert host.said(f"{size} bytes", "limit")
        assert host.peak.kib < 200 << 10  # the limit of 64 MiB, and the extra memory of a growing buffer


def test_a_frame_over_the_limit_from_the_client(world: World) -> None:
    with pipe(world, "puppet", flags=("--frame-limit", "64k")) as host:
        fine, long = (line(request("session/prompt", number, text="x" * number)) for number in (60_000, 70_000))
        host.write(fine + long + fine)
        host.ask("session/list")
        assert host.finish() == 0
        assert host.seen()[:2] == [fine, fine]
        assert len(host.seen()) == 3
        assert host.said(f"{len(long)} bytes", "limit", "client")
        (refused,) = [frame for frame in host.frames() if frame["id"] == 70_000]
        assert refused["error"]["data"] == {"reason": FORM, "rule": "over_limit"}
        assert SECRET not in host.err.decode()


@pytest.mark.parametrize("mode", ["acp", "codex_app_server"])
def test_whoever_waits_for_an_answer_that_is_refused_gets_an_error(world: World, mode: str) -> None:
    """An agent whose answer to ``session/load`` is longer than 64 MiB, which is only then divided into frames."""
    values = line({"jsonrpc": "2.0", "id": "values", "result": [1] * 500_000})
    refused = {
        "over_limit": f'{{"id":"over_limit","result":"{"x" * (70 << 20)}"}}\n',
        "too_many_values": f'{{"id":"too_many_values","result":[{"1," * (3 << 20)}1]}}\n',
        "unparseable": '{"result":NaN,"id":"unparseable"}\n',
        "too_deep": f'{{"id":"too_deep","result":{"[" * 600}{"]" * 600}}}\n',
        "duplicate_key": '{"id":"duplicate_key","result":1,"result":1}\n',
    }
    with pipe(world, "puppet", mode=mode) as host:
        for name, data in {"values": values.decode(), **refused}.items():
            with open(os.path.join(host.workspace, name), "w", encoding="ascii") as file:
                file.write(data)
            assert host.make_run(f"cat {name} > /proc/$PPID/fd/1") == [0, ""]
        for rule in refused:
            error = host.wait(lambda frame, rule=rule: frame.get("id") == rule)["error"]
            assert (error["code"], error["data"]) == (-32603, {"reason": FORM, "rule": rule})
        host.make_say(b'{"id":"asked","method":"session/request_permission","params":{},"params":{}}\n')
        assert host.finish() == 0
        assert values in host.out, "as many values as its length allows"
        (answer,) = [json.loads(seen) for seen in host.seen() if b'"asked"' in seen and b"_e2e" not in seen]
        assert (answer["id"], answer["error"]["data"]["rule"]) == ("asked", "duplicate_key")
        assert ("jsonrpc" in answer) == (mode == "acp")
        assert len(host.said("refused a frame", "from the agent")) == 6


def test_a_last_frame_without_a_newline(world: World) -> None:
    last = b'{"jsonrpc":"2.0","method":"session/update","params":{"last":true}}'
    with pipe(world, "puppet") as host:
        host.make_leave(0, last)
        assert host.end() == 0
        assert host.out.rstrip(b"\n") == last
    with pipe(world, "puppet") as host:
        host.make_leave(0, last[:-1])  # half of one
        host.end()
        assert host.out == b""


# --- places, environment, records -------------------------------------------------------------------


def test_the_agent_has_the_path_that_the_editor_sends(world: World) -> None:
    sections: dict[str, Any] = {
        "agent": {"env_allowlist": ["E2E_KEY", "E2E_MISSING"]},
        "sandbox": {"env": {"TZ": "UTC"}},
    }
    with pipe(world, "environment", sections=sections, env={"E2E_KEY": "k-1234", "E2E_OTHER": "no"}) as host:
        there = host.ask("initialize")["result"]
        assert there["cwd"] == host.workspace
        assert there["env"]["E2E_KEY"] == "k-1234"
        assert there["env"]["TZ"] == "UTC"
        assert not {"E2E_OTHER", "E2E_MISSING", "XDG_RUNTIME_DIR", "PODBOT_IMAGE"} & set(there["env"])
        mounts = {mount["Destination"]: mount["Source"] for mount in world.inspect(host.name)["Mounts"]}
        assert mounts[host.workspace] == host.workspace
        assert host.finish() == 0
        assert os.stat(os.path.join(host.workspace, "seen")).st_uid == os.getuid()
        assert "k-1234" not in host.err.decode()
        assert host.said("E2E_MISSING")


def test_a_session_outside_the_workspace_is_answered_with_both_paths(world: World) -> None:
    sections = {"workspace": {"container_path": "/workspace"}}
    with pipe(world, "puppet", sections=sections) as host:
        for method in ("session/new", "session/load"):
            error = host.ask(method, {"cwd": host.workspace, "mcpServers": []})["error"]
            for path in (host.workspace, "/workspace"):
                assert path in error["message"]
        assert host.ask("session/new", {"cwd": "/workspace/src"})["result"] == {"method": "session/new"}
        assert host.finish() == 0
        assert [json.loads(seen)["params"]["cwd"] for seen in host.seen()] == ["/workspace/src"]
        assert host.said("session/new")
    with pipe(world, "puppet") as host:  # the editor's own paths, by default
        assert "error" in host.ask("session/new", {"cwd": os.path.dirname(host.workspace)})
        assert "result" in host.ask("session/new", {"cwd": host.workspace})
        assert host.finish() == 0


def test_delegation_is_reported_as_a_warning_and_allows_only_what_it_names(world: World) -> None:
    with pipe(world, "puppet", flags=("--acp-delegation", "fs")) as host:
        host.ask("initialize", {"protocolVersion": 1, "clientCapabilities": offers()})
        host.make_say(line(request("fs/read_text_file", 21)), line(request("terminal/create", 22)))
        assert host.wait(lambda frame: frame.get("id") == 21)["method"] == "fs/read_text_file"
        assert host.finish() == 0
        (hello, *_) = map(json.loads, host.seen())
        assert set(hello["params"]["clientCapabilities"]) - {"auth"} == {"fs"}
        assert not [frame for frame in host.frames() if frame.get("method") == "terminal/create"]
        assert host.said("reduced isolation", "files", "agent.delegation = fs")


def test_extra_methods_are_reported_as_a_warning_and_match_exactly(world: World) -> None:
    sections = {"agent": {"extra_methods": ["_example.com/show"]}}
    with pipe(world, "puppet", sections=sections) as host:
        host.make_say(line(request("_example.com/show", 21)), line(request("_example.com/shown", 22)))
        assert host.wait(lambda frame: frame.get("id") == 21)["method"] == "_example.com/show"
        assert host.finish() == 0
        assert not [frame for frame in host.frames() if frame.get("id") == 22]
        assert host.said("reduced isolation", "_example.com/show", "agent.extra_methods")


def test_the_editors_mcp_servers_are_removed_unless_passed_explicitly(world: World) -> None:
    servers = [{"name": "github", "command": "/bin/x", "args": [], "env": [{"name": "TOKEN", "value": SECRET}]}]
    for policy, left in (("strip", []), ("pass", servers)):
        with pipe(world, "puppet", sections={"agent": {"mcp_servers": policy}}) as host:
            for method in ("session/new", "session/load"):
                host.ask(method, {"cwd": host.workspace, "mcpServers": servers})
            assert host.finish() == 0
            assert [json.loads(seen)["params"]["mcpServers"] for seen in host.seen()] == [left, left]
            assert len(host.said("MCP servers", "github", f"agent.mcp_servers = {policy}")) == 1
            assert SECRET not in host.err.decode()


def test_a_misleading_question_to_the_user_is_marked(world: World) -> None:
    plain = {
        "sessionId": "s",
        "toolCall": {"toolCallId": "1", "title": "Edit a.py"},
        "options": [{"optionId": "a", "name": "Allow", "kind": "allow_once"}],
    }
    sly = {
        "sessionId": "s",
        "toolCall": {"toolCallId": "1", "title": "ls \u202e\u001b[2K", "locations": [{"path": "/etc/shadow"}]},
        "options": [{"optionId": "a", "name": "Reject", "kind": "allow_always"}],
    }
    ask = "session/request_permission"
    with pipe(world, "puppet") as host:
        first = line({"jsonrpc": "2.0", "id": 41, "method": ask, "params": plain})
        urls = [
            {"jsonrpc": "2.0", "id": 50 + number, "method": "elicitation/create", "params": {"mode": "url", "url": url}}
            for number, url in enumerate(("https://example.org/", "file:///etc/passwd"))
        ]
        host.make_say(first, line({"jsonrpc": "2.0", "id": 42, "method": ask, "params": sly}), *map(line, urls))
        assert host.finish() == 0
        frames = {frame["id"]: frame for frame in host.frames()}
        assert first in bytes(host.out)
        shown = frames[42]["params"]
        assert shown["toolCall"]["title"] == "[podbot: outside the workspace: /etc/shadow] ls \\u202e\\u001b[2K"
        assert shown["options"][0]["name"] == "[podbot: allows always] Reject"
        assert set(frames) == {41, 42, 50, "e2e-1"}
        assert host.said("changed session/request_permission (id 42)")
        assert host.said("refused elicitation/create (id 51)", "web address")


def test_transcript_and_json_log(world: World) -> None:
    path = os.path.join(world.root, "transcript.jsonl")
    sections = {"agent": {"env_allowlist": ["E2E_KEY"]}}
    flags = ("--transcript", path, "--log-format", "json")
    with pipe(world, "puppet", flags=flags, sections=sections, env={"E2E_KEY": "sk-dummy-5678"}) as host:
        host.ask("initialize", {"protocolVersion": 1, "clientCapabilities": offers(), "key": "sk-dummy-5678"})
        host.make_say(b"a banner\n", line(request("terminal/create", 31)))
        assert host.finish() == 0
        assert os.stat(path).st_mode & 0o777 == 0o600
        with open(path, encoding="utf-8") as file:
            text = file.read()
        entries = [json.loads(entry) for entry in text.splitlines()]
        assert len(entries) >= 4
        assert "sk-dummy-5678" not in text
        assert "terminal/create" in text
        log = [json.loads(entry) for entry in host.log]
        assert all(isinstance(entry, dict) for entry in log)
        assert "terminal/create" in json.dumps(log)
        assert "sk-dummy-5678" not in host.err.decode()
        changed = [entry for entry in entries if "changed" in entry]
        assert [entry["changed"] for entry in changed] == ["masked_capabilities"]
        refused = [entry for entry in entries if "refused" in entry]
        assert [(entry["id"], entry["refused"]) for entry in refused] == [(31, "denied_method")]
        (passed,) = [entry for entry in entries if entry.get("to") == "agent" and entry["id"] == changed[0]["id"]]
        assert passed["method"] == "initialize"
        assert [entry["from"] for entry in entries if entry.get("id") == 31 and "to" in entry] == ["podbot"]
    again = world.podbot("host", "--workspace", world.workspace(), "--agent", "custom", "--agent-mode", "acp",
                         "--transcript", "/no/such/dir/t.jsonl", "--", "true")  # fmt: skip
    assert (again.returncode != 0, again.stdout) == (True, "")
    assert "/no/such/dir/t.jsonl" in again.stderr
    os.unlink(path)


# --- the Codex App Server ---------------------------------------------------------------------------


CODEX_DENIED = (
    "item/tool/call", "account/chatgptAuthTokens/refresh", "mcpServer/elicitation/request", "attestation/generate",
    "fs/read_text_file",
)  # fmt: skip


def test_requests_of_the_codex_app_server_are_judged_and_other_bytes_kept(world: World) -> None:
    asks = b'{ "method":"item/commandExecution/requestApproval","id":"q","params":{"command":"rm","n":1.50e3} }\n'
    tells = b'{"method":"anything/new","params":{"a":"\\u00e9\xc3\xa9","a":2}}\n'
    with pipe(world, "puppet", mode="codex_app_server") as host:
        denied = [
            line({"method": method, "id": 30 + n, "params": {"s": SECRET}}) for n, method in enumerate(CODEX_DENIED)
        ]
        broken = b'{"method":"item/tool/call","id":1,"ID":2}\n{"method":"x"}{"method":"item/tool/call","id":1}\n'
        login = b'{"id":77,"result":{"type":"chatgpt","authUrl":%s,"loginId":"l"}}\n'
        host.make_say(*denied, asks, b"a banner\n", tells, broken, b'{"no":"message"}\n')
        host.make_say(login % b'"file:///etc/passwd"')
        host.send({"id": "q", "result": {"decision": "decline"}})
        host.ask("thread/list")
        assert host.finish() == 0
        passed = bytes(host.out).splitlines(keepends=True)
        assert passed[:2] == [asks, tells]
        assert [json.loads(frame)["id"] for frame in passed[2:]] == ["e2e-1", 77, "e2e-2", "e2e-3"]
        assert passed[3] == login % b"null"
        errors = [frame for frame in map(json.loads, host.seen()) if "error" in frame]
        policy = [frame for frame in errors if frame["error"]["data"]["reason"] == "podbot_capability_policy"]
        assert [(frame["id"], frame["error"]["data"]["method"]) for frame in policy] == [
            (30 + number, method) for number, method in enumerate(CODEX_DENIED)
        ]
        # Of the frames that are refused for their form, those with an id are answered, too.
        form = {(frame["id"], frame["error"]["data"]["rule"]) for frame in errors if frame not in policy}
        assert form == {(1, "ambiguous_key"), (2, "ambiguous_key")}
        assert all(set(frame) == {"id", "error"} for frame in errors)
        assert {"id": "q", "result": {"decision": "decline"}} in map(json.loads, host.seen())
        assert SECRET not in host.err.decode()
        assert host.said("a banner")
        assert host.said("refused item/tool/call", "capability policy")


def test_a_misleading_approval_of_the_codex_app_server_is_marked(world: World) -> None:
    plain = {"itemId": "1", "command": "ls src", "reason": "to look"}
    sly = {
        "itemId": "2",
        "command": "cat /etc/shadow",
        "cwd": "/etc",
        "reason": "list \u202e\u001b[2K files",
        "commandActions": [{"type": "listFiles", "command": "ls src", "path": "src"}],
    }
    method = "item/commandExecution/requestApproval"
    with pipe(world, "puppet", mode="codex_app_server") as host:
        first = line({"method": method, "id": 61, "params": {**plain, "cwd": host.workspace}})
        host.make_say(first, line({"method": method, "id": 62, "params": sly}))
        assert host.finish() == 0
        assert first in bytes(host.out)
        shown = {frame["id"]: frame for frame in host.frames()}[62]["params"]
        assert "\u202e" not in shown["reason"]
        assert "\x1b" not in shown["reason"]
        assert shown["reason"].startswith("[podbot: ")
        assert "outside the workspace: /etc" in shown["reason"]
        assert shown["command"] == sly["command"]
        assert host.said(f"changed {method} (id 62)")


def test_a_codex_clients_offers_are_masked_and_its_directory_is_checked(world: World) -> None:
    with pipe(world, "puppet", mode="codex_app_server") as host:
        about = {"clientInfo": {"name": "e2e", "version": "1"}}
        host.send({"method": "initialize", "id": 1, "params": {**about, "capabilities": {"requestAttestation": True}}})
        error = host.ask("thread/start", {"cwd": os.path.dirname(host.workspace)})["error"]
        assert error["data"]["reason"] == "podbot_outside_mount"
        assert "result" in host.ask("thread/start", {"cwd": host.workspace, "dynamicTools": [{"name": "x"}]})
        assert host.finish() == 0
        first, second = map(json.loads, host.seen())
        assert first["params"] == {**about, "capabilities": {}}
        assert second["params"] == {"cwd": host.workspace}


def test_output_of_the_images_shell_is_not_a_frame(world: World) -> None:
    """For example a profile that prints a greeting: bash reads this one."""
    sections = {"sandbox": {"env": {"BASH_ENV": "/e2e/host/greeting.sh"}}}
    with pipe(world, "/bin/bash", "-c", "exec python3 /e2e/host/agent.py puppet", sections=sections) as host:
        host.ask("session/list")
        assert host.finish() == 0
        host.frames()
        assert host.said("Welcome to this image")


# Things that a library, a plug-in or a child of podbot's own may do at any time.
CHATTER = """
import os, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name in ("podbot.api", "podbot.hosting.host", "podbot.session.opening", "podbot.protocol.acp"):
            print("stray print for", name, flush=True)
            os.write(1, b"stray write\\n")
            os.system("echo stray child; cat")  # which would also eat what the client sends

sys.meta_path.insert(0, Finder())
"""


def test_nothing_in_podbots_own_process_writes_to_stdout_or_reads_stdin(world: World) -> None:
    place = world.workspace("chatter")
    with open(os.path.join(place, "sitecustomize.py"), "w", encoding="utf-8") as file:
        file.write(CHATTER)
    with pipe(world, "puppet", env={"PYTHONPATH": place}) as host:
        host.write(line(request("session/prompt", 1)))
        host.ask("session/list")
        assert host.finish() == 0
        assert [frame["id"] for frame in host.frames()] == [1, "e2e-1"]
        assert len(host.seen()) == 2
        for words in ("stray print for podbot.protocol.acp", "stray write", "stray child"):
            assert host.said(words), host.log
