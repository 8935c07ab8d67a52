from __future__ import annotations

import asyncio
import contextvars
import threading
from pathlib import Path

import pytest

from podbot.shell.aio import AsyncShell
from podbot.shell.cancellation import CALL, Cancellation
from podbot.shell.conformance import eventually
from podbot.shell.host_shell import HostShell
from podbot.shell.shell_limits import ShellLimits
from tests.shell.scripted import ENDED, ScriptedCommands, ScriptedRunning, shell_on
from tests.waiting import HANG


def pid_in(directory: Path) -> str:
    """What the command wrote there; empty before."""
    path = directory / "pid"
    return path.read_text().strip() if path.exists() else ""


def test_calls_at_once_and_their_errors(tmp_path: Path) -> None:
    async def work() -> None:
        with HostShell(tmp_path) as shell:
            async with AsyncShell(shell) as door:
                waits = "while [ $(ls | wc -l) -lt 5 ]; do sleep 0.02; done"
                results = await asyncio.gather(*(door.execute(f"touch {n}; {waits}; echo {n}") for n in range(5)))
                assert [result.stdout for result in results] == [f"{n}\n" for n in range(5)]
                assert (await door.execute_bytes(["cat"], stdin=b"\xff")).stdout == b"\xff"
                assert (await door.which("sh")).found
                assert (await door.env()).cwd == str(tmp_path)
                assert (await door.execute_script("exit 3", interpreter="/bin/sh")).exit_code == 3
                with pytest.raises(ValueError, match="command"):
                    await door.execute("")
                with pytest.raises(PermissionError):
                    await door.execute("rm -rf /")

    asyncio.run(work())


def test_a_cancelled_call_ends_its_command(tmp_path: Path) -> None:
    async def work() -> None:
        with HostShell(tmp_path) as shell:
            async with AsyncShell(shell) as door:
                task = asyncio.create_task(door.execute("echo $$ > pid; exec sleep 600", timeout_seconds=60))
                await asyncio.to_thread(eventually, lambda: pid_in(tmp_path) != "", what="the command")
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                pid = pid_in(tmp_path)
                assert not shell.execute(["kill", "-0", pid]).success
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.05):
                        await door.execute(["sleep", "600"], timeout_seconds=60)
                assert (await door.execute(["echo", "on"])).stdout == "on\n"

    asyncio.run(work())


def test_a_stream_and_a_job(tmp_path: Path) -> None:
    async def work() -> None:
        with HostShell(tmp_path) as shell:
            async with AsyncShell(shell) as door:
                async with door.stream("echo a; echo b >&2; exit 4") as stream:
                    chunks = [(chunk.stream, chunk.data) async for chunk in stream]
                assert sorted(chunks) == [("stderr", b"b\n"), ("stdout", b"a\n")]
                assert stream.result.exit_code == 4
                async with door.stream("echo $$; exec sleep 600") as stream:
                    async for chunk in stream:
                        pid = chunk.data.decode().strip()
                        break
                assert not shell.execute(["kill", "-0", pid]).success
                job = await door.start(["sh", "-c", "exit 5"])
                assert (await job.wait(HANG)).exit_code == 5

    asyncio.run(work())


def test_a_stream_that_is_cancelled(tmp_path: Path) -> None:
    async def work() -> None:
        with HostShell(tmp_path) as shell:
            async with AsyncShell(shell) as door:

                async def read() -> None:
                    async with door.stream("echo $$ > pid; exec sleep 600", timeout_seconds=60) as stream:
                        async for _chunk in stream:
                            raise AssertionError("it prints nothing")

                task = asyncio.create_task(read())
                await asyncio.to_thread(eventually, lambda: pid_in(tmp_path) != "", what="the command")
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert not shell.execute(["kill", "-0", pid_in(tmp_path)]).success

    asyncio.run(work())


def test_a_call_that_names_no_time_has_that_of_the_limits(tmp_path: Path) -> None:
    async def main() -> None:
        with HostShell(tmp_path, limits=ShellLimits(default_timeout=0.3)) as shell:
            async with AsyncShell(shell) as door:
                assert (await door.execute(["sleep", "600"])).timed_out
                async with door.stream(["sleep", "600"]) as stream:
                    assert [chunk async for chunk in stream] == []
                assert stream.result.timed_out

    asyncio.run(main())


def test_a_stream_that_is_cancelled_while_it_starts_leaves_no_command() -> None:
    """The thread may have started the command when the caller has gone already."""
    starting, go = threading.Event(), threading.Event()

    def prepare(running: ScriptedRunning) -> None:
        running.ended = None
        starting.set()
        assert go.wait(HANG)

    commands = ScriptedCommands(prepare)

    async def work() -> None:
        async with AsyncShell(shell_on(commands)) as door:

            async def enter(kind: str) -> None:
                async with getattr(door, kind)(["sleep", "600"]):
                    raise AssertionError("it was cancelled before")

            for kind in ("stream", "terminal"):
                starting.clear()
                go.clear()
                task = asyncio.create_task(enter(kind))
                await asyncio.to_thread(starting.wait)
                task.cancel()
                await asyncio.sleep(0)
                go.set()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert commands.started[-1].terminated.is_set()

    asyncio.run(work())


