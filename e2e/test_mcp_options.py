"""``podbot mcp`` on real Podman: tasks, ``--read-only``, ``--image``, and a client that is killed."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import anyio
import mcp_types as types
import pytest
from mcp import MCPError
from mcp.client.extension import ClaimContext

from e2e.harness import PODBOT, TAG, World, processes, wait_for
from e2e.mcp_client import environment, over_stdio, running, text_of, value_of
from e2e.patience import bound
from e2e.shells import image_with
from tests.mcp.pipes import HELLO, READY, call
from tests.mcp.test_tasks import TakesTasks, TaskResult, ask, ended

REMOVED_SECONDS = 2.0  # from the death of a client to the end of its container and of the server


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_a_long_command_is_a_task(world: World, tmp_path: Path) -> None:
    seen: list[str] = []

    async def then(task: TaskResult, context: ClaimContext) -> types.CallToolResult:
        seen.append((await ask(context.session, "tasks/get", task.task_id)).status)
        state = await ended(context.session, task.task_id)
        return types.CallToolResult.model_validate(state.result)

    async with over_stdio(world, tmp_path / "place", extensions=[TakesTasks(then)]) as client:
        assert value_of(await client.call_tool("sandbox_create"))
        command = {"command": ["sh", "-c", "sleep 4; id -u"], "timeout_seconds": 120}
        assert value_of(await client.call_tool("shell_execute", command))["stdout"] == "65534\n"
    assert seen[-1:] == ["working"]  # before it perhaps the start of the sandbox, on a slow machine


@pytest.mark.anyio
async def test_a_cancelled_task_ends_its_command_in_the_sandbox(world: World, tmp_path: Path) -> None:
    command = f"sleep 48711.{TAG}"
    cancelling = False

    async def then(task: TaskResult, context: ClaimContext) -> types.CallToolResult:
        if not cancelling:  # another call that takes as long as a task, on a slow machine
            state = await ended(context.session, task.task_id)
            return types.CallToolResult.model_validate(state.result)
        await anyio.to_thread.run_sync(lambda: wait_for(lambda: running(command), what="the command"))
        for _ in range(2):  # twice is harmless
            await ask(context.session, "tasks/cancel", task.task_id)
        state = await ended(context.session, task.task_id)
        return types.CallToolResult(content=[types.TextContent(text=state.status)], is_error=True)

    async with over_stdio(world, tmp_path / "place", extensions=[TakesTasks(then)]) as client:
        value_of(await client.call_tool("sandbox_create"))
        cancelling = True
        arguments = {"command": command.split(), "timeout_seconds": 120}
        assert text_of(await client.call_tool("shell_execute", arguments)) == "cancelled"
        cancelling = False
        assert not running(command)
        assert value_of(await client.call_tool("shell_execute", {"command": ["echo", "on"]}))["stdout"] == "on\n"


@pytest.mark.anyio
async def test_a_read_only_server_reads_in_a_sandbox_and_changes_nothing(world: World, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "app.py").write_text("print('one')\n")
    async with over_stdio(world, tmp_path / "place", "--read-only", "--mount", str(project)) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert names == {"sandbox_create", "sandbox_list", "sandbox_close", "ls", "read_file", "glob", "grep"}
        found = value_of(await client.call_tool("grep", {"pattern": "pr.nt"}))["matches"]
        assert [(match["path"], match["line_number"]) for match in found] == [("app.py", 1)]
        for name, arguments in (
            ("write_file", {"file_path": "new", "content": ""}),
            ("rm", {"path": "app.py"}),
            ("shell_execute", {"command": ["touch", "new"]}),
            ("job_start", {"command": ["touch", "new"]}),
            ("patch_export", {}),
        ):
            with pytest.raises(MCPError, match="Unknown tool"):
                await client.call_tool(name, arguments)
        listed = value_of(await client.call_tool("ls"))["entries"]
        assert [entry["path"] for entry in listed] == ["app.py"]


@pytest.mark.anyio
async def test_the_image_of_the_command_line_is_what_runs(world: World, tmp_path: Path) -> None:
    with image_with(world, f"mcp-{TAG}", "RUN echo of-this-image > /etc/marker") as image:
        async with over_stdio(world, tmp_path / "place", "--image", image) as client:
            ran = await client.call_tool("shell_execute", {"command": ["cat", "/etc/marker"]})
            assert value_of(ran)["stdout"] == "of-this-image\n"


CLIENT = """
import subprocess, sys
child = subprocess.Popen(sys.argv[3:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
child.stdin.write(sys.argv[1].encode())
child.stdin.flush()
if sys.argv[2] == "leaks":
    subprocess.Popen(["cat"], pass_fds=[child.stdin.fileno(), child.stdout.fileno()], stdout=subprocess.DEVNULL)
for line in child.stdout:
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
"""


@pytest.mark.parametrize("client_has", ["nothing", "leaks"])
def test_when_its_client_is_killed_its_container_is_gone(world: World, client_has: str) -> None:
    """``leaks``: another child of the client has the server's stdin and stdout, and lives on."""
    sleep = f"sleep 48712.{TAG}"
    stubborn = {"command": ["sh", "-c", f"trap '' TERM; {sleep}"]}
    requests = [HELLO, READY, call(2, "job_start", stubborn), call(3, "shell_execute", stubborn)]
    sent = "".join(json.dumps(request) + "\n" for request in requests)
    words = [sys.executable, "-c", CLIENT, sent, client_has, *PODBOT, "mcp"]
    env = environment(world, Path(world.root, "place"))
    pipe = subprocess.PIPE
    with subprocess.Popen(words, env=env, stdin=pipe, stdout=pipe, cwd=world.root) as client:  # its end ends the cat
        try:
            assert client.stdout is not None
            answers = [json.loads(client.stdout.readline()) for _ in range(2)]
            assert not answers[1]["result"]["isError"], answers
            (server,) = [
                pid for pid, command in processes() if command.endswith("podbot mcp") and parent(pid) == client.pid
            ]
            (container,) = [name for name in world.managed() if name.startswith("podbot-ws-mcp-")]
            wait_for(lambda: count(sleep) == 2, what="the job and the command")
        finally:
            client.kill()
        begin = time.monotonic()
        wait_for(lambda: not running(sleep) and not world.container(container), what="the container's end", seconds=60)
        took = time.monotonic() - begin
        # One that has ended has no command line. As its parent was killed, the system reaps it, perhaps seconds later.
        wait_for(lambda: not dict(processes()).get(server), what="the server's end", seconds=60)
        whole = time.monotonic() - begin
    print(f"after their client the container was gone in {took:.2f} s, the server in {whole:.2f} s")
    assert whole <= bound(REMOVED_SECONDS)
    world.cleaned()


def count(command: str) -> int:
    return sum(found == command for _, found in processes())


def parent(pid: int) -> int:
    """The id of the process that has started another one; 0 if that has ended."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except FileNotFoundError:
        return 0
