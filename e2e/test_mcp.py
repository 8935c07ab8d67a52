"""``podbot mcp`` as a real process: driven by the official client on both backends, and by other programs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import MCPError

from e2e.agents.provider import CACHE, from_registry, install_once
from e2e.harness import PODBOT, TAG, World, wait_for
from e2e.mcp_client import (
    environment,
    http_server,
    left_workspaces,
    over_http,
    over_stdio,
    running,
    text_of,
    value_of,
)
from podbot.mcp.patch_tool import APPLY
from tests.mcp.test_settings import PROJECT, blocks

pytestmark = pytest.mark.anyio
BACKENDS = ("podman", "unsafe-local")
ERAS = ("auto", "legacy")
INSPECTOR = "@modelcontextprotocol/inspector@2.12.0"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory of the host."""
    made = tmp_path / "project"
    (made / "src").mkdir(parents=True)
    (made / "src" / "app.py").write_text("print('one')\n")
    (made / "secret.env").write_text("KEY=1\n")
    return made


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("backend", BACKENDS)
async def test_an_agents_work_over_stdio(world: World, tmp_path: Path, project: Path, backend: str, era: str) -> None:
    place = tmp_path / "place"
    words = ["--backend", backend, "--mount", f"{project}:/project:*.py"]
    reports: list[str | None] = []

    async def report(progress: float, total: float | None, message: str | None) -> None:
        del progress, total
        reports.append(message)

    async with over_stdio(world, place, *words, mode=era) as client:
        assert client.protocol_version == ("2026-07-28" if era == "auto" else "2025-11-25")
        found = await client.call_tool("glob", {"pattern": "**"}, progress_callback=report)
        assert [match["path"] for match in value_of(found)["matches"]] == ["project/src/app.py"]
        edit = {"file_path": "project/src/app.py", "old_string": "one", "new_string": "two"}
        value_of(await client.call_tool("edit_file", edit))
        ran = await client.call_tool("shell_execute", {"command": ["python3", "project/src/app.py"]})
        assert value_of(ran)["stdout"] == "two\n"
        code = "import os; print(os.path.exists('/workspace/project'), sum(range(10)))"
        assert "45" in value_of(await client.call_tool("evaluate_python", {"code": code}))["stdout"]
        job = value_of(
            await client.call_tool("job_start", {"command": ["sh", "-c", f"echo began; exec sleep 48701.{TAG}"]})
        )
        output = await client.call_tool("job_output", {"job": job["job"], "wait_seconds": 1})
        assert value_of(output)["text"] == "began\n"
        long = await client.call_tool("shell_execute", {"command": ["seq", "20000"]})
        link = next(block for block in long.content if isinstance(block, types.ResourceLink))
        (content,) = (await client.read_resource(link.uri)).contents
        assert isinstance(content, types.TextResourceContents)
        assert content.text.endswith("\n19999\n20000\n")
        (box,) = value_of(await client.call_tool("sandbox_list"))["sandboxes"]
        assert box["mounts"] == ["/workspace/project"]
        assert left_workspaces(place)
    assert "starting the sandbox" in reports
    assert (project / "src" / "app.py").read_text() == "print('one')\n"
    # The server's end has ended the sandbox; the kernel may show its processes a moment longer.
    await anyio.to_thread.run_sync(lambda: wait_for(lambda: not running(f"sleep 48701.{TAG}"), what="the job's end"))


async def test_a_sandbox_is_sealed(world: World, tmp_path: Path, project: Path) -> None:
    script = (
        "id -u; ls /sys/class/net; grep -c . /proc/net/route; grep CapEff /proc/self/status; touch /x 2>&1; "
        f"ls {project} 2>&1; env | grep -c PODBOT_"
    )
    async with over_stdio(world, tmp_path / "place", "--mount", str(project)) as client:
        said = value_of(await client.call_tool("shell_execute", {"command": ["sh", "-c", script]}))["stdout"]
        assert said.splitlines()[:4] == ["65534", "lo", "1", "CapEff:\t0000000000000000"]
        assert "Read-only file system" in said
        assert f"{project}" in said
        assert "No such file" in said
        assert said.splitlines()[-1] == "0"
        refused = await client.call_tool("sandbox_create", {"mounts": [str(project)]})
        assert refused.is_error
        assert "/workspace" in text_of(refused)


