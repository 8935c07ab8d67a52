"""Unplanned ends: killed podbots, engines that stop."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import tomli_w

import podbot
from e2e.harness import PODBOT, ROOTLESS, TAG, World, processes, running, wait_for
from e2e.patience import patient
from e2e.shells import image_with
from e2e.test_terms import WITHOUT_PYTHON
from podbot.engine.podman.leftovers import left
from podbot.engine.podman.private.fit import containers_conf
from podbot.engine.podman.private.podman_facts import detect
from podbot.engine.port import Engine
from podbot.errors import ExecFailed
from podbot.exec_spec import ExecSpec


def test_after_kill_9_the_sandbox_ends_by_itself_and_nothing_is_left(own_world: World) -> None:
    agent = f"sleep 41177.{TAG} & setsid sleep 41178.{TAG} & trap 'touch /workspace/left; exit' TERM; wait"
    child, workspace = own_world.start_agent(agent, "--name", "e2e-alone")
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    wait_for(lambda: not own_world.container("e2e-alone"), what="the sandbox to end", seconds=10)
    assert os.path.exists(os.path.join(workspace, "left"))  # the agent got TERM
    assert not running(f"sleep 41177.{TAG}")
    assert not running(f"sleep 41178.{TAG}")
    own_world.cleaned()
    assert not own_world.sessions()
    listed = own_world.podbot("ps", "--json")
    assert (listed.returncode, listed.stdout, listed.stderr) == (0, "[]\n", "")


def test_an_agent_that_ignores_its_end_is_killed(own_world: World) -> None:
    child, _ = own_world.start_agent(f"trap '' TERM HUP INT; sleep 41277.{TAG}", "--name", "e2e-stubborn")
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    # The name is free for the next session, whenever that begins.
    again = own_world.agent("true", flags=("--name", "e2e-stubborn"))
    assert again.returncode == 0, again.stderr
    assert not running(f"sleep 41277.{TAG}")


def test_kill_9_of_a_kept_session_is_reported_and_stop_all_removes_it(own_world: World) -> None:
    child, _ = own_world.start_agent(f"sleep 41077.{TAG}", "--name", "e2e-killed", "--keep")
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    own_world.cleaned()  # the process that waited for podbot's end has seen that the session is to be kept
    listed = own_world.podbot("ps", "--json")
    assert "e2e-killed" in listed.stderr
    assert "left behind" in listed.stderr
    assert [(item["session"], item["orphan"]) for item in json.loads(listed.stdout)] == [("e2e-killed", True)]
    assert own_world.podbot("stop", "--all", "--rm").returncode == 0
    assert not own_world.container("e2e-killed")
    assert not own_world.sessions()
    assert not running(f"sleep 41077.{TAG}")
    assert "left behind" not in own_world.podbot("ps").stderr


def test_the_name_of_a_kept_session_that_was_killed_is_free_again_after_stop(own_world: World) -> None:
    child, _ = own_world.start_agent("sleep 600", "--name", "e2e-again", "--keep")
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    own_world.cleaned()  # until then the process that waited for podbot's end has the session
    again = own_world.agent("true", flags=("--name", "e2e-again"))
    assert again.returncode == 1
    assert "podbot stop e2e-again" in again.stderr
    own_world.podbot("stop", "--rm", "e2e-again", check=True)
    assert not own_world.container("e2e-again")


if not ROOTLESS:  # an ordinary user cannot choose the next process id

    def start_with(pid: int) -> subprocess.Popen[bytes] | None:
        """A process with this id; None if other processes were faster, or have it."""
        for _ in range(200):
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1), encoding="ascii")
            child = subprocess.Popen(["sleep", f"41377.{TAG}"])
            if child.pid == pid:
                return child
            child.kill()
            child.wait()
        return None

    def ended_command(engine: Engine, container: str) -> int:
        """The process id of a command whose end Podman does not know, because its monitor was killed."""
        made = engine.exec_create(container, ExecSpec(("sleep", "600"), stdin=False))
        with contextlib.closing(engine.exec_start(made, tty=False, size=None)):
            wait_for(lambda: engine.exec_inspect(made).pid, what="the command")
            pid = engine.exec_inspect(made).pid
            (monitor,) = [found for found, words in processes() if "conmon" in words and made in words]
            for found in (monitor, pid):
                os.kill(found, signal.SIGKILL)
        wait_for(lambda: not os.path.exists(f"/proc/{pid}"), what="the command to end")
        return pid

    @pytest.mark.parametrize("by", ["engine", "podbot"])
    def test_a_process_with_the_id_of_an_ended_command_is_not_killed(own_world: World, by: str) -> None:
        """Issue 29.9: the removal of a container that runs killed whatever had that id."""
        environ = {**os.environ, **own_world.env}
        config = podbot.load_config(podbot.LoadOptions(environ=environ))
        with own_world.session("sleep", "600") as name, podbot.open_engine(config, environ=environ) as engine:
            stranger = next(filter(None, (start_with(ended_command(engine, name)) for _ in range(20))))
            try:
                if by == "engine":
                    engine.remove(name, kill=True)
                else:
                    own_world.podbot("stop", "--rm", "--time", "0", name, check=True)
                assert stranger.poll() is None
                assert not own_world.container(name)
            finally:
                stranger.kill()
                stranger.wait()


# A rootless engine on cgroup v1 cannot pause a container.
FAULTS = ["monitor"] if ROOTLESS and not os.path.exists("/sys/fs/cgroup/cgroup.controllers") else ["monitor", "paused"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_kept_session_is_stopped_and_started_again_after_a_fault(own_world: World, fault: str) -> None:
    """Podman 4.3 calls a container without its monitor "stopping" for ever, and does not stop a paused one."""
    child, _ = own_world.start_agent("sleep 41377", "--name", "e2e-fault", "--keep")
    found = own_world.inspect("e2e-fault")
    if fault == "monitor":
        os.kill(found["State"]["ConmonPid"], signal.SIGKILL)
    else:
        assert own_world.podman("pause", "e2e-fault").returncode == 0
    assert left(found["Id"])
    stopped = own_world.podbot("stop", "e2e-fault", check=True)
    assert stopped.stdout == "e2e-fault  (kept, stopped)\n"
    assert not left(found["Id"])
    assert own_world.container("e2e-fault")["State"] in {"exited", "stopped"}
    child.communicate(timeout=60)
    own_world.cleaned()
    own_world.podbot("start", "e2e-fault", check=True)
    assert own_world.podbot("exec", "e2e-fault", "echo", "again", check=True).stdout == "again\n"
    own_world.podbot("stop", "--rm", "e2e-fault", check=True)
    assert not left(found["Id"])
    assert not own_world.container("e2e-fault")


@pytest.mark.parametrize("killed", [("ConmonPid",), ("ConmonPid", "Pid")])
@pytest.mark.parametrize("detached", [True, False])
def test_start_is_the_first_command_after_the_monitor_was_killed(
    own_world: World, killed: tuple[str, ...], *, detached: bool
) -> None:
    """Podman 4.3 calls a container running whose monitor and first process were killed, and its start does nothing."""
    child, _ = own_world.start_agent("sleep 41577", "--name", "e2e-first", "--keep")
    if detached:
        own_world.podbot("stop", "e2e-first", check=True)
        child.communicate(timeout=patient(60))
        own_world.podbot("start", "e2e-first", check=True)
    found = own_world.inspect("e2e-first")
    for process in killed:
        os.kill(found["State"][process], signal.SIGKILL)
    if len(killed) == 1:  # all that was in it runs on
        again = own_world.podbot("start", "e2e-first")
        assert again.returncode == 1
        assert "`podbot exec e2e-first` opens a shell in it" in again.stderr
    else:
        if not detached:  # its podbot ends, too
            child.communicate(timeout=patient(60))
        own_world.cleaned()
        assert json.loads(own_world.podbot("ps", "--json", check=True).stdout) == []
        own_world.podbot("start", "e2e-first", check=True)
    assert own_world.podbot("exec", "e2e-first", "echo", "again", check=True).stdout == "again\n"
    listed = json.loads(own_world.podbot("ps", "--json", check=True).stdout)
    assert [(item["session"], item["state"]) for item in listed] == [("e2e-first", "running")]
    own_world.podbot("stop", "--rm", "e2e-first", check=True)
    assert not left(found["Id"])
    assert not own_world.container("e2e-first")
    if not detached:
        child.communicate(timeout=patient(60))


@pytest.mark.parametrize("words", [("stop",), ("stop", "--rm")])
def test_a_session_that_the_engine_has_forgotten_is_stopped(own_world: World, words: tuple[str, ...]) -> None:
    """Podman takes the loss of its temporary directory for a reboot: the agent runs on, and is called created."""
    temporary, conf = os.path.join(own_world.root, "libpod"), os.path.join(own_world.root, "engine.conf")
    settings = tomllib.loads(containers_conf(detect(own_world.env)) or "")
    settings.setdefault("engine", {})["tmp_dir"] = temporary
    with open(conf, "wb") as file:
        tomli_w.dump(settings, file)
    own_world.env["CONTAINERS_CONF"] = conf
    child, _ = own_world.start_agent("sleep 41477", "--name", "e2e-lost", "--keep")
    container = own_world.inspect("e2e-lost")["Id"]
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    own_world.cleaned()
    for pid in own_world.service_pids():
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not own_world.service_pids(), what="the service's end")
    shutil.rmtree(temporary)
    assert left(container)
    listed = own_world.podbot("ps", "--json", check=True)
    assert [(item["session"], item["state"]) for item in json.loads(listed.stdout)] == [("e2e-lost", "running")]
    refused = own_world.podbot("exec", container, "true")  # by the id, so that the engine runs it
    assert f"{ExecFailed.LOST}. `podbot stop " in refused.stderr, refused.stderr
    refused = own_world.podbot("start", "e2e-lost")
    assert "its container is running" in refused.stderr
    assert "`podbot stop e2e-lost` stops it" in refused.stderr
    done = own_world.podbot(*words, "e2e-lost")
    assert done.returncode == 0, done.stderr
    assert not left(container)
    if words == ("stop",):  # the runtime still had its record, and the start failed
        own_world.podbot("start", "e2e-lost", check=True)
        assert own_world.podbot("exec", "e2e-lost", "echo", "again").stdout == "again\n"
        own_world.podbot("stop", "e2e-lost", check=True)
    own_world.podbot("stop", "--rm", "e2e-lost")
    with open("/proc/mounts", encoding="utf-8") as mounts:  # Podman has forgotten its mounts, too
        forgotten = [line.split()[1] for line in mounts if f"{own_world.root}/" in line and container in line]
    for mounted in forgotten:
        subprocess.run(["umount", "--lazy", mounted], check=True)


NEST = """import os
os.mkdir("/var/tmp/deep")
here = os.open("/var/tmp/deep", os.O_RDONLY)
for _ in range(3000):
    os.mkdir("d", dir_fd=here)
    below = os.open("d", os.O_RDONLY, dir_fd=here)
    os.close(here)
    here = below
