"""The library's front door against an engine in memory: typed values, nothing printed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import podbot
from podbot.engine.endpoint import Endpoint
from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.errors import (
    AmbiguousName,
    ContainerNotFound,
    IllegalCombination,
    ImageNotFound,
    MachineNotReady,
    NotOurs,
    RemoveFailed,
    SandboxDied,
    SocketNotFound,
    StartFailed,
)
from podbot.events import Event
from podbot.places import runtime_root
from podbot.session.directory import session_directory
from podbot.session.flags import STOPPING, flagged
from podbot.session.record import SessionRecord, write_record
from podbot.testing import IMAGE, STDOUT, ExecPeer, FakeEngine, ScriptedExec
from tests.driver import FakeDriver
from tests.engine.podman.test_machine_checks import USER
from tests.session.plans import Place, container, in_state, labels, made
from tests.shell.real import run as real_command
from tests.waiting import HANG, wait_until

SILENT = podbot.ExecIO(None, None, None)


class Closable(FakeEngine):
    """Counts how often it was closed."""

    closed = 0

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def engine(driver: FakeDriver) -> Closable:
    driver.engine = made = Closable()
    return made


def configured(place: Place, **overrides: object) -> podbot.AppConfig:
    values = {
        "image": IMAGE,
        "workspace.source": "host_mount",
        "workspace.host_path": place.workspace,
        "agent.kind": "custom",
        "agent.command": "my-agent",
    }
    named = {name.replace("__", "."): value for name, value in overrides.items()}
    return podbot.load_config(podbot.LoadOptions(overrides=values | named, environ={"HOME": place.base}))


def environ(place: Place) -> dict[str, str]:
    return {"HOME": place.base, "PATH": os.environ["PATH"], **place.environ}


REQUEST = podbot.LaunchRequest(name="mine", trusted_workspace=True)


def test_plan_decides_and_touches_nothing(engine: Closable, place: Place) -> None:
    plan = podbot.plan(configured(place), REQUEST, environ=environ(place))
    assert plan.sandbox.session == "mine"
    assert plan.agent.command.command == ("my-agent",)
    assert plan.sandbox.runtime_dir == place.directory("mine")
    assert plan.sandbox.workspace is not None
    assert plan.sandbox.workspace.source == place.workspace
    assert engine.calls == []
    assert not os.path.exists(place.runtime)
    assert podbot.describe(plan)


def test_run(engine: Closable, place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    engine.on("my-agent", ScriptedExec(stdout=b"discarded", code=3))
    result = podbot.run(configured(place), REQUEST, io=SILENT, environ=environ(place), emit=place.events.append)
    assert (result.session, result.status, result.kept) == ("mine", podbot.ExecStatus(3), False)
    # A slow machine may not scan within the time that a session waits for it.
    assert (result.guard is None) is ("guard.incomplete" in place.kinds())
    assert result.guard is None or result.guard.findings == ()
    assert engine.by_name == {}
    assert engine.closed == 1
    assert "container.removed" in place.kinds()
    assert tuple(capfd.readouterr()) == ("", ""), "the library never prints"


def test_run_is_ended_from_another_thread(engine: Closable, place: Place) -> None:
    wake = podbot.Wake()

    def agent(io: ExecPeer) -> int:
        wake.post(podbot.Signal(signal.SIGTERM))
        io.ended.wait(10)
        return 0

    engine.on("my-agent", agent)
    result = podbot.run(configured(place), REQUEST, io=SILENT, wake=wake, environ=environ(place))
    assert result.status == podbot.ExecStatus(143, signal.SIGTERM)
    wake.close()


def test_run_without_its_image(engine: Closable, place: Place) -> None:
    with pytest.raises(ImageNotFound) as caught:
        podbot.run(configured(place, image="localhost/none:1"), REQUEST, io=SILENT, environ=environ(place))
    assert caught.value.image == "localhost/none:1"
    assert engine.closed == 1


SLIRP = 'slirp4netns failed: "open("/dev/net/tun"): Permission denied"'


def run_a_sandbox(config: podbot.AppConfig, place: Place) -> None:
    with podbot.sandbox(config, REQUEST, environ=environ(place)):
        pass


def run_an_agent(config: podbot.AppConfig, place: Place) -> None:
    podbot.run(config, REQUEST, io=SILENT, environ=environ(place))


@pytest.mark.parametrize("call", [run_an_agent, run_a_sandbox])
@pytest.mark.parametrize(
    ("facts", "network", "error"),
    [
        (replace(USER, dev_net_tun=False), "default", MachineNotReady),
        (replace(USER, dev_net_tun=False), "none", StartFailed),
        (USER, "default", StartFailed),
    ],
)
def test_a_container_that_this_machine_cannot_start(
    *,
    engine: Closable,
    driver: FakeDriver,
    place: Place,
    facts: PodmanFacts,
    network: str,
    error: type[Exception],
    call: Callable[[podbot.AppConfig, Place], None],
) -> None:
    """Issue 16.2: the engine's own words name a program and no remedy."""
    driver.runs_on(facts)
    driver.locate = lambda _config, _environ: None
    engine.rootless = True
    engine.fail("start", StartFailed(container="mine", reason=SLIRP))
    with pytest.raises(error) as caught:
        call(configured(place, sandbox__network=network), place)
    said = str(caught.value)
    assert ("slirp4netns failed" in said) is (error is StartFailed)
    assert ("sudo modprobe tun && sudo chmod 0666 /dev/net/tun" in said) is (error is MachineNotReady)


