"""Ends by something else than the command itself (issue 32.3): each is provoked, and named on stderr, as an event, and
in the library's result."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

import podbot
from e2e.harness import World
from e2e.test_limits import FORKS
from podbot.errors import ContainerNotFound, PodbotError
from podbot.shell.types import CommandStream

LIMITS = {"PODBOT_SANDBOX_MEMORY": "128m", "PODBOT_SANDBOX_PIDS": "100"}


def python(text: str) -> tuple[str, ...]:
    return ("python3", "-c", f"import ctypes, mmap, os, resource, signal, time\n{text}")


CALLS_32 = "a call of a 32-bit program"
# getpid of a 32-bit program: mov eax, 20; int 0x80; ret
CALL_32 = """
code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
code.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))
ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(code)))()
"""
CLOSED = """
signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it
one, other = os.pipe()
os.close(one)
os.write(other, b"x")
"""
FAULT = "usually a fault of the program"
SENT = "a process of the sandbox or of this machine sent it; the kernel does not say which"


class End(NamedTuple):
    """An end that a command brings about itself.

    ``said``: words of the line on stderr. ``kind``: of its event, without "agent" or "exec" in front. ``result``:
    attributes of the library's result, or functions that must be true of them. ``limit``: which is named, with where it
    was set.
    """

    words: tuple[str, ...]
    code: int
    said: str
    kind: str
    result: dict[str, Any]
    limit: str = ""


def by_signal(number: signal.Signals, words: tuple[str, ...], cause: str, said: str) -> End:
    result = {"signal": number, "cause": cause, "out_of_memory": False}
    return End(words, 128 + number, f" was ended by {number.name}: {said}", "killed", result)


ENDS = {
    "memory": End(
        python("bytearray(1 << 30)"), 137, "out of memory: the kernel killed the ", "out_of_memory",
        {"signal": 9, "cause": "out_of_memory", "out_of_memory": True},
        "; the limit is 128 MiB (sandbox.memory, variable PODBOT_SANDBOX_MEMORY)",
    ),
    "processes": End(
        python(FORKS), 3, "out of processes: the kernel refused ", "out_of_processes",
        {"signal": None, "cause": "", "forks_refused": lambda number: number > 0},
        "; the limit is 100 (sandbox.pids, variable PODBOT_SANDBOX_PIDS)",
    ),
    "an address that is not its own": by_signal(signal.SIGSEGV, python("ctypes.string_at(0)"), "fault", FAULT),
    "abort": by_signal(signal.SIGABRT, python("os.abort()"), "fault", FAULT),
    "a reader that is gone": by_signal(
        signal.SIGPIPE,
        python(CLOSED),
        "closed_pipe", "it wrote to a pipe or a connection that nothing reads any more",
    ),
    "its timer": by_signal(
        signal.SIGALRM, python("signal.setitimer(signal.ITIMER_REAL, 0.01); time.sleep(60)"), "timer",
        "a timer of the program's own",
    ),
    "processor time": by_signal(
        signal.SIGXCPU, python("resource.setrlimit(resource.RLIMIT_CPU, (1, 9))\nwhile True: pass"), "limit",
        "it has used the processor time that it may (RLIMIT_CPU)",
    ),
    "the size of a file": by_signal(
        signal.SIGXFSZ, ("prlimit", "--fsize=1000", "dd", "if=/dev/zero", "of=/tmp/x", "count=9"), "limit",
        "it wrote a file that is larger than it may (RLIMIT_FSIZE)",
    ),
    CALLS_32: by_signal(
        signal.SIGSYS, python(CALL_32), "refused_call",
        "the sandbox refuses its system call (seccomp), as each of a 32-bit program",
    ),
    "KILL": by_signal(signal.SIGKILL, ("sh", "-c", "kill -KILL $$"), "sent", SENT),
    "TERM": by_signal(signal.SIGTERM, ("sh", "-c", "kill -TERM $$"), "sent", SENT),
}  # fmt: skip


@pytest.fixture(scope="module")
def enforced(shared_world: World) -> bool:
    """Whether limits are enforced here: not on a rootless engine with cgroup v1."""
    return "does not enforce" not in shared_world.agent("true", check=True).stderr


@pytest.fixture(scope="module")
def session(shared_world: World) -> Iterator[str]:
    with shared_world.session(env=LIMITS) as name:
        yield name


def config(world: World, **keys: object) -> podbot.AppConfig:
    overrides = {"workspace.source": "none", **keys}
    return podbot.load_config(podbot.LoadOptions(environ=world.env, overrides=overrides))


@pytest.fixture(scope="module")
def box(shared_world: World) -> Iterator[podbot.Sandbox]:
    limited = config(shared_world, **{"sandbox.memory": "128m", "sandbox.pids": 100})
    with podbot.sandbox(limited, podbot.LaunchRequest(), environ=shared_world.env) as opened:
        yield opened


def events(stderr: str, *kinds: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in stderr.splitlines() if line.startswith("{")]
    return [event for event in found if event["kind"] in kinds]


def has(result: object, expected: dict[str, Any]) -> bool:
    found = {name: getattr(result, name) for name in expected}
    return all(want(found[name]) if callable(want) else found[name] == want for name, want in expected.items())


JSON = ("--log-format", "json")


@pytest.mark.parametrize("name", ENDS)
def test_an_end_is_named(shared_world: World, session: str, box: podbot.Sandbox, *, enforced: bool, name: str) -> None:
    end = ENDS[name]
    if end.limit and not enforced:
        pytest.skip("this engine does not enforce limits, so nothing would stop it")
    if name == CALLS_32 and platform.machine() != "x86_64":
        pytest.skip("its machine code is x86's")
    doors: dict[str, Callable[[tuple[str, ...]], Any]] = {
        "exec": lambda flags: shared_world.podbot(*flags, "exec", session, "--", *end.words),
        "agent": lambda flags: shared_world.agent(*end.words, flags=flags, env=LIMITS),
    }
    for door, through in doors.items():
        text = through(())
        assert text.returncode == end.code, text.stderr
        (line,) = [line for line in text.stderr.splitlines() if end.said in line]
        assert line.startswith("podbot: "), line
        assert line.endswith(end.limit), line
        kinds = {f"{door}.{end.kind}"} | ({f"sandbox.{end.kind}"} if door == "agent" else set())
        logged = through(JSON)
        (event,) = events(logged.stderr, *kinds)
        assert (event["level"], end.said in event["message"]) == ("warning", True), event
        if end.limit:
            assert event["origin"].startswith("variable PODBOT_SANDBOX_"), event
        if end.kind == "killed":
            assert (event["signal"], event["cause"]) == (end.result["signal"], end.result["cause"])
    result = box.run(end.words)
    assert result.exit_code == end.code, result
    assert has(result, end.result), result
    assert has(box.shell.execute(end.words), end.result)


@pytest.mark.parametrize("code", [130, 137, 139, 143])
def test_a_command_that_exits_with_such_a_status_by_itself_was_ended_by_nothing(
    shared_world: World, session: str, box: podbot.Sandbox, code: int
) -> None:
    done = shared_world.podbot("exec", session, "--", "sh", "-c", f"exit {code}")
    assert (done.returncode, done.stderr) == (code, "")
    result = box.run(["sh", "-c", f"exit {code}"])
    assert (result.exit_code, result.signal, result.cause) == (code, None, "")


def test_of_a_signal_that_the_operator_sent_nothing_is_said(shared_world: World, session: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        child = shared_world.start("exec", session, "--", "sh", "-c", "echo up; exec sleep 60")
        assert child.stdout is not None
        assert child.stdout.read(3) == b"up\n"
        os.kill(child.pid, number)
        _, err = child.communicate(timeout=60)
        assert (child.returncode, err) == (128 + number, b"")


def test_a_time_limit_is_named_in_the_library(box: podbot.Sandbox) -> None:
    for result in (box.run(["sleep", "60"], timeout=0.5), box.shell.execute(["sleep", "60"], timeout_seconds=0.5)):
        assert (result.exit_code, result.timed_out, result.cause) == (-1, True, "deadline")


class Outside(NamedTuple):
    """An end of the whole sandbox while `podbot exec` and a command of the library run in it.

    ``provoke``: gets the world, the session's name, and its podbot. ``cause``: of the error, whose text says ``said``.
    ``library``: the cause of the error, or of the result of a command that ended before its sandbox.
    """

    provoke: Callable[[World, str, subprocess.Popen[bytes]], object]
    cause: str
    said: str
    library: tuple[str, ...] = ()


def kill_guest(world: World, name: str, _owner: object) -> None:
    """As a process inside may, if it is root there."""
    world.podbot("exec", name, "--", "pkill", "-KILL", "-f", "guest.py serve")


OUTSIDE = {
    "its podbot is killed": Outside(
        lambda _world, _name, owner: owner.kill(), "owner_killed", "the podbot that ran its session was killed",
        ("sandbox_end",),
    ),
    "its podbot is told to end": Outside(
        lambda _world, _name, owner: owner.terminate(), "session_ended", "its session has ended",
    ),
    "podbot stop": Outside(
        lambda world, name, _owner: world.podbot("stop", name, check=True), "stopped", "a podbot was told to stop it"
    ),
    "podman rm": Outside(lambda world, name, _owner: world.podman("rm", "-f", name), "", "the container "),
    "podman kill": Outside(lambda world, name, _owner: world.podman("kill", name), "", "the container "),
    "a KILL of the guest": Outside(kill_guest, "", "the container "),
}  # fmt: skip


@pytest.mark.parametrize(
    ("what", "handles"),
    [*((what, False) for what in OUTSIDE), ("its podbot is killed", True)],
    ids=[*OUTSIDE, "its podbot is killed, and TERM is handled"],
)
def test_an_end_of_the_sandbox_is_named(own_world: World, what: str, *, handles: bool) -> None:
    end, name = OUTSIDE[what], "e2e-outside"
    owner, _ = own_world.start_agent("sleep 600", "--name", name)
    line = ("trap 'exit 0' TERM; " if handles else "") + "echo up; while :; do sleep 0.05; done"
    commands = [
        own_world.start(*flags, "exec", name, "--", "sh", "-c", line, stdin=subprocess.DEVNULL) for flags in ((), JSON)
    ]
    found: list[object] = []
    try:
        with contextlib.ExitStack() as stack:
            shell = stack.enter_context(podbot.open_shell(config(own_world), name, environ=own_world.env))
            stream = stack.enter_context(shell.stream(["sh", "-c", line]))
            assert next(iter(stream)).data == b"up\n"
            reader = threading.Thread(target=lambda: found.append(_end_of(stream)))
            reader.start()
            for command in commands:
                assert command.stdout is not None
                assert command.stdout.read(3) == b"up\n"
            end.provoke(own_world, name, owner)
            texts = [command.communicate(timeout=60)[1].decode() for command in commands]
            reader.join(60)
    finally:
        for child in (*commands, owner):
            child.kill()
            child.communicate()
        own_world.cleaned()
    assert [command.returncode for command in commands] == [1, 1], texts
    assert f"podbot: the sandbox {name} ended while its command was running: {end.said}" in texts[0]
    (error,) = events(texts[1], "SandboxDied")
    causes = (end.cause,) if end.cause else ("removed", "not_running")
    assert error["fields"]["cause"] in causes, error
    (ended,) = found
    # The library says of a container that somebody else removed that it does not exist.
    assert isinstance(ended, ContainerNotFound if not end.cause else ()) or (
        getattr(ended, "cause", None) in (*causes, *end.library)
    ), repr(ended)


def _end_of(stream: CommandStream) -> object:
    """The stream's result, or the error with which it ended."""
    try:
        list(stream)
    except PodbotError as exc:
        return exc
    return stream.result