@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_cancelled_call_ends_its_command(world: World, tmp_path: Path, backend: str) -> None:
    async with over_stdio(world, tmp_path / "place", "--backend", backend) as client:
        value_of(await client.call_tool("ls"))
        async with anyio.create_task_group() as group:
            arguments = {"command": ["sleep", f"48702.{TAG}"], "timeout_seconds": 120}
            group.start_soon(client.call_tool, "shell_execute", arguments)
            await anyio.to_thread.run_sync(lambda: wait_for(lambda: running(f"sleep 48702.{TAG}"), what="the command"))
            group.cancel_scope.cancel()
        await anyio.to_thread.run_sync(lambda: wait_for(lambda: not running(f"sleep 48702.{TAG}"), what="its end"))
        assert value_of(await client.call_tool("shell_execute", {"command": ["echo", "on"]}))["stdout"] == "on\n"


@pytest.mark.parametrize("backend", BACKENDS)
async def test_sandboxes_are_apart_and_work_at_once(world: World, tmp_path: Path, backend: str) -> None:
    async with over_stdio(world, tmp_path / "place", "--backend", backend) as client:
        boxes: list[str] = []

        async def create(label: str) -> None:
            made = value_of(await client.call_tool("sandbox_create", {"label": label}))
            boxes.append(made["sandbox"])
            arguments = {"file_path": "name", "content": label, "sandbox": made["sandbox"]}
            value_of(await client.call_tool("write_file", arguments))

        async with anyio.create_task_group() as group:
            for label in "abc":
                group.start_soon(create, label)
        listed = value_of(await client.call_tool("sandbox_list"))["sandboxes"]
        names = {box["sandbox"]: box["label"] for box in listed}
        for handle, label in names.items():
            read = await client.call_tool("read_file", {"file_path": "name", "sandbox": handle})
            assert value_of(read)["content"] == label
        async with anyio.create_task_group() as group:  # one call that lasts keeps nothing else from running
            lasting = {"command": ["sleep", f"48703.{TAG}"], "sandbox": boxes[0], "timeout_seconds": 120}
            group.start_soon(client.call_tool, "shell_execute", lasting)
            await anyio.to_thread.run_sync(lambda: wait_for(lambda: running(f"sleep 48703.{TAG}"), what="the command"))
            for handle in boxes:
                ran = await client.call_tool("shell_execute", {"command": ["echo", "1"], "sandbox": handle})
                assert value_of(ran)["exit_code"] == 0
            assert running(f"sleep 48703.{TAG}")
            group.cancel_scope.cancel()
        value_of(await client.call_tool("sandbox_close", {"sandbox": boxes[1]}))
        assert (await client.call_tool("ls", {"sandbox": boxes[1]})).is_error
        assert value_of(await client.call_tool("ls", {"sandbox": boxes[2]}))


HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
READY = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def call(number: int, name: str, arguments: Any = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call",
            "params": {"name": name, "arguments": arguments or {}}}  # fmt: skip


def send(child: subprocess.Popen[bytes], *messages: Any) -> None:
    assert child.stdin is not None
    for message in messages:
        child.stdin.write(json.dumps(message).encode() + b"\n")
    child.stdin.flush()


def answer(child: subprocess.Popen[bytes], number: int) -> Any:
    """The answer to a request; every line before it is the protocol's, too."""
    assert child.stdout is not None
    for line in child.stdout:
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        if message.get("id") == number:
            return message
    raise AssertionError(f"the server ended: {child.communicate()}")