def test_a_sandbox_without_an_agent(engine: Closable, place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    engine.on("tool", ScriptedExec(stdout=b"done", code=3))
    with podbot.sandbox(configured(place), REQUEST, environ=environ(place), emit=place.events.append) as box:
        result = box.run(["tool"], capture=True)
        assert (box.name, result.exit_code, result.stdout) == ("mine", 3, "done")
    assert engine.by_name == {}
    assert engine.closed == 2  # of the sandbox itself, and of its commands
    assert "agent.start" not in place.kinds()
    with pytest.raises(ContainerNotFound):
        box.run(["tool"])
    assert tuple(capfd.readouterr()) == ("", ""), "the library never prints"


def test_a_sandbox_on_a_directory(engine: Closable, place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    """With the configuration of the user, and a home directory that is the environment's."""
    engine.on("tool", ScriptedExec(stdout=b"\xff"))
    given = {**environ(place), "PODBOT_IMAGE": IMAGE}
    name = f"~/{os.path.relpath(place.workspace, place.base)}"
    with podbot.sandbox(name, network="none", overrides={"sandbox.memory": "1g"}, environ=given) as box:
        spec = engine.by_name[box.name].spec
        assert (spec.network, spec.limits.memory) == ("none", 1 << 30)
        assert place.workspace in [mount.source for mount in spec.mounts]
        assert (box.root, box.run_bytes(["tool"]).stdout) == (place.workspace, b"\xff")
    with podbot.sandbox(None, environ=given) as box:
        assert place.workspace not in [mount.source for mount in engine.by_name[box.name].spec.mounts]
    assert engine.by_name == {}
    assert tuple(capfd.readouterr()) == ("", "")


def test_the_two_forms_of_a_sandbox_are_not_mixed(engine: Closable, place: Place) -> None:
    call: Any = podbot.sandbox
    with pytest.raises(TypeError, match="needs a request"), call(configured(place)):
        pass
    with pytest.raises(TypeError, match=r"^network: not with a conf"), call(configured(place), REQUEST, network="none"):
        pass
    with pytest.raises(TypeError, match=r"^overrides: not with a conf"), call(configured(place), REQUEST, overrides={}):
        pass
    with pytest.raises(TypeError, match="needs a configuration, not '~/src'"), call("~/src", REQUEST):
        pass
    assert engine.calls == []


def test_a_sandbox_for_asyncio(engine: Closable, place: Place) -> None:
    engine.on("tool", ScriptedExec(stdout=b"done"))
    engine.on("/bin/sh", real_command)
    given = {**environ(place), "PODBOT_IMAGE": IMAGE}

    async def work() -> None:
        async with podbot.async_sandbox(place.workspace, environ=given) as box:
            results = await asyncio.gather(*(box.run(["tool"], capture=True) for _ in range(5)))
            assert [result.stdout for result in results] == ["done"] * 5
            assert (await box.run_bytes(["tool"])).stdout == b"done"
            assert await box.is_running()
            assert (box.root, box.image) == (place.workspace, IMAGE)
            assert box.name in engine.by_name
            shell = box.shell
            assert shell is box.shell
            assert (await shell.execute("echo 1")).stdout == "1\n"
            async with shell:  # ends its threads
                pass
            assert shell.closed
            async with box.open_shell(root="/tmp") as other, asyncio.TaskGroup() as group:
                asked = [group.create_task(found.execute("pwd")) for found in (box.shell, other)]
            assert [task.result().stdout for task in asked] == [f"{place.workspace}\n", "/tmp\n"]
            again = box.shell
        assert again.closed
        with pytest.raises(ZeroDivisionError):
            async with podbot.async_sandbox(place.workspace, environ=given):
                raise ZeroDivisionError

    asyncio.run(work())
    assert engine.by_name == {}


def test_a_sandbox_for_asyncio_that_cannot_be_removed(engine: Closable, place: Place) -> None:
    """The error is raised, and no thread of its shell is left."""
    engine.on("/bin/sh", real_command)
    shells = []

    async def work() -> None:
        async with podbot.async_sandbox(place.workspace, environ={**environ(place), "PODBOT_IMAGE": IMAGE}) as box:
            shells.append(box.shell)
            assert (await box.shell.execute("echo 1")).stdout == "1\n"
            engine.fail("remove", RemoveFailed(container=box.name, reason="it is busy"), times=None)

    with pytest.raises(RemoveFailed):
        asyncio.run(work())
    assert [shell.closed for shell in shells] == [True]


def test_the_removal_of_a_sandbox_blocks_no_event_loop(engine: Closable, place: Place) -> None:
    """However often the task is cancelled, which ends after the removal."""
    removing, may_end = threading.Event(), threading.Event()
    remove, waited = engine.remove, []

    def slow(container: str, *, kill: bool = True) -> None:
        removing.set()
        waited.append(may_end.wait(HANG))
        remove(container, kill=kill)

    shells = []

    async def work() -> None:
        async with podbot.async_sandbox(place.workspace, environ={**environ(place), "PODBOT_IMAGE": IMAGE}) as box:
            shells.append(box.shell)
            engine.remove = slow  # type: ignore[method-assign]

    async def cancelled() -> None:
        task = asyncio.create_task(work())
        assert await asyncio.to_thread(removing.wait, HANG)
        for _ in range(4):
            task.cancel()
            for _ in range(5):  # the task gets each of them
                await asyncio.sleep(0)
        assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert engine.by_name == {}

    asyncio.run(cancelled())
    assert set(waited) == {True}
    assert [shell.closed for shell in shells] == [True]


def test_a_cancelled_command_is_terminated_and_the_sandbox_removed(engine: Closable, place: Place) -> None:
    given = {**environ(place), "PODBOT_IMAGE": IMAGE}
    started, ended = threading.Event(), threading.Event()

    def tool(peer: ExecPeer) -> int:
        started.set()
        if peer.ended.wait(60):
            ended.set()
        return 0

    engine.on("tool", tool)

    async def work() -> None:
        async with podbot.async_sandbox(place.workspace, environ=given) as box:
            running = asyncio.create_task(box.run(["tool"]))
            queued = asyncio.create_task(box.run(["tool"]))
            assert await asyncio.to_thread(started.wait, 60)
            queued.cancel()
            running.cancel()
            assert await asyncio.gather(queued, running, return_exceptions=True)
            assert (queued.cancelled(), running.cancelled()) == (True, True)
            assert await asyncio.to_thread(ended.wait, 60)
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(work())
    assert engine.by_name == {}


def environments_of_children(word: str) -> list[list[bytes]]:
    """Of this process's children with ``word`` in their command lines."""
    return [
        Path(f"/proc/{name}/environ").read_bytes().split(b"\0")
        for name in Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="utf-8").split()
        if word.encode() in Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
    ]


def test_what_waits_for_a_kill_gets_the_caller_s_environment(engine: Closable, place: Place) -> None:
    """It decides in which directories the helper finds the session."""
    path = place.directory("mine")
    given = {**environ(place), "TZ": "Antarctica/Troll", "A_KEY": "canary"}
    with podbot.sandbox(configured(place), REQUEST, environ=given):
        # The kernel shows the command line of a new process some time after Popen has returned.
        wait_until(lambda: environments_of_children(path), "the process that waits")
        waiting = environments_of_children(path)
    assert len(waiting) == 1
    assert b"TZ=Antarctica/Troll" in waiting[0]
    assert b"A_KEY=canary" not in waiting[0]


def test_a_sandbox_is_removed_when_its_block_fails(engine: Closable, place: Place) -> None:
    with pytest.raises(ZeroDivisionError), podbot.sandbox(configured(place), REQUEST, environ=environ(place)):
        raise ZeroDivisionError
    assert (engine.by_name, engine.closed) == ({}, 1)


def test_a_sandbox_of_an_image_that_does_not_exist(engine: Closable, place: Place) -> None:
    nowhere = configured(place, image="localhost/none:1")
    with pytest.raises(ImageNotFound), podbot.sandbox(nowhere, REQUEST, environ=environ(place)):
        pass
    assert engine.by_name == {}


@pytest.mark.parametrize("origin", ["private", "named"])
def test_run_of_a_user_who_can_have_no_image(driver: FakeDriver, place: Place, origin: str) -> None:
    """The cause is this user's only on an engine that podbot runs for the user."""
    facts = PodmanFacts(uid=1000, programs={"newuidmap": "/n", "newgidmap": "/n"}, subids=False)
    driver.runs_on(facts)
    named = Endpoint("unix", "flag", path="/run/e.sock") if origin == "named" else None
    driver.locate = lambda _config, _environ: named
    with pytest.raises(ImageNotFound) as caught:
        podbot.run(configured(place, image="localhost/none:1"), REQUEST, io=SILENT, environ=environ(place))
    assert ("no range for you" in caught.value.remedy) is (origin == "private")
    assert "Build podbot's own image" in caught.value.remedy


def test_exec(engine: Closable, place: Place) -> None:
    engine.start(engine.create(container("any", marks={})))

    def cat(io: ExecPeer) -> int:
        io.write(STDOUT, io.read_all() + b"!")
        return 4

    engine.on("it", cat)
    ends = [os.pipe(), os.pipe()]
    os.write(ends[0][1], b"hello")
    os.close(ends[0][1])
    io = podbot.ExecIO(stdin=ends[0][0], stdout=ends[1][1], stderr=None)
    spec = podbot.ExecSpec(command=("it",))
    assert podbot.exec_(configured(place), "any", spec, io=io, environ=environ(place)).code == 4
    assert os.read(ends[1][0], 100) == b"hello!"
    for fd in (ends[0][0], *ends[1]):
        os.close(fd)
    assert engine.closed == 1


@pytest.mark.parametrize(
    ("during", "cause", "elsewhere"),
    [
        ("stop", "stopped", False),
        ("removal", "session_ended", False),
        ("nothing", "not_running", False),
        ("stop", "not_running", True),
        ("removal", "not_running", True),
    ],
)
def test_exec_says_who_ended_the_sandbox(
    engine: Closable, place: Place, during: str, cause: str, *, elsewhere: bool
) -> None:
    """``elsewhere``: the session of that name is another engine's."""
    engine.start(engine.create(container("any", marks={})))
    path = os.path.join(runtime_root(environ(place)), "any")
    os.makedirs(path, 0o700)
    write_record(path, SessionRecord("any", "unix:///other" if elsewhere else engine.endpoint, "detached"))
    with contextlib.ExitStack() as stack:

        def dies(_io: ExecPeer) -> int:
            if during == "stop":
                stack.enter_context(flagged(path, STOPPING))
            elif during == "removal":
                shutil.rmtree(path)
            engine.die("any")
            return 0

        engine.on("it", dies)
        with pytest.raises(SandboxDied) as caught:
            podbot.exec_(configured(place), "any", podbot.ExecSpec(("it",)), io=SILENT, environ=environ(place))
    assert caught.value.cause == cause


@pytest.mark.parametrize(("code", "looks"), [(0, 0), (3, 1)])
def test_exec_asks_the_engine_for_the_disk_only_after_a_command_that_failed(
    engine: Closable, place: Place, code: int, looks: int
) -> None:
    engine.start(engine.create(container("any", marks={})))
    engine.on("it", lambda _: code)
    podbot.exec_(configured(place), "any", podbot.ExecSpec(command=("it",)), io=SILENT, environ=environ(place))
    began = max(number for number, call in enumerate(engine.calls) if call[0] == "exec_start")
    assert [call[0] for call in engine.calls[began:]].count("inspect") == looks


def test_exec_in_no_container(engine: Closable, place: Place) -> None:
    with pytest.raises(ContainerNotFound):
        podbot.exec_(configured(place), "no", podbot.ExecSpec(command=("x",)), io=SILENT, environ=environ(place))
    assert engine.closed == 1


def test_exec_finds_a_session_by_the_beginning_of_its_name_without_a_directory_here(
    engine: Closable, place: Place
) -> None:
    """After a reboot, a kept session has none."""
    made(engine, "shop-a", "shop-b", "tools", "podbot-notes-1a2b3c")
    engine.on("it", lambda _: 4)
    spec = podbot.ExecSpec(command=("it",))
    for enough in ("too", "notes"):
        assert podbot.exec_(configured(place), enough, spec, io=SILENT, environ=environ(place)).code == 4
    with pytest.raises(AmbiguousName, match="shop-a, shop-b"):
        podbot.exec_(configured(place), "shop-", spec, io=SILENT, environ=environ(place))


@pytest.mark.parametrize("name", ["", ".", "..", ".engine", "a/..", "a/.engine"])
def test_exec_leaves_no_file_next_to_the_sessions(engine: Closable, place: Place, name: str) -> None:
    variables = environ(place)
    root = os.path.join(variables["XDG_RUNTIME_DIR"], "podbot")
    os.makedirs(os.path.join(root, ".engine"), mode=0o700)
    before = list(os.walk(variables["XDG_RUNTIME_DIR"]))
    with pytest.raises(ContainerNotFound):
        podbot.exec_(configured(place), name, podbot.ExecSpec(command=("x",)), io=SILENT, environ=variables)
    assert list(os.walk(variables["XDG_RUNTIME_DIR"])) == before


def test_ps_and_stop(engine: Closable, place: Place) -> None:
    for name in ("a", "b", "c"):
        engine.start(engine.create(container(name, marks=labels(name))))
    engine.start(engine.create(container("stranger", marks={})))
    config, variables = configured(place), environ(place)
    assert [info.session for info in podbot.ps(config, environ=variables)] == ["c", "b", "a"]
    with pytest.raises(NotOurs):
        podbot.stop(config, ["a", "stranger"], environ=variables)
    assert podbot.stop(config, ["b"], environ=variables, emit=place.events.append) == [
        podbot.StopResult("b", removed=True)
    ]
    assert place.events == [
        Event("info", "session.stop", "stopping b", {"session": "b", "next": ""}),
        Event("info", "session.stopped", "stopped b", {"session": "b"}),
    ]
    assert {result.session for result in podbot.stop(config, all_sessions=True, environ=variables)} == {"a", "c"}
    assert list(engine.by_name) == ["stranger"]
    assert podbot.ps(config, include_stopped=True, environ=variables) == []
    assert engine.closed == 5


@pytest.mark.parametrize(
    "call",
    [
        lambda config, variables, emit: podbot.ps(config, environ=variables, emit=emit),
        lambda config, variables, emit: podbot.exec_(
            config, "x", podbot.ExecSpec(command=("true",)), io=SILENT, environ=variables, emit=emit
        ),
        lambda config, variables, emit: podbot.run(config, REQUEST, io=SILENT, environ=variables, emit=emit),
    ],
)
def test_every_call_reports_what_a_killed_podbot_left(
    engine: Closable, place: Place, call: Callable[..., object]
) -> None:
    for name in ("left", "x"):
        engine.start(engine.create(container(name, marks=labels(name))))
    with session_directory(place.directory("left"), engine.endpoint) as directory:
        in_state(directory, "running")
    engine.on("my-agent", ScriptedExec())
    call(configured(place), environ(place), place.events.append)
    assert [event.fields["session"] for event in place.events if event.kind == "session.orphan"] == ["left"]


def test_open_engine_is_checked_and_closed(place: Place) -> None:
    config = configured(place, engine_socket=os.path.join(place.base, "none.sock"))
    with pytest.raises(SocketNotFound), podbot.open_engine(config, environ=environ(place)):
        pytest.fail("there is no engine")


def test_open_engine_gives_the_port(engine: Closable, place: Place) -> None:
    with podbot.open_engine(configured(place)) as opened:
        assert opened.ping().version == "4.3.1"
    assert engine.closed == 1
    with pytest.raises(ValueError, match="x"), podbot.open_engine(configured(place)):
        raise ValueError("x")
    assert engine.closed == 2


def test_an_agents_words_are_not_for_a_sandbox_without_an_agent(engine: Closable, place: Place) -> None:
    request = podbot.LaunchRequest(words=("make",), trusted_workspace=True)
    with (
        pytest.raises(IllegalCombination, match="starts no command"),
        podbot.sandbox(configured(place), request, environ=environ(place)),
    ):
        pass
    assert engine.calls == []


def test_the_plan_of_the_call_that_it_names(place: Place) -> None:
    assert podbot.plan(configured(place), REQUEST, environ=environ(place)).subcommand == "run"
    hosted = podbot.plan(configured(place), REQUEST, subcommand="host", environ=environ(place))
    assert hosted.subcommand == "host"
    with pytest.raises(IllegalCombination, match="neither run nor host"):
        podbot.plan(configured(place), REQUEST, subcommand="sandbox", environ=environ(place))  # type: ignore[arg-type]