"""


def few_files(world: World, *words: str) -> subprocess.CompletedProcess[str]:
    """A command that may open fewer files than NEST nests directories; so may the service that it starts."""
    limited = ["prlimit", "--nofile=2048:2048", *words]
    return subprocess.run(
        limited,
        env=world.podman_env(),
        cwd=world.root,
        capture_output=True,
        text=True,
        timeout=patient(120),
        check=False,
    )


def few_files_agent(world: World, *words: str, flags: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    run = ["run", "--workspace", world.workspace(), "--agent", "custom", *flags, "--", *words]
    return few_files(world, *PODBOT, *run)


def test_directories_nested_more_deeply_than_podman_removes_are_removed(own_world: World) -> None:
    """Podman then marks the container's layer, and from then on fails at every look at its images (4.3.1)."""
    done = few_files_agent(own_world, "python3", "-c", NEST, flags=("--name", "e2e-deep"))
    assert (done.returncode, own_world.sessions()) == (0, []), done.stderr
    assert "could not be removed" not in done.stderr
    assert not own_world.container("e2e-deep")
    again = few_files_agent(own_world, "true")
    assert again.returncode == 0, again.stderr
    assert few_files(own_world, "podman", "images").returncode == 0


def test_an_engine_that_such_directories_have_stopped_works_again_at_the_next_command(own_world: World) -> None:
    """Whoever removed the container: here it is podman itself."""
    done = few_files_agent(own_world, "python3", "-c", NEST, flags=("--name", "e2e-deep", "--keep"))
    assert done.returncode == 0, done.stderr
    for words in (("rm", "e2e-deep"), ("images",)):
        assert "too many open files" in few_files(own_world, "podman", *words).stderr
    again = few_files_agent(own_world, "true")
    assert again.returncode == 0, again.stderr
    assert few_files(own_world, "podman", "images").returncode == 0


