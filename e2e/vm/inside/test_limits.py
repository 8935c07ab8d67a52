"""Limits that are enforced under delegated cgroup v2, for an ordinary user (issue 11.3)."""

from __future__ import annotations

import os
import subprocess

from e2e.harness import PODBOT
from e2e.vm.inside.operator import agent, eventually, podbot, run, said, workspace


def test_a_sandbox_sees_its_limits() -> None:
    flags = {"PODBOT_SANDBOX_MEMORY": "256m", "PODBOT_SANDBOX_PIDS": "64", "PODBOT_SANDBOX_CPUS": "0.5"}
    script = "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max /sys/fs/cgroup/cpu.max"
    assert agent("sh", "-c", script, env=flags).splitlines() == [str(256 << 20), "64", "50000 100000"]


def test_the_memory_limit_is_enforced() -> None:
    with workspace() as path:
        words = ("run", "-w", path, "--agent", "custom", "--", "python3", "-c", "bytearray(400 << 20); print('had it')")
        done = podbot(*words, env={"PODBOT_SANDBOX_MEMORY": "96m"}, check=False)
    assert (done.returncode, done.stdout) == (137, "")
    assert "does not enforce" not in done.stderr


def test_the_pids_limit_is_enforced() -> None:
    script = """if True:
        import os, time
        count = 0
        try:
            while count < 200:
                if os.fork() == 0:
                    time.sleep(60)
                    os._exit(0)
                count += 1
        except OSError:
            pass
        print(count)"""
    assert 10 < int(agent("python3", "-c", script, env={"PODBOT_SANDBOX_PIDS": "40"})) < 40


def test_the_cpu_limit_is_enforced() -> None:
    """The kernel throttled it: it needed a whole processor, and had half of one."""
    busy = "import time\nend = time.monotonic() + 3\nwhile time.monotonic() < end: pass"
    script = f"python3 -c '{busy}'; cat /sys/fs/cgroup/cpu.stat"
    said = agent("sh", "-c", script, env={"PODBOT_SANDBOX_CPUS": "0.5"})
    found = dict(line.split() for line in said.splitlines())
    assert int(found["nr_throttled"]) > 0


def test_limits_are_in_the_users_own_slice() -> None:
    """The container is below the user's own manager, to which systemd delegated the controllers."""
    name = "vm-slice"
    with workspace() as path:
        words = ("run", "--workspace", path, "--agent", "custom", "--name", name, "--", "sleep", "600")
        child = subprocess.Popen([*PODBOT, *words], stdin=subprocess.DEVNULL)
        try:
            eventually(lambda: run(["podman", "exec", name, "pidof", "sleep"]).returncode == 0, "it to run")
            pid = said("podman", "inspect", "--format", "{{.State.Pid}}", name)
            with open(f"/proc/{pid}/cgroup", encoding="ascii") as file:
                group = file.read()
        finally:
            podbot("stop", "--rm", "--time", "0", name)
            child.wait(60)
    assert group.startswith(f"0::/user.slice/user-{os.getuid()}.slice/user@{os.getuid()}.service/")
