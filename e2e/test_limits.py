"""What a session's limits prevent, shown by bounded attempts; and the one warning where an engine enforces none."""

from __future__ import annotations

import json
import os
import resource
import time
import uuid
from typing import Any

import pytest

import podbot
from e2e.harness import ROOTLESS, World, processes, small_disk, wait_for
from e2e.host.pipe import pipe
from podbot.machine import machine_memory

REQUEST = podbot.LaunchRequest(trusted_workspace=True)
SMALL = {"PODBOT_SANDBOX_MEMORY": "128m", "PODBOT_SANDBOX_PIDS": "100"}


@pytest.fixture(scope="module")
def enforced(shared_world: World) -> bool:
    """Whether limits are enforced here: not on a rootless engine with cgroup v1."""
    done = shared_world.agent("true", check=True)
    assert done.stderr.count("does not enforce") in (0, 1), "one warning for all"
    return "does not enforce" not in done.stderr


def assert_reported(world: World) -> None:
    """podbot's reaction where limits are not enforced. The attempt is not made there: nothing would stop it."""
    done = world.agent("true", env=SMALL, check=True)
    (line,) = [line for line in done.stderr.splitlines() if "does not enforce" in line]
    assert "sandbox.memory = 128m" in line
    assert "sandbox.pids = 100" in line
    assert "a session can exhaust this machine" in line


def config(world: World, workspace: str, **keys: object) -> podbot.AppConfig:
    given = {"workspace.source": "host_mount", "workspace.host_path": workspace, **keys}
    return podbot.load_config(podbot.LoadOptions(environ=world.env, overrides=given))


