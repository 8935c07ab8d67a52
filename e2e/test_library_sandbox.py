"""``podbot.sandbox``: a sandbox without an agent, on a real engine."""

from __future__ import annotations

import os
import threading

import pytest

import podbot
from e2e.harness import World, running, wait_for

REQUEST = podbot.LaunchRequest(subcommand="sandbox", trusted_workspace=True)


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
        # Confined as any session, and nothing of an agent's is in it.
        assert "NoNewPrivs:\t1" in box.run(["cat", "/proc/self/status"], capture=True).stdout
        assert box.run(["sh", "-c", "ls -A /root/.claude /root/.codex"]).exit_code != 0
        name = box.name
    assert not world.container(name)
    with open(os.path.join(workspace, "made"), encoding="utf-8") as file:
        assert file.read() == "made\n"
    assert not [event for event in events if event.kind.startswith(("credentials.", "agent."))]
    assert tuple(capfd.readouterr()) == ("", "")


def test_a_missing_program_is_a_result_and_a_time_that_is_up_ends_all_of_it(world: World) -> None:
    with podbot.sandbox(config(world, world.workspace()), REQUEST, environ=world.env) as box:
        assert box.run(["no-such-program"], capture=True).exit_code == 127
        result = box.run(["sh", "-c", "echo begun; sleep 48091 & sleep 48092"], capture=True, timeout=2)
        assert (result.exit_code, result.timed_out, result.stdout) == (-1, True, "begun\n")
        wait_for(lambda: not running("sleep 48091") and not running("sleep 48092"), what="both to end")
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
            box.run(["sleep", "48093"], timeout=60)
        assert not box.is_running()
    stopper.join()
    assert any("Makefile" in event.message for event in events if event.kind.startswith("guard."))
    assert not world.container(name)
