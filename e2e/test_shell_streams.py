"""What moves through shells on a real engine: much input and output, several readers, children, secrets."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import podbot
from e2e.harness import TAG, World, running, wait_for
from e2e.patience import bound, patient
from e2e.shells import ROOT, WITHOUT_PYTHON, Containers, check_connection, runs_inside, sandbox
from podbot.guest.messages import GuestCommand
from podbot.shell import PodmanShell

MIB = 1 << 20
FLOOD = 50 * MIB
WITHIN = patient(120.0)
# A heredoc, and then 50 MB that differ in each line.
LINES = f"""cat > text <<'END'
$not "expanded" `here`
END
cat text
yes "$(cat text)" | head -c {FLOOD}
"""
# Who opens a file of which another process holds a lease waits for 45 s. The guard opens this one at the end.
LEASE = """
import fcntl, signal, time
signal.signal(signal.SIGIO, signal.SIG_IGN)
file = open("Makefile", "w+")
try:
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    print("leased", flush=True)
except OSError as exc:
    print(exc.strerror, flush=True)
time.sleep(600)
"""


@pytest.fixture(scope="module")
def box(shared_world: World) -> Iterator[podbot.Sandbox]:
    with sandbox(shared_world) as made:
        check_connection(made.shell)
        yield made


@pytest.fixture(scope="module")
def containers(shared_world: World) -> Iterator[Containers]:
    made = Containers(shared_world)
    with made.stack:
        yield made


@pytest.fixture(params=["guest", "without python"])
def shell(request: pytest.FixtureRequest, box: podbot.Sandbox, containers: Containers) -> Iterator[PodmanShell]:
    if request.param == "guest":
        with box.open_shell(root=ROOT, validator=None) as made:
            yield made
    else:
        with containers.shell(containers.shared(*WITHOUT_PYTHON)) as made:
            yield made


# --- large inputs and outputs ----------------------------------------------------------------------


def test_a_heredoc_and_50_mb_in_one_command(shell: PodmanShell) -> None:
    line = b'$not "expanded" `here`\n'
    expected = hashlib.sha256(line)
    expected.update((line * (FLOOD // len(line) + 1))[:FLOOD])
    found, size = hashlib.sha256(), 0
    with shell.stream(LINES, timeout_seconds=WITHIN) as stream:
        for chunk in stream:
            assert chunk.stream == "stdout", chunk.data
            found.update(chunk.data)
            size += len(chunk.data)
    assert (stream.result.exit_code, size) == (0, FLOOD + len(line))
    assert found.digest() == expected.digest()
    kept = shell.execute(LINES, timeout_seconds=WITHIN)
    assert (kept.exit_code, kept.truncated, kept.stdout.encode()[: len(line)]) == (0, True, line)


@pytest.mark.parametrize("size", [1, 4096, 18 << 10, MIB, 64 * MIB])
def test_what_is_written_arrives_equal(box: podbot.Sandbox, size: int) -> None:
    data = os.urandom(size)
    limits = podbot.ShellLimits(stdin_bytes=64 * MIB)
    with box.open_shell(root=ROOT, limits=limits) as shell:
        written = shell.execute_bytes(["tee", "written"], stdin=data, timeout_seconds=WITHIN)
        assert (written.exit_code, written.stdout) == (0, data[:MIB])
        assert shell.execute(["sha256sum", "written"]).stdout.split()[0] == hashlib.sha256(data).hexdigest()
        assert shell.execute(["rm", "written"]).success
    counted = box.run(["sha256sum"], capture=True, input=data, timeout=WITHIN)
    assert counted.stdout.split()[0] == hashlib.sha256(data).hexdigest()


def test_stdin_that_stays_open_does_not_hold_up_the_end_of_a_command(box: podbot.Sandbox) -> None:
    with box.channel() as channel:
        command = channel.start(GuestCommand(("true",), stdin="open"))
        command.write(b"never read")
        ended = command.wait(WITHIN)
        assert ended is not None
        assert ended.code == 0
    with box.shell.terminal("exit 3") as terminal:  # its keyboard stays open, too
        result = terminal.wait(WITHIN)
        assert result is not None
        assert result.exit_code == 3


def test_100_commands_of_each_of_8_threads_with_run(box: podbot.Sandbox) -> None:
    def work(number: int) -> list[object]:
        wrong: list[object] = []
        for count in range(100):
            text = f"{number}:{count}"
            result = box.run(["sh", "-c", 'echo "$0"; cat', text], capture=True, input=text)
            if (result.stdout, result.exit_code) != (f"{text}\n{text}", 0):
                wrong.append(result)
        return wrong

    with ThreadPoolExecutor(8) as threads:
        assert [wrong for wrong in threads.map(work, range(8)) if wrong] == []


def test_a_prompt_that_was_changed_is_no_matter(shell: PodmanShell) -> None:
    """podbot reads no prompt: a shell on a terminal ends when its process does."""
    with shell.terminal("/bin/sh") as terminal:
        terminal.write(b"PS1='$ exit 0 > '; PS2=; echo $((40 + 2))\r")
        said = b""
        while b"42\r\n" not in said:
            piece = terminal.read(WITHIN)
            assert piece, said
            said += piece
        terminal.write(b"exit 7\r")
        ended = terminal.wait(WITHIN)
    assert ended is not None
    assert ended.exit_code == 7


# --- several readers, and children that are left ---------------------------------------------------


def test_a_reader_that_stops_does_not_stop_the_other_one(shell: PodmanShell) -> None:
    """Of one job, and of one connection, on which a flood is not read."""
    job = shell.start("for number in $(seq 200); do echo line $number; sleep 0.01; done")
    stopped = shell.job(job.id)
    assert stopped.output(0, limit=5).offset == 0  # and never again
    with shell.stream(["yes"], timeout_seconds=WITHIN) as flood:
        assert next(iter(flood)).data.startswith(b"y\n")  # and never again
        data, offset = b"", 0
        while True:
            part = job.output(offset)
            data, offset = data + part.data, part.next_offset
            if part.complete and not part.data:
                break
        assert data == b"".join(b"line %d\n" % number for number in range(1, 201))
        assert shell.execute(["echo", "next"]).stdout == "next\n"
    assert stopped.wait(WITHIN).exit_code == 0


def test_a_child_that_holds_stdout_open_does_not_hold_the_call(shell: PodmanShell) -> None:
    result = shell.execute(f"sleep 48161.{TAG} & echo mine; exit 3", timeout_seconds=WITHIN)
    assert (result.exit_code, result.stdout, result.timed_out) == (3, "mine\n", False)
    assert result.duration_seconds < WITHIN / 2
    assert runs_inside(shell, f"sleep 48161.{TAG}")
    assert shell.execute(["pkill", "-f", f"sleep 48161.{TAG}"]).exit_code in (0, 127)


def test_what_a_command_leaves_with_its_output_is_a_job(box: podbot.Sandbox) -> None:
    line = (
        f"(while [ ! -e ask-{TAG} ]; do sleep 0.05; done; echo answer; exec sleep 48162.{TAG}) & echo started; exit 3"
    )
    with box.open_shell(root=ROOT) as shell:
        result = shell.execute(line, timeout_seconds=WITHIN)
        assert (result.exit_code, result.stdout) == (3, "started\n")
        assert f"; its background processes are job {result.left_job}\n" in str(result)
        assert shell.execute(["touch", f"ask-{TAG}"]).success
    with box.open_shell(root=ROOT) as shell:
        assert result.left_job in [state.id for state in shell.jobs() if state.running]
        job = shell.job(str(result.left_job))
        wait_for(lambda: job.output().data == b"answer\n", what="the answer")
        wait_for(lambda: runs_inside(shell, f"sleep 48162.{TAG}"), what="the sleep")
        job.kill()
        assert (job.wait(WITHIN).running, job.poll().exit_code) == (False, 3)
        assert not runs_inside(shell, f"sleep 48162.{TAG}")


# --- secrets, and what holds podbot up -------------------------------------------------------------


def argvs() -> bytes:
    """The command lines of all processes of this machine that can be seen."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(path.read_bytes())
        except OSError:
            continue
    return b"\n".join(found)


