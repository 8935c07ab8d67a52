"""The life of workspaces on a real engine: what ends them, and what of them stays."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from e2e.harness import ROOTLESS, TAG, World, processes, running, wait_for
from e2e.shells import image_with
from e2e.suites import Tools, ident
from podbot.errors import WorkspaceClosed, WorkspaceInUse
from podbot.events import Event
from podbot.suites import LazyWorkspace, PodmanBackend, WorkspaceSettings

_CHILD = """
import os, sys
from podbot.suites import LazyWorkspace, PodmanBackend
workspace = LazyWorkspace(PodmanBackend(os.environ), ident=sys.argv[1])
workspace.files.write(["file"], "text")
workspace.shell.start(["sleep", sys.argv[2]])
print("ready", flush=True)
sys.stdin.read()
"""


class Place:
    """An operator, and the workspaces of one test."""

    def __init__(self, world: World, stack: contextlib.ExitStack) -> None:
        self.world, self._stack = world, stack
        self.backend = PodmanBackend(world.sealed_env)
        self.events: list[Event] = []

    def open(self, name: str = "", *, keep: bool = False, **settings: Any) -> Tools:
        """A workspace; without a name, a new one."""
        made = LazyWorkspace(
            self.backend, ident=name or ident(), settings=WorkspaceSettings(**settings), keep=keep,
            emit=self.events.append,
        )  # fmt: skip
        return Tools(self._stack.enter_context(made))

    def left(self) -> list[str]:
        """The directories of workspaces, the containers and the sessions that there are."""
        with contextlib.suppress(FileNotFoundError):
            return [*os.listdir(self.backend.overlays()), *self.world.managed(), *self.world.sessions()]
        return [*self.world.managed(), *self.world.sessions()]


@pytest.fixture
def place(world: World) -> Iterator[Place]:
    """Fails the test if it leaves a container, a file, a process or a thread behind."""
    with contextlib.ExitStack() as stack:
        made = Place(world, stack)
        before = set(made.left())  # of a test that failed
        monitors = set(_of(world))  # of containers of another test
        yield made
    world.settled()
    wait_for(lambda: set(made.left()) <= before, what=f"everything to be removed: {made.left()}")
    wait_for(lambda: set(_of(world)) <= monitors, what=f"the processes to end: {_of(world)}")
    assert [thread.name for thread in threading.enumerate() if thread.name.startswith("podbot-limits")] == []


def _of(world: World) -> list[str]:
    """The monitors of this operator's containers.

    Not those of commands that went through the engine, because a guest did not start in time on a busy machine: Podman
    ends these five minutes after the command.
    """
    own = [words for _, words in processes() if f"{world.root}/" in words and "conmon" in words]
    return [words for words in own if "--exec-attach" not in words]


def died(call: Callable[[], object], tools: Tools) -> str:
    """The message of a call that says that the workspace ended."""
    result = call()
    assert not result.success, result  # type: ignore[attr-defined]
    message: str = result.message  # type: ignore[attr-defined]
    assert f"the workspace {tools.workspace.name} ended: " in message
    assert "The next call starts it again, with the same files" in message
    return message


# --- the end of a container ------------------------------------------------------------------------

AT_ONCE = 3 if ROOTLESS else 10
ENDS = {
    "killed": ("kill",),
    "stopped": ("stop", "-t", "0"),
    "removed": ("rm", "-f", "-t", "0"),
}


@pytest.mark.parametrize(("how", "tool"), [("killed", "ls"), ("stopped", "shell_execute"), ("removed", "ls")])
def test_a_container_that_ends_between_calls(place: Place, how: str, tool: str) -> None:
    tools = place.open()
    tools.value("write_file", file_path="kept", content="text")
    arguments = {} if tool == "ls" else {"command": ["cat", "kept"]}
    tools.value(tool, **arguments)
    assert place.world.podman(*ENDS[how], tools.workspace.name).returncode == 0
    died(lambda: tools.call(tool, **arguments), tools)
    assert tools.workspace.state is None
    assert tools.value("read_file", file_path="kept").content == "text"
    assert tools.run("cat kept") == "text"


@pytest.mark.parametrize("how", ["killed", "removed"])
def test_a_container_that_ends_during_a_call(place: Place, how: str) -> None:
    tools = place.open()
    tools.run("echo text > kept")
    with ThreadPoolExecutor(2) as pool:
        command = pool.submit(tools.call, "shell_execute", command=["sleep", "600"], timeout_seconds=100)
        tools.value("write_file", file_path="evil", content="a" * 60 + "!")
        search = pool.submit(tools.call, "grep", pattern="(a+)+$")
        wait_for(lambda: tools.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '").count("sleep 600"), what="the command")
        time.sleep(0.2)
        assert place.world.podman(*ENDS[how], tools.workspace.name).returncode == 0
        died(command.result, tools)
        died(search.result, tools)
    assert tools.paths("ls") == ["evil", "kept"]


def test_a_paused_container_is_an_error_and_goes_on_afterwards(place: Place) -> None:
    tools = place.open()
    tools.run("echo text > kept")
    job = tools.workspace.shell.start(["sleep", "600"])
    paused = place.world.podman("pause", tools.workspace.name)
    if paused.returncode != 0:
        assert ROOTLESS, paused.stderr  # on cgroup v1 only root can pause
        return
    try:
        assert "paused" in tools.problem("shell_execute", command=["true"], timeout_seconds=1)
        with ThreadPoolExecutor(1) as pool:
            listed = pool.submit(tools.paths, "ls")
            time.sleep(1)
            assert not listed.done()
            place.world.podman("unpause", tools.workspace.name)
            assert listed.result() == ["kept"]  # it waited, for 30 s at most
    finally:
        place.world.podman("unpause", tools.workspace.name)
    assert tools.run("cat kept") == "text\n"
    assert job.poll().running, "it is the same container"


def test_stop_all_removes_the_container_of_a_live_workspace(place: Place) -> None:
    tools = place.open()
    tools.run("echo text > kept")
    done = place.world.podbot("stop", "--all", "--time", "0")
    assert done.returncode == 0, done.stderr
    assert tools.workspace.name in done.stdout + done.stderr
    assert not place.world.container(tools.workspace.name)
    died(lambda: tools.call("ls"), tools)
    assert tools.run("cat kept") == "text\n"
    assert place.world.container(tools.workspace.name)["State"] == "running"


def test_the_engines_service_may_be_killed(place: Place) -> None:
    tools = place.open()
    tools.run("echo text > kept")
    for pid in place.world.service_pids():
        os.kill(pid, signal.SIGKILL)
    assert tools.run("cat kept") == "text\n"
    assert tools.paths("ls") == ["kept"]
    tools.workspace.stop()
    assert tools.value("read_file", file_path="kept").content == "text"
    for pid in place.world.service_pids():
        os.kill(pid, signal.SIGKILL)
    tools.workspace.close()
    # It was killed before it could be asked to remove the container, which ends by itself; a helper process removes it.
    wait_for(lambda: not place.left(), what="the clean-up", seconds=60)


# --- the end of a process --------------------------------------------------------------------------


def start_child(world: World, name: str, mark: str) -> subprocess.Popen[bytes]:
    """A Python process with a workspace in which ``sleep MARK`` runs."""
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD, name, mark], env=world.sealed_env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"ready\n"
    return child


def test_what_a_killed_process_left_is_removed(place: Place) -> None:
    """Its container ends by itself; its files are removed by the next start, also by one of the same name."""
    name = ident()
    with start_child(place.world, name, f"47321.{TAG}") as child:
        files = Path(place.backend.overlays(), name)
        assert (files / "workspace" / "file").exists()
        with pytest.raises(WorkspaceInUse):
            place.open(name).workspace.start()
        child.kill()
    again = place.open(name)
    assert again.paths("ls") == []
    began = again.workspace.start().started_at
    wait_for(lambda: os.listdir(place.backend.overlays()) == [name], what="what was left to be removed")
    wait_for(lambda: not running(f"sleep 47321.{TAG}"), what="the command of the killed process to end")
    # The helper process of the killed one may look at the session for a minute more, and sees that it is another's.
    assert again.paths("ls") == []
    other = ident()
    with start_child(place.world, other, f"47323.{TAG}") as child:
        child.kill()
    wait_for(lambda: place.world.managed() == [again.workspace.name], what="the container to end by itself")
    assert again.workspace.start().started_at == began
    assert sorted(os.listdir(place.backend.overlays())) == sorted([name, other])
    place.open().workspace.start()
    wait_for(lambda: other not in os.listdir(place.backend.overlays()), what="what was left to be removed")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, 0], ids=["TERM", "INT", "exit"])
def test_what_a_process_that_ends_leaves(place: Place, number: int) -> None:
    """At its exit it removes everything; after a signal that its program does not handle, the next start does."""
    name = ident()
    child = start_child(place.world, name, f"47322.{TAG}")
    with child:
        if number:
            child.send_signal(number)
        else:
            child.communicate(b"")
        child.wait(60)
    wait_for(lambda: not place.world.managed() and not place.world.sessions(), what="the container to end")
    place.world.cleaned()
    assert Path(place.backend.overlays(), name).exists() == (number == signal.SIGTERM)
    if number == signal.SIGTERM:
        place.open().workspace.start()


# --- many at once ----------------------------------------------------------------------------------


def test_two_threads_use_every_tool_of_one_workspace(place: Place) -> None:
    tools = place.open()
    wrong: list[Exception] = []

    def use(name: str) -> None:
        try:
            for number in range(15):
                path = f"{name}/{number}"
                tools.value("write_file", file_path=path, content=f"{path} one\n")
                tools.value("edit_file", file_path=path, old_string="one", new_string="two")
                assert tools.value("read_file", file_path=path).content == f"{path} two"
                assert tools.run(f"cat {path}") == f"{path} two\n"
                assert tools.paths("grep", pattern=f"^{path} two$", path=name) == [path]
                assert tools.paths("glob", pattern=f"**/{number}", path=name) == [path]
                assert len(tools.paths("ls", path=name)) == 1
                assert tools.value("evaluate_python", code=f"print(open('{path}').read())").stdout == f"{path} two\n\n"
                assert tools.value("rm", path=path).entries == 1
        except Exception as error:  # noqa: BLE001 - shown by the assertion
            wrong.append(error)

    threads = [threading.Thread(target=use, args=(name,)) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_ten_workspaces_at_once(place: Place) -> None:
    """Three for an ordinary user, whose engine copies the image for each container of these tests: 10 s of a processor.

    It would copy it once if the image lay in the test operator's own store.
    """
    every = [place.open() for _ in range(AT_ONCE)]

    def use(tools: Tools) -> str:
        tools.value("write_file", file_path="name", content=tools.workspace.name)
        return tools.run("cat name; ls")

    with ThreadPoolExecutor(AT_ONCE) as pool:
        said = list(pool.map(use, every))
        assert said == [f"{tools.workspace.name}name\n" for tools in every]
        assert len(place.world.managed()) == AT_ONCE
        list(pool.map(lambda tools: tools.workspace.close(), every))
    assert place.left() == []


# --- the end of a workspace ------------------------------------------------------------------------


def test_closing_removes_everything(place: Place) -> None:
    tools = place.open()
    tools.run("mkdir -p a/b; echo x > a/b/c; chmod 0 a/b; ln -s / root; mkfifo f; touch $'new\\nline' -- -x")
    directory, name = tools.workspace.directory, tools.workspace.name
    tools.workspace.close()
    tools.workspace.close()
    assert not os.path.exists(os.path.dirname(directory))
    assert not place.world.container(name)
    assert "is closed" in tools.problem("ls")
    with pytest.raises(WorkspaceClosed):
        tools.workspace.start()


def test_closing_ends_the_calls_of_other_threads(place: Place) -> None:
    tools = place.open()
    tools.run("true")
    with ThreadPoolExecutor(1) as pool:
        command = pool.submit(tools.call, "shell_execute", command=["sleep", "600"], timeout_seconds=100)
        wait_for(lambda: tools.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '").count("sleep 600"), what="the command")
        tools.workspace.close()
        assert "it was closed" in command.result().message


def test_what_is_kept_is_continued(place: Place) -> None:
    name = ident()
    tools = place.open(name, keep=True)
    tools.run("echo text > kept; echo lost > /tmp/lost")
    tools.workspace.close()
    assert not place.world.managed()
    place.open().workspace.start()  # which removes what killed processes left
    assert place.open(name).run("cat kept; ls /tmp") == "text\n"


def test_a_workspace_that_fails_its_check_is_a_failure_of_each_call_and_leaves_no_container(place: Place) -> None:
    with image_with(place.world, f"probe-{TAG}", "RUN ln -sf /bin/false /bin/sh") as image:
        tools = place.open(image=image)
        for _ in range(2):
            for tool, arguments in (("ls", {}), ("shell_execute", {"command": ["true"]})):
                said = tools.failure(tool, **arguments)
                assert "/workspace cannot be written in it (status 1)" in said
                assert tools.workspace.name in said
            assert tools.workspace.state is None
            assert not place.world.container(tools.workspace.name)
        tools.workspace.close()  # before its image is removed


def test_an_idle_container_ends_and_starts_again(place: Place) -> None:
    tools = place.open(idle_seconds=0.5)
    tools.run("echo text > kept")
    wait_for(lambda: tools.workspace.state is None, what="the idle container to end")
    wait_for(lambda: not place.world.managed(), what="its removal")
    assert tools.value("read_file", file_path="kept").content == "text"


def test_an_uptime_limit_ends_a_running_command(place: Place) -> None:
    tools = place.open(uptime_seconds=2)
    tools.workspace.start()
    message = died(lambda: tools.call("shell_execute", command=["sleep", "600"], timeout_seconds=100), tools)
    assert "its time limit of 2 s" in message
    assert not place.world.managed()
    assert tools.run("true") == ""
