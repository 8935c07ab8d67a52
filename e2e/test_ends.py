"""Ends that nobody plans: killed podbots, engines that go away."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

from e2e.harness import ROOTLESS, World, running, wait_for


def test_kill_9_is_reported_by_the_next_command_and_stop_all_removes_it(own_world: World) -> None:
    child, _ = own_world.start_agent("sleep 41077", "--name", "e2e-killed")
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    listed = own_world.podbot("ps", "--json")
    assert "e2e-killed" in listed.stderr
    assert "left behind" in listed.stderr
    assert [(item["session"], item["orphan"]) for item in json.loads(listed.stdout)] == [("e2e-killed", True)]
    assert own_world.podbot("stop", "--all").returncode == 0
    assert not own_world.container("e2e-killed")
    assert not own_world.sessions()
    assert not running("sleep 41077")
    assert "left behind" not in own_world.podbot("ps").stderr


def test_the_name_of_a_killed_session_is_free_again_after_stop(own_world: World) -> None:
    child, _ = own_world.start_agent("sleep 600", "--name", "e2e-again")
    os.kill(child.pid, signal.SIGKILL)
    child.communicate()
    again = own_world.agent("true", flags=("--name", "e2e-again"))
    assert again.returncode == 1
    assert "podbot stop e2e-again" in again.stderr
    own_world.podbot("stop", "e2e-again", check=True)
    assert not own_world.container("e2e-again")


def test_the_engine_goes_away_in_mid_session(own_world: World) -> None:
    child, _ = own_world.start_agent("sleep 42077", "--name", "e2e-gone")
    for pid in own_world.service_pids():
        os.kill(pid, signal.SIGKILL)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 1, err
    assert out == b""
    assert err.count(b"went away") == 1, err
    assert b"Traceback" not in err
    # The next command starts a new service, says what was left, and can remove it.
    assert "e2e-gone" in own_world.podbot("ps").stderr
    own_world.podbot("stop", "--all", check=True)
    assert not own_world.container("e2e-gone")


def test_a_session_keeps_the_private_service_alive_and_it_ends_when_idle(own_world: World) -> None:
    short = "import os, podbot.engine.podman.private.service as s; s.IDLE_SECONDS = 3; s.ensure_service(os.environ)"
    subprocess.run([sys.executable, "-c", short], env=own_world.env, check=True)
    service = own_world.service_pids()  # a rootless one is two: Podman starts itself again in its namespace
    assert len(service) == 1 + ROOTLESS
    child, _ = own_world.start_agent("sleep 7; exit 5", "--name", "e2e-idle")
    time.sleep(5)
    assert own_world.service_pids() == service
    child.communicate(timeout=60)
    assert child.returncode == 5
    wait_for(lambda: not own_world.service_pids(), what="the idle service to end", seconds=20)


def test_killing_podbot_exec_ends_only_the_command(world: World) -> None:
    with world.session() as name:
        for number in (signal.SIGTERM, signal.SIGHUP):
            child = world.start("exec", name, "--", "sh", "-c", "sleep 43077 & sleep 43078")
            wait_for(lambda: running("sleep 43078"), what="the command", child=child)
            child.send_signal(number)
            child.communicate(timeout=20)
            assert child.returncode == 128 + number
            assert not running("sleep 43077")
            assert not running("sleep 43078")
        assert world.container(name)["State"] == "running"
