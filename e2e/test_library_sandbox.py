"""``podbot.sandbox``: a sandbox without an agent, on a real engine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading

import pytest

import podbot
from e2e.harness import ROOTLESS, TAG, World, running, wait_for

# At most 200, if nothing limits them.
FORKS = """
import os, signal
pids = []
try:
    while len(pids) < 200:
        pid = os.fork()
        if not pid:
            signal.pause()
        pids.append(pid)
except OSError:
    pass
for pid in pids:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
print(len(pids))
"""
SHOP_TEST = """
import unittest


class Shop(unittest.TestCase):
    def test_it(self):
        open("made", "w").close()
"""
PAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "docs", "how-to", "use-from-python.md")
REQUEST = podbot.LaunchRequest(trusted_workspace=True)


def config(world: World, workspace: str) -> podbot.AppConfig:
    overrides = {"workspace.source": "host_mount", "workspace.host_path": workspace}
    return podbot.load_config(podbot.LoadOptions(environ=world.env, overrides=overrides))


def test_commands_in_a_sandbox_without_an_agent(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    workspace = world.workspace()
    events: list[podbot.Event] = []
    with podbot.sandbox(config(world, workspace), REQUEST, environ=world.env, emit=events.append) as box:
        assert box.is_running()
        assert world.container(box.name)
        assert box.run(["true"]).success
        result = box.run(
            ["sh", "-c", "cat; echo $A; pwd; echo e >&2; exit 7"], capture=True, input="hi ", env={"A": "b"}
        )
        assert (result.exit_code, result.stdout, result.stderr) == (7, f"hi b\n{workspace}\n", "e\n")
        assert result.cwd == workspace
        assert box.run(["pwd"], capture=True, cwd="/usr").stdout == "/usr\n"
        assert box.run(["sh", "-c", "echo made > made"]).success
        # Confined as any session, and without any agent files.
        assert "NoNewPrivs:\t1" in box.run(["cat", "/proc/self/status"], capture=True).stdout
        assert box.run(["sh", "-c", "ls -A /root/.claude /root/.codex"]).exit_code != 0
        name = box.name
    assert not world.container(name)
    with open(os.path.join(workspace, "made"), encoding="utf-8") as file:
        assert file.read() == "made\n"
    assert not [event for event in events if event.kind.startswith(("credentials.", "agent."))]
    assert tuple(capfd.readouterr()) == ("", "")


def test_a_sealed_sandbox_from_inside(own_world: World) -> None:
    """No network, no capability, a read-only root, an unprivileged user; the workspace and /tmp can be written."""
    world, workspace = own_world, own_world.workspace()
    if not ROOTLESS:
        os.chmod(workspace, 0o777)  # a rootless engine maps the user to the operator, this one does not
    world.env.pop("PODBOT_SANDBOX_NETWORK", None)  # it has none by itself
    overrides = {"workspace.source": "host_mount", "workspace.host_path": workspace, "sandbox.profile": "sealed"}
    made = podbot.load_config(podbot.LoadOptions(environ=world.sealed_env, overrides=overrides))
    with podbot.sandbox(made, REQUEST, environ=world.env) as box:

        def said(line: str) -> str:
            return box.run(["sh", "-c", f"({line}) 2>&1"], capture=True).stdout.strip()

        if not ROOTLESS:  # a rootless engine may not be able to set them
            limits = world.inspect(box.name)["HostConfig"]
            assert [limits[key] for key in ("Memory", "MemorySwap", "CpuQuota")] == [1 << 30, 1 << 30, 100_000]
        assert said("id -u; id -g; id -G").split() == ["65534"] * 3
        assert {line.split()[1] for line in said("grep ^Cap /proc/self/status").splitlines()} == {"0" * 16}
        assert said("grep NoNewPrivs /proc/self/status").split()[1] == "1"
        assert said("ls /sys/class/net").split() == ["lo"]
        root_options = said("grep ' / / ' /proc/self/mountinfo || grep ' / ' /proc/self/mounts").split()
        assert any(word.split(",")[0] == "ro" for word in root_options), root_options
        for path in ("/x", "/usr/bin/x", "/run/podbot/guest/x", "/etc/passwd"):
            assert any(word in said(f"echo > {path}") for word in ("Read-only file system", "Permission denied")), path
        assert said("printf '#!/bin/sh\necho run\n' > /tmp/p; chmod +x /tmp/p; /tmp/p") == "run"
        assert said("mkdir /tmp/a && echo 1 > /tmp/a/b && cat /tmp/a/b; echo $HOME") == "1\n/tmp"
        assert "Permission denied" in said("mount -t tmpfs x /tmp") or "must be superuser" in said(
            "mount -t tmpfs x /tmp"
        )
        assert said(f"echo made > {workspace}/made && cat {workspace}/made") == "made"
        assert box.shell.execute(["id", "-u"]).stdout.strip() == "65534"
        root = world.podbot(
            "exec", "--user", "0", box.name, "--", "sh", "-c", "id -u; grep ^Cap /proc/self/status"
        ).stdout
        assert [line.split()[-1] for line in root.splitlines()] == ["0", *["0" * 16] * 5]
    owner = os.stat(os.path.join(workspace, "made")).st_uid
    assert owner == (os.getuid() if ROOTLESS else 65534)


def test_a_sealed_sandbox_limits_its_processes(own_world: World) -> None:
    """Also rootless on cgroup v1, where a program that forks without end would take the machine's last process."""
    world = own_world
    world.env.pop("PODBOT_SANDBOX_NETWORK", None)
    overrides = {"workspace.source": "none", "sandbox.profile": "sealed", "sandbox.pids": 64}
    made = podbot.load_config(podbot.LoadOptions(environ=world.sealed_env, overrides=overrides))
    request = podbot.LaunchRequest()
    with podbot.sandbox(made, request, environ=world.env) as box:
        found = box.run(["python3", "-c", FORKS], capture=True, timeout=60)
        assert 10 < int(found.stdout) < 64, found
        assert box.run(["true"]).success