UNTIL_OVER = "until [ -e over ]; do sleep 0.1; done; echo bye; exit 6"


def service_killed(world: World) -> None:
    pids = world.service_pids()
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    # A podbot may have started another one by then.
    wait_for(lambda: not set(pids) & set(world.service_pids()), what="the service's end")


def test_a_session_does_not_notice_that_podbots_engine_service_was_killed(own_world: World) -> None:
    """The agent runs by the guest; the end of the session starts the service again."""
    child, work = own_world.start_agent(UNTIL_OVER, "--name", "e2e-gone")
    service_killed(own_world)
    assert own_world.podbot("exec", "e2e-gone", "--", "sh", "-c", "exit 7").returncode == 7
    assert not own_world.service_pids()
    Path(work, "over").touch()
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (6, b"bye\n"), err
    assert err.splitlines()[-1] == b"podbot: starting custom in e2e-gone", err
    assert not own_world.container("e2e-gone")
    assert not own_world.sessions()


@pytest.fixture
def bare(own_world: World) -> Iterator[None]:
    """Images without python3, so that the engine runs all commands."""
    with image_with(own_world, "bare", WITHOUT_PYTHON) as own_world.env["PODBOT_IMAGE"]:
        yield


@pytest.mark.usefixtures("bare")
def test_an_agent_that_the_killed_service_ran_is_lost_with_it(own_world: World) -> None:
    """Its output went through the service; the error says so, and nothing of the session is left."""
    child, _ = own_world.start_agent(UNTIL_OVER, "--name", "e2e-gone")
    service_killed(own_world)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 1, err
    assert b"went away: its service ended, and with it the command's streams" in err, err
    assert not own_world.container("e2e-gone")
    assert not own_world.sessions()


