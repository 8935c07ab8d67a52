"""The permissions and restrictions of a sandbox, read back from the engine and from inside."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from typing import Any

import pytest

from e2e.harness import World, wait_for


def inside(world: World, script: str, *flags: str, **env: str) -> str:
    done = world.agent("sh", "-c", script, flags=flags, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def capabilities(text: str) -> int:
    (line,) = [line for line in text.splitlines() if line.startswith("CapEff")]
    return int(line.split()[1], 16)


SYS_ADMIN = 1 << 21
FUSE = os.access("/dev/fuse", os.R_OK | os.W_OK)  # an ordinary user often may not open it


def test_hardened_is_the_default(world: World) -> None:
    status = inside(world, "cat /proc/self/status; ls -d /dev/fuse; cat /proc/1/comm")
    assert "NoNewPrivs:\t1" in status
    assert not capabilities(status) & SYS_ADMIN
    assert "/dev/fuse" not in status


def test_minimal_adds_exactly_sys_admin(world: World) -> None:
    hardened = capabilities(inside(world, "cat /proc/self/status"))
    status = inside(world, "cat /proc/self/status", PODBOT_SANDBOX_PROFILE="minimal")
    assert capabilities(status) == (hardened | SYS_ADMIN if FUSE else hardened)
    assert "NoNewPrivs:\t0" in status


def test_privileged_and_its_notice(world: World) -> None:
    done = world.agent("cat", "/proc/self/status", env={"PODBOT_SANDBOX_PRIVILEGED": "true"})
    assert capabilities(done.stdout) & SYS_ADMIN
    assert "privileged" in done.stderr


def test_no_fuse_when_switched_off(world: World) -> None:
    off = {"PODBOT_SANDBOX_MOUNT_DEV_FUSE": "false", "PODBOT_SANDBOX_PROFILE": "minimal"}
    assert inside(world, "test -e /dev/fuse || echo none", **off) == "none\n"


def test_the_init_reaps_orphans(world: World) -> None:
    """PID 1 reaps orphans: without it they would stay as zombies until the pids limit is reached."""
    script = "for i in 1 2 3; do sh -c 'sleep 0.1 &'; done; sleep 0.6; cat /proc/[0-9]*/stat | awk '$3==\"Z\"' | wc -l"
    assert inside(world, script) == "0\n"


def test_network_none_has_loopback_only(world: World) -> None:
    assert inside(world, "ls /sys/class/net") == "lo\n"


@pytest.mark.parametrize(
    "where", ["/run/podman", "/var/run/docker.sock", "/run/user", "/var/lib/containers/storage/overlay"]
)
def test_nothing_of_the_hosts_engine_is_inside(world: World, where: str) -> None:
    script = f"find {where} -type s 2>/dev/null; test -d {where} && ls {where} 2>/dev/null | wc -l || echo 0"
    assert inside(world, script).strip() == "0"


def test_the_hosts_environment_and_home_are_not_passed(world: World) -> None:
    seen = inside(
        world, "env; ls -a /root", CANARY_OF_THE_HOST="canary-7d1", HTTP_PROXY="http://canary-7d1@127.0.0.1:9"
    )
    assert "canary-7d1" not in seen


def test_the_memory_limit_is_enforced(world: World) -> None:
    done = world.agent(
        "python3", "-c", "x = bytearray(400 << 20); print('allocated')", env={"PODBOT_SANDBOX_MEMORY": "96m"}
    )
    assert unenforced(done.stderr, "sandbox.memory") or (done.returncode == 137 and "allocated" not in done.stdout)


def test_the_pids_limit_is_enforced(world: World) -> None:
    script = """if True:
        import os, time
        count = 0
        try:
            while count < 200:
                if os.fork() == 0:
                    time.sleep(20)
                    os._exit(0)
                count += 1
        except OSError:
            print(count)"""
    done = world.agent("python3", "-c", script, env={"PODBOT_SANDBOX_PIDS": "40"})
    assert unenforced(done.stderr, "sandbox.pids") or int(done.stdout) < 40


def test_the_cpu_limit_is_enforced(world: World) -> None:
    """Half a core: two busy seconds of wall time give about one second of CPU time, never two."""
    script = "import time\nend=time.monotonic()+2\nwhile time.monotonic()<end: pass\nprint(time.process_time())"
    done = world.agent("python3", "-c", script, env={"PODBOT_SANDBOX_CPUS": "0.5"})
    assert unenforced(done.stderr, "sandbox.cpus") or float(done.stdout) < 1.5


def unenforced(stderr: str, key: str) -> bool:
    """podbot warned that this engine does not enforce the limit (rootless with cgroup v1)."""
    return "does not enforce" in stderr and f"{key} =" in stderr


def test_an_oci_runtime_that_is_not_applied_is_an_error(world: World) -> None:
    done = world.agent("true", env={"PODBOT_SANDBOX_RUNTIME": "no-such-runtime"})
    assert done.returncode == 1
    assert "no-such-runtime" in done.stderr


def test_labels(world: World) -> None:
    with world.session() as name:
        labels: dict[str, Any] = world.inspect(name)["Config"]["Labels"]
    assert labels["io.podbot.managed"] == "true"
    assert labels["io.podbot.session"] == name
    assert labels["io.podbot.agent"] == "custom"
    assert labels["io.podbot.mode"] == "podbot"
    assert labels["io.podbot.workspace"] == "host_mount"
    assert labels["io.podbot.path"].startswith(world.root)
    assert {"io.podbot.created", "io.podbot.version"} <= labels.keys()


def refused(world: World, path: str, why: str, **env: str) -> None:
    done = world.podbot("run", "--workspace", path, "--agent", "custom", "--", "true", env=env)
    assert done.returncode == 2, done.stderr
    assert path in done.stderr or os.path.realpath(path) in done.stderr
    assert why in done.stderr, done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2


LEASE = """
import fcntl, signal, time
signal.signal(signal.SIGURG, signal.SIG_IGN)
held = []
for path in ("/run/podbot/gitconfig", "shared"):
    file = open(path, "rb")
    fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        held.append(path)
    except OSError as exc:  # a seccomp profile may refuse it
        held.append(str(exc.errno))
    globals()[path] = file