def test_the_first_example_of_the_page(own_world: World) -> None:
    """As it stands there, and as a program of its own."""
    world = own_world
    shop = os.path.join(world.env["HOME"], "src", "shop")
    os.makedirs(shop)
    with open(os.path.join(shop, "test_shop.py"), "w", encoding="utf-8") as file:
        file.write(SHOP_TEST)
    with open(PAGE, encoding="utf-8") as file:
        example = file.read().split("```python\n")[1].split("```")[0]
    assert example.startswith("import podbot\n")
    done = subprocess.run([sys.executable, "-c", example], env=world.env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.match(
        r"python3 -m unittest: exit code 0 after [\d.]+ s\n--- stderr\n\.\n-{70}\nRan 1 test in", done.stdout
    )
    assert os.path.exists(os.path.join(shop, "made"))


def test_a_missing_program_is_a_result_and_a_timeout_ends_the_whole_command(world: World) -> None:
    with podbot.sandbox(config(world, world.workspace()), REQUEST, environ=world.env) as box:
        assert box.run(["no-such-program"], capture=True).exit_code == 127
        result = box.run(["sh", "-c", f"echo begun; sleep 48091.{TAG} & sleep 48092.{TAG}"], capture=True, timeout=2)
        assert (result.exit_code, result.timed_out, result.stdout) == (-1, True, "begun\n")
        wait_for(lambda: not running(f"sleep 48091.{TAG}") and not running(f"sleep 48092.{TAG}"), what="both to end")
        data = os.urandom(300_000).hex()
        assert box.run(["wc", "-c"], capture=True, input=data).stdout.split() == ["600000"]
        assert len(box.run(["head", "-c", "3000000", "/dev/zero"], capture=True).stdout) == 1 << 20


def test_the_guard_reports_and_stop_ends_it(world: World) -> None:
    workspace = world.workspace()
    events: list[podbot.Event] = []
    with podbot.sandbox(config(world, workspace), REQUEST, environ=world.env, emit=events.append) as box:
        assert box.run(["sh", "-c", "echo 'all:' > Makefile"]).success
        name = box.name
        stopper = threading.Thread(
            target=podbot.stop, args=(config(world, workspace), [name]), kwargs={"environ": world.env, "seconds": 0}
        )
        stopper.start()
        with pytest.raises(podbot.ContainerError):
            box.run(["sleep", f"48093.{TAG}"], timeout=60)
        assert not box.is_running()
    stopper.join()
    assert any("Makefile" in event.message for event in events if event.kind.startswith("guard."))
    assert not world.container(name)


def test_a_sandbox_without_a_workspace_and_a_shell_of_another_user(world: World) -> None:
    made = podbot.load_config(podbot.LoadOptions(environ=world.env, overrides={"workspace.source": "none"}))
    with podbot.sandbox(made, REQUEST, environ=world.env) as box:
        mounts = [mount["Destination"] for mount in world.inspect(box.name)["Mounts"]]
        assert [path for path in mounts if not path.startswith("/run/podbot/")] == []
        with box.open_shell(user="nobody", root="/tmp") as other:
            assert box.shell.execute(["id", "-un"]).stdout == "root\n"
            assert other.execute(["sh", "-c", "id -un; touch mine; stat -c %U mine"]).stdout == "nobody\nnobody\n"
            assert other.execute(["touch", "/root/x"]).exit_code != 0