@pytest.mark.usefixtures("bare")
def test_a_command_that_the_killed_service_ran_is_ended(own_world: World) -> None:
    with own_world.session() as name:
        child = own_world.start("exec", name, "--", "sh", "-c", f"sleep 43079.{TAG}")
        wait_for(lambda: running(f"sleep 43079.{TAG}"), what="the command", child=child)
        service_killed(own_world)
        _, err = child.communicate(timeout=60)
        assert child.returncode == 1, err
        assert b"went away: its service ended, and with it the command's streams" in err, err
        assert not running(f"sleep 43079.{TAG}")


def test_a_frozen_service_is_named_and_replaced_when_it_was_killed(own_world: World) -> None:
    """Issue 33.11: it was 20 s of silence, and then "podbot needs Podman 4 or later"."""
    own_world.podbot("ps", check=True)
    service = own_world.service_pids()  # two processes of a rootless one
    for pid in service:
        os.kill(pid, signal.SIGSTOP)
    frozen = own_world.podbot("ps")
    assert frozen.returncode == 1
    waiting, error = frozen.stderr.splitlines()
    assert "waiting for the engine at unix://" in waiting
    named = re.search(r"its process (\d+) does not answer. If it stays so, `kill -9 \1` ends it", error)
    assert named is not None, error
    assert int(named[1]) in service
    for pid in service:
        os.kill(pid, signal.SIGKILL)
    own_world.podbot("ps", check=True)
    assert not set(own_world.service_pids()) & set(service)


def test_the_private_service_runs_as_long_as_a_session_and_exits_when_idle(own_world: World) -> None:
    short = "import os, podbot.engine.podman.private.service as s; s.IDLE_SECONDS = 3; s.ensure_service(os.environ)"
    subprocess.run([sys.executable, "-c", short], env=own_world.env, check=True)
    service = own_world.service_pids()  # a rootless one has two processes: Podman starts itself again in its namespace
    assert len(service) == 1 + ROOTLESS
    child, _ = own_world.start_agent("sleep 7; exit 5", "--name", "e2e-idle")
    time.sleep(5)
    assert own_world.service_pids() == service
    child.communicate(timeout=60)
    assert child.returncode == 5
    wait_for(lambda: not own_world.service_pids(), what="the idle service to end", seconds=20)


def test_killing_podbot_exec_ends_only_the_command(world: World) -> None:
    with world.session() as name:
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGKILL):
            child = world.start("exec", name, "--", "sh", "-c", f"sleep 43077.{TAG} & sleep 43078.{TAG}")
            wait_for(lambda: running(f"sleep 43078.{TAG}"), what="the command", child=child)
            child.send_signal(number)
            child.communicate(timeout=20)
            killed = number == signal.SIGKILL
            assert child.returncode == (-number if killed else 128 + number)
            if killed:  # podbot is gone, and the guest ends the command when it sees that
                wait_for(
                    lambda: not running(f"sleep 43077.{TAG}") and not running(f"sleep 43078.{TAG}"),
                    what="the command's end",
                )
            # Both got the signal with their group; on a busy machine one of them may need a moment longer.
            wait_for(
                lambda: not running(f"sleep 43077.{TAG}") and not running(f"sleep 43078.{TAG}"),
                what="the processes' end",
            )
        assert world.container(name)["State"] == "running"