def test_a_secret_of_env_and_stdin_is_in_no_command_line_of_the_machine(shell: PodmanShell) -> None:
    env, stdin, word = (f"canary-{secrets.token_hex(16)}" for _ in range(3))
    held = f"go-{secrets.token_hex(8)}"
    line = f'read -r line; while [ ! -e "{held}" ]; do sleep 0.05; done; echo "$line $TOKEN"'
    results: list[podbot.ExecutionResult] = []

    def run() -> None:
        words = ["sh", "-c", line, word]
        results.append(shell.execute(words, env={"TOKEN": env}, stdin=f"{stdin}\n", timeout_seconds=WITHIN))

    thread = threading.Thread(target=run)
    thread.start()
    seen: list[bytes] = []

    def has_begun() -> bool:
        seen.append(argvs())
        return word.encode() in seen[-1]

    wait_for(has_begun, what="the command")
    seen += [argvs() for _ in range(5)]
    assert shell.execute(["touch", held]).success
    thread.join()
    assert results[0].stdout == f"{stdin} {env}\n"
    everything = b"\n".join(seen)
    assert word.encode() in everything  # a word of the command is seen, so a secret would be
    assert env.encode() not in everything
    assert stdin.encode() not in everything


@pytest.mark.parametrize("profile", ["hardened", "privileged"])
def test_a_lease_that_is_never_given_back_holds_nothing_up(own_world: World, profile: str) -> None:
    """Only a privileged sandbox gets one."""
    with sandbox(own_world, **{"sandbox.profile": profile}) as box:
        job = box.shell.start(["python3", "-c", LEASE])
        wait_for(lambda: job.output().data != b"", what="the lease")
        assert job.output().data == (b"Invalid argument\n" if profile == "hardened" else b"leased\n")
        assert box.shell.execute(["ls"]).stdout == "Makefile\n"
        assert job.poll().running
        begun = time.monotonic()
    assert time.monotonic() - begun < bound(30)


# --- asyncio ---------------------------------------------------------------------------------------


def test_asyncio_on_a_guest(box: podbot.Sandbox) -> None:
    async def work() -> None:
        async with podbot.AsyncShell(box.shell) as shell:
            results = await asyncio.gather(*(shell.execute(["echo", str(number)]) for number in range(50)))
            assert [result.stdout for result in results] == [f"{number}\n" for number in range(50)]
            async with shell.stream(f"head -c {MIB} /dev/zero") as stream:
                assert sum([len(chunk.data) async for chunk in stream]) == MIB
            job = await shell.start("read -r line < /dev/null; echo job; exit 5")
            assert (await job.wait(WITHIN)).exit_code == 5
            assert (await job.output()).data == b"job\n"
            async with shell.terminal("stty size", columns=90, rows=30) as terminal:
                said = b""
                while b"\n" not in said:
                    said += await terminal.read(WITHIN)
            assert said == b"30 90\r\n"
            cancelled = asyncio.create_task(shell.execute(["sleep", f"48162.{TAG}"], timeout_seconds=WITHIN))
            await asyncio.to_thread(lambda: wait_for(lambda: running(f"sleep 48162.{TAG}"), what="the command"))
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            assert not running(f"sleep 48162.{TAG}")

    asyncio.run(work())