open("up", "w").write(" ".join(held))
time.sleep(600)
"""


def test_a_lease_does_not_block_another_session(world: World) -> None:
    """Issue 12.2: the next start waited for 46 s, and so did git in every other sandbox."""
    workspace = world.workspace()
    with open(os.path.join(workspace, "shared"), "wb"):
        pass
    with world.session("python3", "-c", LEASE, workspace=workspace) as name:
        wait_for(lambda: os.path.exists(os.path.join(workspace, "up")), what="the lease")
        before = {mount["Source"] for mount in world.inspect(name)["Mounts"]}
        done = world.agent("git", "config", "--list", "--system", workspace=workspace, timeout=40)
        assert "safe.directory" in done.stdout
        with world.session(workspace=workspace) as other:
            after = {mount["Source"] for mount in world.inspect(other)["Mounts"]}
        assert before & after == {workspace}


@pytest.mark.parametrize("path", ["/", "/etc", "/proc", "/sys/fs", "/dev", "/run", "/var/run", "/boot", "/usr"])
def test_system_directories_are_refused(world: World, path: str) -> None:
    refused(world, path, "refused to mount")


@pytest.mark.parametrize(
    "path", ["", ".ssh", ".aws", ".gnupg", ".config/gh", ".kube", ".docker", ".claude/x", ".codex"]
)
def test_the_home_and_its_credentials_are_refused(world: World, path: str) -> None:
    home = world.env["HOME"]
    where = os.path.join(home, path).rstrip("/")
    os.makedirs(where, exist_ok=True)
    refused(world, where, "refused to mount")
    with contextlib.suppress(OSError):  # what stays in .claude would be copied into sessions of later tests
        while where != home:
            os.rmdir(where)
            where = os.path.dirname(where)


def test_an_ancestor_of_the_home_and_the_runtime_directory_are_refused(world: World) -> None:
    refused(world, world.root, "refused to mount")
    refused(world, world.runtime, "refused to mount")


def test_the_directory_of_the_engines_socket_is_refused(own_world: World) -> None:
    place = own_world.workspace("socket")
    path = os.path.join(place, "s.sock")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        refused(own_world, place, "socket", PODBOT_ENGINE_SOCKET=f"unix://{path}")


def test_a_link_is_checked_by_its_target(world: World) -> None:
    link = os.path.join(world.workspace(), "innocent")
    os.symlink("/etc", link)
    refused(world, link, "refused to mount")


def test_configured_paths_need_an_allowed_root(own_world: World) -> None:
    inner, outer = own_world.workspace("in"), own_world.workspace("out")
    link = os.path.join(inner, "escape")
    os.symlink(outer, link)
    common = {"PODBOT_WORKSPACE_SOURCE": "host_mount", "PODBOT_AGENT_KIND": "custom", "PODBOT_AGENT_COMMAND": "true"}

    def run(path: str, roots: str) -> tuple[int, str]:
        env = {**common, "PODBOT_WORKSPACE_HOST_PATH": path, "PODBOT_WORKSPACE_ALLOWED_ROOTS": roots}
        done = own_world.podbot("run", env=env)
        return done.returncode, done.stderr

    assert run(inner, inner)[0] == 0
    assert run(outer, inner)[0] == 2
    code, words = run(link, inner)
    assert code == 2
    assert "PODBOT_WORKSPACE_HOST_PATH" in words
    assert run(inner, "")[0] == 2
    assert run(inner + "-not", inner)[0] == 2  # containment is checked by component, not by prefix


def test_a_configuration_in_the_working_directory_is_never_read(world: World) -> None:
    workspace = world.workspace()
    for name in ("config.toml", "podbot.toml", ".podbot.toml", "podbot/config.toml", ".config/podbot/config.toml"):
        path = os.path.join(workspace, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write("[sandbox]\nprivileged = true\n")
    done = world.podbot(
        "run", "--workspace", ".", "--agent", "custom", "--dry-run", "--json", "--", "true", cwd=workspace
    )
    assert json.loads(done.stdout)["container"]["security"]["privileged"] is False


def test_an_explicit_container_path_is_used(world: World) -> None:
    script = "pwd; ls -d /workspace/*; ls $0"
    workspace = world.workspace()
    done = world.agent("sh", "-c", script, workspace, env={"PODBOT_WORKSPACE_CONTAINER_PATH": "/code"})
    assert (done.stdout, done.returncode) == ("/code\n", 2), done.stderr


def test_read_only_workspace(world: World) -> None:
    done = world.agent("touch", "x", env={"PODBOT_WORKSPACE_READ_ONLY": "1"})
    assert done.returncode == 1
    assert "Read-only" in done.stderr