def answers(child: subprocess.Popen[bytes], numbers: set[int]) -> dict[int, Any]:
    """The answers to requests, by their numbers; they come in any order."""
    assert child.stdout is not None
    found: dict[int, Any] = {}
    while numbers - found.keys():
        message = json.loads(child.stdout.readline())
        if "id" in message:
            found[message["id"]] = message
    return found


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_tool_reads_what_the_client_sends(world: World, tmp_path: Path, backend: str) -> None:
    """Programs that read their stdin to its end run while 20 requests wait in the server's."""
    reading = {
        2: call(2, "shell_execute", {"command": ["sh", "-c", "cat; read x || echo end"]}),
        3: call(3, "evaluate_python", {"code": "import sys\nprint(repr(sys.stdin.read()))"}),
        4: call(4, "job_start", {"command": ["sh", "-c", "cat; echo end"]}),
    }
    numbers = range(5, 25)
    env = environment(world, tmp_path / "place")
    with world.start("mcp", "--backend", backend, env=env, stderr=subprocess.DEVNULL) as child:
        send(child, HELLO, READY, *reading.values(), *(call(number, "ls") for number in numbers))
        found = answers(child, {*reading, *numbers})
        job = found[4]["result"]["structuredContent"]["job"]
        send(child, call(30, "job_output", {"job": job, "wait_seconds": 60}))
        printed = answers(child, {30})[30]["result"]
        child.communicate(timeout=60)
    assert not any(found[number]["result"]["isError"] for number in numbers)
    assert found[2]["result"]["structuredContent"]["stdout"] == "end\n"
    assert found[3]["result"]["structuredContent"]["stdout"] == "''\n"
    assert "end" in printed["content"][0]["text"]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("end", ["eof", signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_however_it_ends_nothing_is_left(world: World, tmp_path: Path, backend: str, end: Any) -> None:
    place = tmp_path / "place"
    env = environment(world, place)
    with world.start("-vv", "mcp", "--backend", backend, env=env, stderr=subprocess.DEVNULL) as child:
        send(child, HELLO, READY, call(2, "ls"), call(3, "job_start", {"command": ["sleep", f"48704.{TAG}"]}))
        send(child, call(4, "shell_execute", {"command": ["sleep", f"48705.{TAG}"], "timeout_seconds": 120}))
        assert not answer(child, 3)["result"]["isError"]
        wait_for(lambda: running(f"sleep 48704.{TAG}") and running(f"sleep 48705.{TAG}"), what="the commands")
        if end == "eof":
            assert child.stdin is not None
            child.stdin.close()
        else:
            child.send_signal(end)
        assert child.stdout is not None
        rest = child.stdout.read().splitlines()
        code = child.wait(60)
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest)
    assert code == {"eof": 0, signal.SIGTERM: 143, signal.SIGINT: 130, signal.SIGKILL: -9}[end]
    wait_for(lambda: not running(f"sleep 48704.{TAG}") and not running(f"sleep 48705.{TAG}"), what="their end")
    if end == signal.SIGKILL:
        world.cleaned()
        with world.start("mcp", "--backend", backend, env=env, stderr=subprocess.DEVNULL) as again:
            send(again, HELLO, READY, call(2, "ls"))  # the next start removes its files
            assert not answer(again, 2)["result"]["isError"]
            again.communicate(timeout=60)
    assert left_workspaces(place) == []


def shown(child: subprocess.Popen[bytes], log: Path) -> str:
    """What others see of a server."""
    return Path(f"/proc/{child.pid}/cmdline").read_text() + log.read_text()


@pytest.mark.parametrize("era", ERAS)
async def test_clients_over_http(world: World, tmp_path: Path, project: Path, era: str) -> None:
    place = tmp_path / "place"
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{'a' * 40}\n{'b' * 40}\n")
    tokens.chmod(0o600)
    with http_server(world, place, "--mount", str(project), "--token-file", str(tokens)) as (child, url, log):
        async with over_http(url, "a" * 40, era) as a, over_http(url, "b" * 40, era) as b:
            value_of(await a.call_tool("write_file", {"file_path": "mine", "content": "1"}))
            (box,) = value_of(await a.call_tool("sandbox_list"))["sandboxes"]
            assert (await b.call_tool("read_file", {"file_path": "mine", "sandbox": box["sandbox"]})).is_error
            with pytest.raises(MCPError):
                await b.read_resource(f"podbot://{box['sandbox']}/files/mine")
            async with anyio.create_task_group() as group:
                arguments = {"command": ["sleep", f"48706.{TAG}"], "timeout_seconds": 120}
                group.start_soon(a.call_tool, "shell_execute", arguments)
                await anyio.to_thread.run_sync(
                    lambda: wait_for(lambda: running(f"sleep 48706.{TAG}"), what="the command")
                )
                group.cancel_scope.cancel()
            await anyio.to_thread.run_sync(lambda: wait_for(lambda: not running(f"sleep 48706.{TAG}"), what="its end"))
        assert "a" * 40 not in shown(child, log)
        child.terminate()
        assert child.wait(60) == 128 + signal.SIGTERM
    assert left_workspaces(place) == []


def test_podbots_own_token_is_in_a_private_file(world: World, tmp_path: Path) -> None:
    with http_server(world, tmp_path / "place", "--backend", "unsafe-local") as (_, url, log):
        path = Path(world.env["HOME"], ".local", "state", "podbot", "mcp-token")
        assert path.stat().st_mode & 0o777 == 0o600
        token = path.read_text().strip()
        assert str(path) in log.read_text()
        assert token not in log.read_text()

        async def listed() -> int:
            async with over_http(url, token) as client:
                return len((await client.list_tools()).tools)

        assert anyio.run(listed) > 10


def inspector() -> str:
    """The program of the MCP inspector's command line, installed once, with npm."""
    place = os.path.join(CACHE, INSPECTOR.rpartition("/")[2])
    flags = ("--no-audit", "--no-fund", "--ignore-scripts")
    install_once(place, lambda fresh: from_registry("npm", "install", *flags, "--prefix", fresh, INSPECTOR))
    return os.path.join(place, "node_modules", ".bin", "mcp-inspector")


def test_the_inspectors_command_line(world: World, tmp_path: Path, project: Path) -> None:
    env = environment(world, tmp_path / "place")

    def inspected(*words: str) -> Any:
        command = [*PODBOT, "mcp", "--mount", str(project)]
        done = subprocess.run(
            [inspector(), "--cli", *command, *words], env=env, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    names = [tool["name"] for tool in inspected("--method", "tools/list")["tools"]]
    assert "shell_execute" in names
    called = ("--method", "tools/call", "--tool-name", "read_file", "--tool-arg", "file_path=src/app.py")
    assert inspected(*called)["structuredContent"]["content"] == "print('one')"


@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_sandbox_that_is_closed_during_an_export_has_no_deletions(
    world: World, tmp_path: Path, project: Path, backend: str
) -> None:
    for number in range(2000):
        (project / f"{number}.txt").write_text(f"{number}\n")
    async with over_stdio(world, tmp_path / "place", "--backend", backend, "--mount", str(project)) as client:
        box = value_of(await client.call_tool("sandbox_create"))["sandbox"]
        exports: list[types.CallToolResult] = []

        async def export() -> None:
            exports.append(await client.call_tool("patch_export", {"sandbox": box}))

        async with anyio.create_task_group() as group:
            group.start_soon(export)
            group.start_soon(client.call_tool, "sandbox_close", {"sandbox": box})
    (found,) = exports
    # Without an error it was finished before the sandbox was closed.
    assert found.is_error or (value_of(found)["files"], value_of(found)["left_out"]) == ([], [])


async def test_the_image_of_the_command_line_is_the_sandboxes(world: World, tmp_path: Path) -> None:
    async with over_stdio(world, tmp_path / "place", "--image", "localhost/podbot-none:1") as client:
        refused = await client.call_tool("ls")
        assert refused.is_error
        assert "localhost/podbot-none:1" in text_of(refused)


@pytest.mark.parametrize("backend", BACKENDS)
async def test_the_work_comes_back_as_a_patch(world: World, tmp_path: Path, project: Path, backend: str) -> None:
    async with over_stdio(world, tmp_path / "place", "--backend", backend, "--mount", f"{project}:/project") as client:
        assert value_of(await client.call_tool("patch_export"))["patch"] == ""
        edit = {"file_path": "project/src/app.py", "old_string": "one", "new_string": "two"}
        value_of(await client.call_tool("edit_file", edit))
        value_of(await client.call_tool("write_file", {"file_path": "project/new.txt", "content": "n\n"}))
        value_of(await client.call_tool("rm", {"path": "project/secret.env"}))
        found = value_of(await client.call_tool("patch_export"))
        assert found["base"] == "/workspace/project"
        assert value_of(await client.call_tool("patch_export", {"mount": found["base"]})) == found
        assert (await client.call_tool("patch_export", {"mount": "/workspace/other"})).is_error
    assert {(file["path"], file["change"]) for file in found["files"]} == {
        ("new.txt", "added"), ("secret.env", "deleted"), ("src/app.py", "modified"),
    }  # fmt: skip
    await anyio.run_process(["git", "init", "--quiet"], cwd=project.parent)  # where plain `git apply` changes nothing
    await anyio.run_process(["sh", "-c", APPLY], cwd=project, input=found["patch"].encode())
    assert (project / "new.txt").read_text() == "n\n"
    assert (project / "src" / "app.py").read_text() == "print('two')\n"
    assert not (project / "secret.env").exists()


@pytest.mark.parametrize("heading", ["Zed", "Cursor"])  # the others: test_mcp_agents.py
async def test_the_settings_of_the_how_to_give_a_sandbox(
    world: World, tmp_path: Path, project: Path, heading: str
) -> None:
    (servers,) = blocks(heading)
    words = [str(project) if word == PROJECT else word for word in servers["podbot"]["args"]]
    async with over_stdio(world, tmp_path / "place", *words[1:]) as client:
        ran = await client.call_tool("shell_execute", {"command": ["sh", "-c", "id -u; ls"]})
        assert value_of(ran)["stdout"] == "65534\nsecret.env\nsrc\n"
