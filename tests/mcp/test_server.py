"""The tools as the official client sees them, in both eras of the protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client, MCPError

from podbot.errors import CreateFailed
from tests.mcp.workspaces import Served
from tests.waiting import async_wait_until

pytestmark = pytest.mark.anyio
ERAS = ("auto", "legacy")  # 2026-07-28, and the handshake of 2025-11-25
FILE_TOOLS = ["ls", "read_file", "write_file", "edit_file", "glob", "grep", "rm"]
SANDBOX_TOOLS = ["sandbox_create", "sandbox_list", "sandbox_close"]
JOB_TOOLS = ["job_start", "job_output", "job_list", "job_kill"]


def text_of(result: types.CallToolResult) -> str:
    first = result.content[0]
    assert isinstance(first, types.TextContent)
    return first.text


def value_of(result: types.CallToolResult) -> dict[str, Any]:
    assert not result.is_error, text_of(result)
    assert isinstance(result.structured_content, dict)
    return result.structured_content


def links_of(result: types.CallToolResult) -> list[types.ResourceLink]:
    return [block for block in result.content if isinstance(block, types.ResourceLink)]


async def read(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, types.TextResourceContents)
    return content.text


@pytest.mark.parametrize("era", ERAS)
async def test_the_tools_are_listed_with_schemas_and_annotations(served: Served, era: str) -> None:
    async with Client(served.server(), mode=era) as client:
        listed = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "copies" in (client.instructions or "")
    assert list(listed) == [*SANDBOX_TOOLS, *FILE_TOOLS, "shell_execute", "evaluate_python", *JOB_TOOLS]
    for name, tool in listed.items():
        assert tool.input_schema["type"] == "object"
        assert tool.output_schema is not None
        assert tool.output_schema["type"] == "object"
        assert ("sandbox" in tool.input_schema["properties"]) == (name not in SANDBOX_TOOLS or name == "sandbox_close")
        assert "sandbox" not in tool.input_schema["required"] or name == "sandbox_close"
    about = {name: tool.annotations for name, tool in listed.items() if tool.annotations is not None}
    assert about["ls"].read_only_hint
    assert not about["ls"].open_world_hint
    assert about["rm"].destructive_hint
    assert not about["shell_execute"].open_world_hint
    assert not about["write_file"].destructive_hint


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_without_a_handle_uses_one_default_sandbox(served: Served, era: str) -> None:
    async with Client(served.server(), mode=era) as client:
        assert served.making.made == []
        assert value_of(await client.call_tool("sandbox_list"))["sandboxes"] == []
        await client.call_tool("write_file", {"file_path": "src/a.txt", "content": "one\ntwo\n"})
        found = await client.call_tool("read_file", {"file_path": "src/a.txt"})
        assert value_of(found)["content"] == "one\ntwo"
        assert "   1 | one" in text_of(found)
        (made,) = served.making.made
        assert (made.path / "src" / "a.txt").read_text() == "one\ntwo\n"
        (only,) = value_of(await client.call_tool("sandbox_list"))["sandboxes"]
        assert only["is_default"]
        named = await client.call_tool("read_file", {"file_path": "src/a.txt", "sandbox": only["sandbox"]})
        assert value_of(named) == value_of(found)


async def test_sandboxes_are_separate_and_end_when_they_are_closed(served: Served) -> None:
    async with Client(served.server()) as client:
        first, second = [value_of(await client.call_tool("sandbox_create", {"label": n})) for n in ("x", "y")]
        assert first["sandbox"] != second["sandbox"]
        for made in (first, second):
            arguments = {"file_path": "name", "content": made["label"], "sandbox": made["sandbox"]}
            value_of(await client.call_tool("write_file", arguments))
        found = await client.call_tool("read_file", {"file_path": "name", "sandbox": second["sandbox"]})
        assert value_of(found)["content"] == "y"
        value_of(await client.call_tool("sandbox_close", {"sandbox": first["sandbox"]}))
        assert served.making.made[0].closed == 1
        for name in ("ls", "sandbox_close"):
            refused = await client.call_tool(name, {"sandbox": first["sandbox"]})
            assert refused.is_error
            assert first["sandbox"][:40] in text_of(refused)
            assert "sandbox_list" in text_of(refused)


async def test_a_sandbox_that_cannot_start_is_an_error_and_leaves_nothing(served: Served) -> None:
    served.making.failure = CreateFailed(container="c", image="i", reason="no space")
    async with Client(served.server()) as client:
        refused = await client.call_tool("sandbox_create")
        assert refused.is_error
        assert "no space" in text_of(refused)
        assert value_of(await client.call_tool("sandbox_list"))["sandboxes"] == []
    assert [made.closed for made in served.making.made] == [1]


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("read_file", {}, "file_path"),
        ("read_file", {"file_path": "../x"}, ".."),
        ("read_file", {"file_path": "a", "nonsense": 1}, "nonsense"),
        ("ls", {"sandbox": 7}, "sandbox"),
        ("ls", {"sandbox": "sbx-" + "0" * 32}, "no such sandbox"),
        ("ls", {"sandbox": "x" * 81}, "80"),
        ("sandbox_create", {"mounts": ["/etc"]}, "/etc"),
        ("sandbox_create", {"mounts": "all"}, "array"),
        ("job_output", {"job": "99"}, "no such job"),
        ("job_output", {"job": "1", "offset": -1}, "offset"),
        ("shell_execute", {"command": "ls"}, "array"),
    ],
)
async def test_bad_arguments_are_failing_results(served: Served, name: str, arguments: Any, words: str) -> None:
    async with Client(served.server()) as client:
        refused = await client.call_tool(name, arguments)
        assert refused.is_error
        assert words in text_of(refused)
    assert all(list(made.path.iterdir()) == [] for made in served.making.made)


@pytest.mark.parametrize("era", ERAS)
async def test_an_unknown_tool_is_a_protocol_error(served: Served, era: str) -> None:
    async with Client(served.server(), mode=era) as client:
        with pytest.raises(MCPError) as caught:
            await client.session.call_tool("nonsense", {})
    assert caught.value.error.code == types.INVALID_PARAMS
    assert served.making.made == []


async def test_a_handle_of_another_client_is_as_unknown_as_one_that_never_was(served: Served) -> None:
    async with Client(served.server(lambda: "a")) as a, Client(served.server(lambda: "b")) as b:
        mine = value_of(await a.call_tool("sandbox_create"))["sandbox"]
        value_of(await a.call_tool("write_file", {"file_path": "secret", "content": "s", "sandbox": mine}))
        other = await b.call_tool("read_file", {"file_path": "secret", "sandbox": mine})
        never = await b.call_tool("read_file", {"file_path": "secret", "sandbox": "sbx-" + "0" * 32})
        assert other.is_error
        assert text_of(other).replace(mine, "H") == text_of(never).replace("sbx-" + "0" * 32, "H")
        assert (await b.call_tool("sandbox_close", {"sandbox": mine})).is_error
        with pytest.raises(MCPError):
            await read(b, f"podbot://{mine}/files/secret")
        assert value_of(await b.call_tool("sandbox_list"))["sandboxes"] == []
        assert value_of(await a.call_tool("ls", {"sandbox": mine}))["entries"]


@pytest.mark.parametrize("era", ERAS)
async def test_long_output_is_read_as_a_resource(served: Served, era: str) -> None:
    async with Client(served.server(), mode=era) as client:
        short = await client.call_tool("shell_execute", {"command": ["echo", "hi"]})
        assert links_of(short) == []
        long = await client.call_tool("shell_execute", {"command": ["seq", "100000"]})
        assert value_of(long)["truncated"]
        (link,) = links_of(long)
        assert await read(client, link.uri) == "".join(f"{n}\n" for n in range(1, 100001))
        python = await client.call_tool("evaluate_python", {"code": "print('x' * 5000)"})
        assert value_of(python)["stdout"].endswith("...")
        (link,) = links_of(python)
        assert await read(client, link.uri) == "x" * 5000 + "\n"
        listed = [str(found.uri) for found in (await client.list_resources()).resources]
        assert link.uri in listed


async def test_output_that_is_kept_is_bounded(served: Served) -> None:
    async with Client(served.server()) as client:
        long = await client.call_tool("shell_execute", {"command": ["sh", "-c", "head -c 3000000 /dev/zero"]})
        (link,) = links_of(long)
        assert link.size == 1 << 20
        assert "3,000,000" in (link.description or "")
        for _ in range(8):
            await client.call_tool("shell_execute", {"command": ["sh", "-c", "head -c 3000000 /dev/zero"]})
        with pytest.raises(MCPError, match="no longer kept"):
            await read(client, link.uri)


@pytest.mark.parametrize("era", ERAS)
async def test_files_and_directories_are_resources(served: Served, era: str) -> None:
    async with Client(served.server(), mode=era) as client:
        await client.call_tool(
            "write_file", {"file_path": "a b/c.txt", "content": "".join(f"{n}\n" for n in range(5000))}
        )
        (box,) = value_of(await client.call_tool("sandbox_list"))["sandboxes"]
        base = f"podbot://{box['sandbox']}/files/"
        assert await read(client, f"{base}a%20b/c.txt") == "\n".join(map(str, range(5000)))
        assert "c.txt" in await read(client, f"{base}a%20b")
        assert "a b" in await read(client, base)
        templates = {found.uri_template for found in (await client.list_resource_templates()).resource_templates}
        assert templates == {"podbot://{sandbox}/files/{+path}", "podbot://{sandbox}/output/{number}"}
        for bad in (f"{base}%2e%2e/x", f"{base}none", f"{base}..", "podbot://x/files/", "file:///etc/passwd",
                    f"podbot://{box['sandbox']}/output/1"):  # fmt: skip
            with pytest.raises(MCPError) as caught:
                await read(client, bad)
            assert caught.value.error.code == types.INVALID_PARAMS


async def test_calls_in_two_sandboxes_run_at_once(served: Served) -> None:
    async with Client(served.server()) as client:
        boxes = [value_of(await client.call_tool("sandbox_create"))["sandbox"] for _ in range(2)]
        roots = [made.path for made in served.making.made]
        # Each waits for the file that the other one makes.
        wait = 'touch "$1"; until [ -e "$2" ]; do sleep 0.01; done'
        results: list[types.CallToolResult] = []

        async def call(mine: int) -> None:
            command = ["sh", "-c", wait, "sh", str(roots[mine] / "here"), str(roots[1 - mine] / "here")]
            arguments = {"command": command, "sandbox": boxes[mine], "timeout_seconds": 60}
            results.append(await client.call_tool("shell_execute", arguments))

        async with anyio.create_task_group() as group:
            for mine in range(2):
                group.start_soon(call, mine)
        assert [value_of(result)["exit_code"] for result in results] == [0, 0]


@pytest.mark.parametrize("era", ERAS)
async def test_a_cancelled_call_ends_its_command(served: Served, era: str) -> None:
    async with Client(served.server(), mode=era) as client:
        box = value_of(await client.call_tool("sandbox_create"))["sandbox"]
        begun, ended = (served.making.made[0].path / name for name in ("begun", "ended"))
        script = "trap 'touch ended; exit 1' TERM; touch begun; while :; do sleep 0.01; done"
        async with anyio.create_task_group() as group:
            arguments = {"command": ["sh", "-c", script], "sandbox": box, "timeout_seconds": 120}
            group.start_soon(client.call_tool, "shell_execute", arguments)
            await async_wait_until(begun.exists)
            group.cancel_scope.cancel()
        await async_wait_until(ended.exists)
        assert value_of(await client.call_tool("shell_execute", {"command": ["true"], "sandbox": box}))


@pytest.mark.parametrize("era", ERAS)
async def test_progress_is_reported_while_a_call_lasts(served: Served, era: str) -> None:
    reports: list[tuple[float, str | None]] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        reports.append((progress, message))

    async with Client(served.server(tick=0.05), mode=era) as client:
        wait = 'until [ "$(cat n 2>/dev/null)" = go ]; do sleep 0.01; done'
        arguments = {"command": ["sh", "-c", wait], "timeout_seconds": 60}
        async with anyio.create_task_group() as group:

            async def call() -> None:
                await client.call_tool("shell_execute", arguments, progress_callback=report)

            group.start_soon(call)
            await async_wait_until(lambda: len(reports) >= 4)
            (served.making.made[0].path / "n").write_text("go")
    assert "starting" in (reports[0][1] or "")
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)


async def test_jobs(served: Served) -> None:
    async with Client(served.server()) as client:
        started = value_of(
            await client.call_tool(
                "job_start", {"command": ["sh", "-c", "printf '\\303\\244\\303\\251\\n'; cat; exec sleep 3600"]}
            )
        )
        assert started["running"]
        with anyio.fail_after(60):
            while not (found := value_of(await client.call_tool("job_output", {"job": started["job"]})))["text"]:
                pass
        assert found["text"] == "äé\n"
        cut = value_of(await client.call_tool("job_output", {"job": started["job"], "limit": 3}))
        assert cut["text"] == "ä"
        rest = await client.call_tool("job_output", {"job": started["job"], "offset": cut["next_offset"]})
        assert value_of(rest)["text"] == "é\n"
        assert not value_of(rest)["complete"]
        (listed,) = value_of(await client.call_tool("job_list"))["jobs"]
        assert listed["running"]
        killed = value_of(await client.call_tool("job_kill", {"job": started["job"]}))
        assert not killed["running"]
        last = value_of(await client.call_tool("job_output", {"job": started["job"], "wait_seconds": 60}))
        assert last["complete"]


async def test_a_job_that_is_waited_for(served: Served) -> None:
    async with Client(served.server()) as client:
        job = value_of(await client.call_tool("job_start", {"command": ["sh", "-c", "sleep 0.1; echo done; exit 3"]}))[
            "job"
        ]
        found = await client.call_tool("job_output", {"job": job, "wait_seconds": 60})
        assert value_of(found)["text"] == "done\n"
        assert value_of(found)["job"] == {
            "job": job,
            "command": "sh -c 'sleep 0.1; echo done; exit 3'",
            "running": False,
            "exit_code": 3,
            "timed_out": False,
        }


async def test_what_a_command_leaves_in_the_background_is_named_and_is_a_job(served: Served) -> None:
    line = f"sleep 600 & # {'x' * 100}\necho started"
    async with Client(served.server()) as client:
        ran = await client.call_tool("shell_execute", {"command": ["sh", "-c", line]})
        (listed,) = value_of(await client.call_tool("job_list"))["jobs"]
        assert listed == {
            "job": listed["job"],
            "command": f"sh -c 'sleep 600 & # {'x' * 100}"[:79] + "…",
            "running": True,
            "exit_code": None,
            "timed_out": False,
        }
        assert f"\n\nIts background processes are job {listed['job']}: see job_output" in text_of(ran)
        killed = value_of(await client.call_tool("job_kill", {"job": listed["job"]}))
        assert not killed["running"]
        ran = await client.call_tool("shell_execute", {"command": ["echo", "all"]})
        assert "background processes" not in text_of(ran)


async def test_a_read_only_server_has_only_tools_that_read(tmp_path: Path) -> None:
    served = Served(tmp_path, read_only=True)
    async with Client(served.server()) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == [*SANDBOX_TOOLS, "ls", "read_file", "glob", "grep"]
        assert "no tools that change files" in (client.instructions or "")
        with pytest.raises(MCPError):
            await client.session.call_tool("write_file", {"file_path": "a", "content": ""})
    served.registry.close_all()


async def test_there_are_not_more_sandboxes_than_allowed(tmp_path: Path) -> None:
    served = Served(tmp_path, most=2)
    async with Client(served.server()) as client:
        value_of(await client.call_tool("ls"))
        box = value_of(await client.call_tool("sandbox_create"))["sandbox"]
        refused = await client.call_tool("sandbox_create")
        assert refused.is_error
        assert "2" in text_of(refused)
        value_of(await client.call_tool("sandbox_close", {"sandbox": box}))
        value_of(await client.call_tool("sandbox_create"))
    served.registry.close_all()
    assert all(made.closed for made in served.making.made)


async def test_a_sandbox_of_which_something_is_left_is_not_said_to_be_removed(served: Served) -> None:
    async with Client(served.server()) as client:
        box = value_of(await client.call_tool("sandbox_create"))["sandbox"]
        served.making.made[0].left = ("its container did not end",)
        closed = await client.call_tool("sandbox_close", {"sandbox": box})
        assert closed.is_error
        assert "its container did not end" in text_of(closed)
        assert "no such sandbox" in text_of(await client.call_tool("ls", {"sandbox": box}))


async def test_a_large_file_is_no_resource(served: Served) -> None:
    async with Client(served.server()) as client:
        box = value_of(await client.call_tool("sandbox_create"))["sandbox"]
        (served.making.made[0].path / "lines").write_text("\n" * (5 << 20))
        with pytest.raises(MCPError, match="4,194,304 bytes"):
            await read(client, f"podbot://{box}/files/lines")