def events(world: World, kind: str, name: str, *words: str) -> list[dict[str, Any]]:
    """What `podbot exec` of a command reports of this kind, as JSON."""
    lines = world.podbot("--log-format", "json", "exec", name, "--", *words).stderr.splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{")]
    return [event for event in found if event["kind"] == kind]


def test_the_defaults_are_shown_and_set(world: World, enforced: bool) -> None:
    shown = json.loads(world.podbot("config", "show", "--origin", "--json", check=True).stdout)
    assert shown["sandbox.memory"] == {"value": "50%", "origin": "default", "detail": ""}
    assert shown["sandbox.pids"] == {"value": 2048, "origin": "default", "detail": ""}
    plan = json.loads(world.agent("true", flags=("--dry-run", "--json"), check=True).stdout)["container"]["limits"]
    files = min(65_536, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
    by_default = ["memory", "pids", "nofile"]
    expected = {"memory": machine_memory() // 2, "cpus": None, "pids": 2048, "nofile": files, "by_default": by_default}
    assert plan == expected
    assert enforced or "sandbox.nofile" not in world.agent("true").stderr, "this one needs no cgroup"
    if enforced:
        with world.session() as name:
            found = world.inspect(name)["HostConfig"]
        assert (found["Memory"], found["PidsLimit"]) == (plan["memory"], 2048)


def test_shared_memory_has_the_size_of_its_key(world: World) -> None:
    """Issue 29.21: Chromium crashes in the 64 MB of an engine's default."""
    size = ("df", "--output=size", "-B1", "/dev/shm")
    assert world.agent(*size, check=True).stdout.split()[-1] == str(1 << 30)
    assert world.agent(*size, env={"PODBOT_SANDBOX_SHM": "256m"}, check=True).stdout.split()[-1] == str(256 << 20)


def test_half_a_gigabyte_of_shared_memory_can_be_mapped_by_default(world: World) -> None:
    """The size alone says nothing about the limit of memory, of which it is a part."""
    script = """if True:
        import mmap
        with open("/dev/shm/x", "w+b") as file:
            file.truncate(512 << 20)
            mapped = mmap.mmap(file.fileno(), 0)
            for offset in range(0, 512 << 20, 4096): mapped[offset] = 1
            print(sum(mapped[offset] for offset in range(0, 512 << 20, 4096)))"""
    done = world.agent("python3", "-c", script)
    assert (done.returncode, done.stdout) == (0, f"{(512 << 20) // 4096}\n"), done.stderr


def test_a_process_cannot_open_more_files_than_the_limit(world: World) -> None:
    """Also rootless: the kernel enforces this limit, without a cgroup (issue 12.4)."""
    count = "import os\ntry:\n while 1: last = os.dup(0)\nexcept OSError: print(last + 1)"
    done = world.agent("python3", "-c", count, env={"PODBOT_SANDBOX_NOFILE": "512"}, check=True)
    assert done.stdout.strip() == "512"
    script = "ulimit -Sn; ulimit -Hn; ulimit -Hn 1000000 || echo refused"
    lines = world.agent("bash", "-c", script, check=True).stdout.split()
    files = str(min(65_536, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    assert lines == [files, files, "refused"]


def test_one_warning_where_no_limit_is_enforced(world: World, enforced: bool) -> None:
    done = world.agent("true", check=True)
    lines = [line for line in done.stderr.splitlines() if "does not enforce" in line]
    assert len(lines) == (0 if enforced else 1)
    assert enforced or ("sandbox.memory = " in lines[0] and "sandbox.pids = 2048" in lines[0])


def test_limits_can_be_removed(world: World, enforced: bool) -> None:
    script = "cd /sys/fs/cgroup; cat pids.max memory.max || cat pids/pids.max memory/memory.limit_in_bytes"
    env = {"PODBOT_SANDBOX_MEMORY": "none", "PODBOT_SANDBOX_PIDS": "0"}
    done = world.agent("sh", "-c", script, env=env)
    assert "does not enforce" not in done.stderr
    if enforced:  # elsewhere the cgroup of the sandbox is not the one that these files show
        pids, memory = done.stdout.split()[:2]
        assert pids == "max"
        assert memory == "max" or int(memory) > machine_memory()


def test_a_fork_bomb_ends_at_the_limit_of_processes(world: World, enforced: bool) -> None:
    if not enforced:
        assert_reported(world)
        return
    mark = uuid.uuid4().hex
    bomb = f"b() {{ b | b & }}; b 2>/dev/null; sleep 20 # {mark}"
    workspace = world.workspace()
    child = world.start("run", "-w", workspace, "--agent", "custom", "--", "bash", "-c", f"touch up; {bomb}", env=SMALL)
    try:
        wait_for(lambda: os.path.exists(os.path.join(workspace, "up")), what="the agent", child=child)
        found = [0]

        def many() -> bool:
            found.append(sum(mark in command for _, command in processes()))
            return found[-1] > 20

        wait_for(many, what="the bomb to go off", child=child)
        end = time.monotonic() + 3  # it goes on meanwhile
        while time.monotonic() < end:
            many()
    finally:
        child.terminate()
        child.communicate(timeout=60)
    assert max(found) <= 100


MEMORY = {
    "a process": "python3 -c 'bytearray(400 << 20)'",
    "a tmpfs in a user namespace": "unshare -Urm sh -c 'mount -t tmpfs none /mnt && head -c 400m /dev/zero > /mnt/x'",
    "/dev/shm": "head -c 400m /dev/zero > /dev/shm/x",
    "the tmpfs of /sys/fs/cgroup": "head -c 400m /dev/zero > /sys/fs/cgroup/x",
    "/dev": "head -c 400m /dev/zero > /dev/x",
    "shared memory without a file": """python3 -c 'if True:
        import mmap, os
        file = os.memfd_create("x")
        os.truncate(file, 400 << 20)
        mapped = mmap.mmap(file, 0)
        for offset in range(0, 400 << 20, 4096): mapped[offset] = 1'""",
    "pipes": """python3 -c 'if True:
        import os
        children = [pid for _ in range(3) if (pid := os.fork())]  # with it eight processes, of 8,000 pipes at most
        for _ in range(8000):
            try: os.write(os.pipe2(os.O_NONBLOCK)[1], bytes(65536))
            except BlockingIOError: pass
        for pid in children:
            if os.waitpid(pid, 0)[1]: os._exit(1)'""",
    "sockets": """python3 -c 'if True:
        import socket
        pairs = []
        for _ in range(4000):  # at least 160 KiB each
            one, other = socket.socketpair()
            one.setblocking(False)
            pairs.append((one, other))
            try:
                while True: one.send(bytes(16384))
            except BlockingIOError: pass'""",
}


@pytest.mark.parametrize("attempt", MEMORY)
def test_memory_that_belongs_to_no_process_is_counted(world: World, enforced: bool, attempt: str) -> None:
    if not enforced:
        assert_reported(world)
        return
    done = world.agent("bash", "-c", f"{MEMORY[attempt]} && echo survived", env=SMALL)
    assert done.returncode != 0, done.stdout
    assert "survived" not in done.stdout


def test_low_disk_space_is_reported_at_the_start(own_world: World) -> None:
    """A file system of 100 MB. An ordinary user's test can mount one only where podbot itself does not see it."""
    place = os.path.join(own_world.root, "work", "small")
    os.makedirs(os.path.dirname(place))
    with small_disk(own_world, place, "100m"):
        done = own_world.agent("true", workspace=place, check=True)
        full = own_world.agent("sh", "-c", "head -c 200M /dev/zero > big", workspace=place)
    lines = [line for line in done.stderr.splitlines() if "MB are free on the file system of the workspace" in line]
    assert len(lines) == (0 if ROOTLESS else 1), done.stderr
    assert full.returncode == 1
    assert "the disk is full: 0 MB are free on the file system of the workspace" in full.stderr or ROOTLESS


@pytest.mark.skipif(ROOTLESS, reason="podbot itself would not see the file system, as above")
@pytest.mark.parametrize(
    ("options", "fills", "said"),
    [
        ("100m", "head -c 200M /dev/zero > big", "the disk is full: 0 MB are free on the file system of the workspace"),
        (
            "100m,nr_inodes=200",
            "for number in $(seq 300); do : > $number || exit 1; done",
            "out of inodes: no file can be made on the file system of the workspace",
        ),
    ],
    ids=["space", "inodes"],
)
def test_a_command_that_failed_on_a_full_disk_says_so(own_world: World, options: str, fills: str, said: str) -> None:
    """Issue 29.7, as text, as an event, and in the library's results."""
    place = os.path.join(own_world.root, "work", "full")
    os.makedirs(os.path.dirname(place))
    fill, empties = ("sh", "-c", fills), ("sh", "-c", "rm -f big [0-9]*")
    with small_disk(own_world, place, options):
        with own_world.session(workspace=place) as name:
            done = own_world.podbot("exec", name, "--", *fill)
            assert done.returncode != 0
            assert said in done.stderr
            assert place in done.stderr
            # Nothing is said of a full disk on which nothing has failed.
            assert said not in own_world.podbot("exec", name, "--", "true", check=True).stderr
            (event,) = events(own_world, "disk.full", name, *fill)
            assert (event["level"], event["path"]) == ("warning", place)
            assert (event["inodes"] == 0) is ("inodes" in options)
            with podbot.open_shell(config(own_world, place), name, environ=own_world.env) as shell:
                assert shell.execute(fill).disk_full
                assert not shell.execute(empties).disk_full
                assert not shell.execute(["false"]).disk_full
        with podbot.sandbox(config(own_world, place), REQUEST, environ=own_world.env) as box:
            assert not box.run(["false"]).disk_full
            result = box.run(fill)
            assert (result.success, result.disk_full) == (False, True)
            assert result.summary.endswith("; a disk was full")
            assert box.shell.execute(fill).disk_full
            box.run(empties)
        request = podbot.LaunchRequest(words=fill, trusted_workspace=True)
        made, silent = config(own_world, place, **{"agent.kind": "custom"}), podbot.ExecIO(None, None, None)
        status = podbot.run(made, request, io=silent, environ=own_world.env).status
        assert (status.code != 0, status.disk_full) == (True, True)


def test_a_command_that_the_kernel_killed_for_memory_says_so(world: World, enforced: bool) -> None:
    if not enforced:
        assert_reported(world)
        return
    hog = ("python3", "-c", "bytearray(1 << 30)")
    done = world.agent(*hog, env=SMALL)
    assert done.returncode == 137
    assert "out of memory: the kernel killed the agent; the limit is 128 MiB (sandbox.memory, " in done.stderr
    assert "PODBOT_SANDBOX_MEMORY" in done.stderr.split("out of memory", 1)[1].splitlines()[0], done.stderr
    logged = world.agent(*hog, env=SMALL, flags=("--log-format", "json")).stderr.splitlines()
    found = [json.loads(line) for line in logged if line.startswith("{")]
    (event,) = [event for event in found if event["kind"] == "agent.out_of_memory"]
    assert (event["level"], event["limit"]) == ("warning", 128 << 20)
    assert "out of memory" not in world.agent("sh", "-c", "kill -KILL $$", env=SMALL).stderr
    with world.session(flags=("--memory", "128m")) as name:
        done = world.podbot("exec", name, *hog)
    assert done.returncode == 137
    assert (
        "out of memory: the kernel killed the command; the limit is 128 MiB (sandbox.memory, flag --memory)"
        in done.stderr
    )


FORKS = """
import subprocess, sys
found = []
try:
    while True: found.append(subprocess.Popen(["sleep", "600"]))
except BlockingIOError:
    for one in found: one.kill()
    for one in found: one.wait()
    sys.exit(3)
"""


def test_a_command_that_could_start_no_more_processes_says_so(world: World, enforced: bool) -> None:
    """Issue 29.7, as text, as an event, and in the library's results."""
    if not enforced:
        assert_reported(world)
        return
    forks = ("python3", "-c", FORKS)
    with world.session(env=SMALL) as name:
        done = world.podbot("exec", name, "--", *forks)
        assert done.returncode == 3
        (line,) = [line for line in done.stderr.splitlines() if "out of processes: the kernel refused " in line]
        assert line.endswith("; the limit is 100 (sandbox.pids, variable PODBOT_SANDBOX_PIDS)")
        # Neither an earlier command's event nor one that did no harm is told.
        assert "out of processes" not in world.podbot("exec", name, "--", "false").stderr
        harmless = world.podbot("exec", name, "--", "python3", "-c", FORKS.replace("exit(3)", "exit(0)"), check=True)
        assert "out of processes" not in harmless.stderr
        (event,) = events(world, "exec.out_of_processes", name, *forks)
        assert (event["level"], event["session"], event["limit"]) == ("warning", name, 100)
        assert event["refused"] >= 1
        with podbot.open_shell(config(world, world.workspace()), name, environ=world.env) as shell:
            assert shell.execute(forks).forks_refused >= 1
            assert shell.execute(["false"]).forks_refused == 0
    made = config(world, world.workspace(), **{"sandbox.pids": 100, "agent.kind": "custom"})
    with podbot.sandbox(made, REQUEST, environ=world.env) as box:
        result, other = box.run(forks), box.run(["false"])
    assert (result.exit_code, result.forks_refused >= 1, other.forks_refused) == (3, True, 0)
    assert result.summary.endswith("; the sandbox had as many processes as it may")
    request = podbot.LaunchRequest(words=forks, trusted_workspace=True)
    found: list[podbot.Event] = []
    silent = podbot.ExecIO(None, None, None)
    status = podbot.run(made, request, io=silent, environ=world.env, emit=found.append).status
    assert (status.code, status.forks_refused >= 1) == (3, True)
    (told,) = [event for event in found if event.kind == "sandbox.out_of_processes"]
    assert (told.fields["limit"], told.fields["refused"]) == (100, status.forks_refused)


def test_a_command_for_which_no_process_is_left_says_so(world: World, enforced: bool) -> None:
    if not enforced:
        assert_reported(world)
        return
    stays = FORKS.replace("    for one in found: one.kill()\n", "    open('up', 'w').close()\n")
    workspace = world.workspace()
    with world.session("python3", "-c", stays, workspace=workspace, env=SMALL) as name:
        wait_for(lambda: os.path.exists(os.path.join(workspace, "up")), what="the sandbox to be full")
        done = world.podbot("exec", name, "--", "true")
    assert done.returncode == 126, done.stderr
    assert "out of processes: the kernel refused 1 process in the sandbox; the limit is 100" in done.stderr


def test_what_an_agent_survives_is_reported_at_its_end(world: World, enforced: bool) -> None:
    """A build that is killed, or cannot fork, inside an agent that goes on (issue 29.7)."""
    if not enforced:
        assert_reported(world)
        return
    hog = "python3 -c 'bytearray(1 << 30)' || echo killed; exit 0"
    done = world.agent("sh", "-c", hog, env=SMALL, check=True)
    assert "out of memory: the kernel killed 1 process in the sandbox; the limit is 128 MiB" in done.stderr
    forks = "import subprocess\nwhile True: subprocess.Popen(['sleep', '600'])"
    done = world.agent("python3", "-c", forks, env=SMALL)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if "out of processes: the kernel refused " in line]
    assert "the limit is 100 (sandbox.pids, variable PODBOT_SANDBOX_PIDS)" in line
    with pipe(world, "/bin/sh", "-c", "python3 -c 'bytearray(1 << 30)'; kill -KILL $$", env=SMALL) as host:
        assert host.end(60) == 137
        assert host.said("out of memory: the kernel killed the agent; the limit is 128 MiB (sandbox.memory, ")
