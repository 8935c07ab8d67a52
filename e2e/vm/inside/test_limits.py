"""Limits that bind under delegated cgroup v2, for an ordinary user (issue 11.3)."""

from __future__ import annotations

from e2e.vm.inside.operator import agent, podbot, workspace


def test_a_sandbox_sees_its_limits() -> None:
    flags = {"PODBOT_SANDBOX_MEMORY": "256m", "PODBOT_SANDBOX_PIDS": "64", "PODBOT_SANDBOX_CPUS": "0.5"}
    script = "cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/pids.max /sys/fs/cgroup/cpu.max"
    assert agent("sh", "-c", script, env=flags).splitlines() == [str(256 << 20), "64", "50000 100000"]


def test_memory_binds() -> None:
    with workspace() as path:
        words = ("run", "-w", path, "--agent", "custom", "--", "python3", "-c", "bytearray(400 << 20); print('had it')")
        done = podbot(*words, env={"PODBOT_SANDBOX_MEMORY": "96m"}, check=False)
    assert (done.returncode, done.stdout) == (137, "")
    assert "does not enforce" not in done.stderr


def test_pids_bind() -> None:
    script = "n=0; while [ $n -lt 100 ]; do sleep 20 & n=$((n+1)); done 2>/dev/null; echo $n"
    with workspace() as path:
        words = ("run", "-w", path, "--agent", "custom", "--", "bash", "-c", f"({script}) 2>&1")
        done = podbot(*words, env={"PODBOT_SANDBOX_PIDS": "40"}, check=False)
    assert "100" not in done.stdout
    assert "does not enforce" not in done.stderr


def test_cpus_bind() -> None:
    """Half a processor: two busy seconds of wall time are about one of processor time."""
    script = "import time\nend=time.monotonic()+4\nwhile time.monotonic()<end: pass\nprint(time.process_time())"
    assert float(agent("python3", "-c", script, env={"PODBOT_SANDBOX_CPUS": "0.5"})) < 3


def test_they_are_the_slice_s_own() -> None:
    """The container lies below the user's own manager, which systemd delegated."""
    with workspace() as path:
        found = podbot("run", "-w", path, "--agent", "custom", "--", "sh", "-c", "cat /proc/self/cgroup")
    assert found.stdout.strip() == "0::/"  # a cgroup namespace of its own