def test_cancelling_a_call_never_ends_the_next_one_of_its_thread() -> None:
    """The call has returned, its thread runs another one, and only then the cancellation arrives."""
    first, second = Cancellation(), Cancellation()

    def prepare(running: ScriptedRunning) -> None:
        running.ended = None if running.command.argv == ("long",) else ENDED

    commands = ScriptedCommands(prepare)
    shell = shell_on(commands)

    def call(cancellation: Cancellation, command: str) -> None:
        CALL.set(cancellation)
        shell.execute([command])

    contextvars.copy_context().run(call, first, "short")
    thread = threading.Thread(target=contextvars.copy_context().run, args=(call, second, "long"))
    thread.start()
    eventually(lambda: len(commands.started) == 2, what="the second call")
    first.cancel()
    assert not commands.started[1].terminated.wait(0.2)
    second.cancel()
    thread.join(HANG)
    assert commands.started[1].terminated.is_set()


def test_a_terminal(tmp_path: Path) -> None:
    async def work() -> None:
        with HostShell(tmp_path) as shell:
            async with AsyncShell(shell) as door:
                line = "while stty size; read line; do [ $line = end ] && exit 6; done"
                async with door.terminal(line, columns=91, rows=17) as terminal:
                    seen = b""
                    while b"17 91\r\n" not in seen:
                        seen += await terminal.read(HANG)
                    assert await terminal.read(0.05) == b""
                    await terminal.resize(33, 11)
                    await terminal.write(b"more\n")
                    while b"11 33\r\n" not in seen:
                        seen += await terminal.read(HANG)
                    with pytest.raises(ValueError, match="1 to 64"):
                        await terminal.signal(0)
                    assert await terminal.wait(0.05) is None
                    await terminal.write(b"end\n")
                    ended = await terminal.wait(HANG)
                    assert ended is not None
                    assert ended.exit_code == 6
                    assert await terminal.read() == b""
                async with door.terminal("exec sleep 600") as terminal:
                    await terminal.signal(9)
                    ended = await terminal.wait()
                    assert ended is not None
                    assert ended.signal == 9

    asyncio.run(work())


def test_a_cancelled_read_of_a_terminal_loses_nothing_and_a_task_may_write_meanwhile(tmp_path: Path) -> None:
    async def work() -> None:
        with HostShell(tmp_path) as shell:
            async with AsyncShell(shell) as door, door.terminal("stty -echo; echo up; exec cat") as terminal:
                seen = b""
                while b"up" not in seen:
                    seen += await terminal.read(HANG)
                reading = asyncio.create_task(terminal.read())
                await asyncio.sleep(0)
                reading.cancel()
                await terminal.write(b"line\n")
                with pytest.raises(asyncio.CancelledError):
                    await reading
                seen = b""
                while b"line\r\n" not in seen:
                    seen += await terminal.read(HANG)
                reading = asyncio.create_task(terminal.read())
                await terminal.write(b"more\n")
                assert b"more" in await reading

    asyncio.run(work())


def test_jobs(tmp_path: Path) -> None:
    async def work() -> None:
        with HostShell(tmp_path) as shell:
            async with AsyncShell(shell) as door:
                job = await door.start("echo out; echo err >&2; while [ ! -e stop ]; do sleep 0.05; done; exit 4")
                assert (await job.poll()).running
                assert (await job.wait(0.05)).running
                found = await door.job(job.id)
                assert [state.id for state in await door.jobs()] == [job.id] == [found.id]
                waiting = asyncio.create_task(job.wait())
                await asyncio.sleep(0)  # it begins
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
                assert (await job.poll()).running
                (tmp_path / "stop").touch()
                assert (await found.wait(HANG)).exit_code == 4
                assert (await job.output(1, limit=2)).data == b"ut"
                assert (await job.output(stream="stderr")).data == b"err\n"
                with pytest.raises(ValueError, match=r"offset cannot be -1: .* Pass 0, or the next_offset of an"):
                    await job.output(-1)
                with pytest.raises(ValueError, match="job"):
                    await door.job("99")
                other = await door.start(["sleep", "600"])
                await other.kill(10)
                assert (await other.wait(HANG)).signal == 10

    asyncio.run(work())


def test_a_job_whose_start_is_cancelled_is_killed(tmp_path: Path) -> None:
    async def work() -> None:
        with HostShell(tmp_path) as shell:
            async with AsyncShell(shell, concurrency=1) as door:
                task = asyncio.create_task(door.start("echo $$ > pid; exec sleep 600"))
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                for state in await door.jobs():  # the call may have been cancelled before it began
                    assert not (await (await door.job(state.id)).wait(HANG)).running

    asyncio.run(work())


def test_a_call_that_is_cancelled_before_its_command_has_started() -> None:
    starting, go = threading.Event(), threading.Event()

    def prepare(running: ScriptedRunning) -> None:
        running.ended = None
        starting.set()
        assert go.wait(HANG)

    commands = ScriptedCommands(prepare)

    async def work() -> None:
        async with AsyncShell(shell_on(commands)) as door:
            task = asyncio.create_task(door.execute(["sleep", "600"]))
            await asyncio.to_thread(starting.wait)
            task.cancel()
            await asyncio.sleep(0)
            go.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert commands.started[0].terminated.is_set()

    asyncio.run(work())


def test_a_cancelled_write_to_a_terminal_that_reads_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        with HostShell(tmp_path) as shell:
            async with AsyncShell(shell) as door, door.terminal("stty raw -echo; echo up; exec sleep 600") as terminal:
                seen = b""
                while b"up" not in seen:
                    seen += await terminal.read(HANG)
                writing = asyncio.create_task(terminal.write(b"x" * 3_000_000))
                await terminal.read(0.1)
                assert not writing.done()
                writing.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await writing
                ended = await terminal.wait(HANG)
                assert ended is not None
                assert ended.signal == 15

    asyncio.run(work())
