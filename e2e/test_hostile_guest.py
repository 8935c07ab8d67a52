"""An agent that is root in its sandbox attacks the guest that runs podbot's commands, below `exec`, `run` and `host`.

The lies that a guest could tell are in tests/guest/lies.py.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from e2e.harness import World, wait_for
from e2e.host.pipe import pipe

INSIDE = Path(__file__).parent / "host" / "inside" / "attack_guest.py"
ATTACKS = ("stop", "kill", "files", "corrupt", "overwrite", "flood")
BY_DEBUGGER = ("corrupt", "overwrite", "flood")  # which Yama may forbid
YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
each_attack = pytest.mark.parametrize("attack", ATTACKS)


def is_silent(attack: str, place: str) -> bool:
    """Wait for the attack; returns whether podbot may learn nothing of it. No file of the guest can be changed."""
    wait_for(lambda: os.path.exists(place), what="the attack")
    reached = int(Path(place).read_text(encoding="ascii"))
    forbidden = attack in BY_DEBUGGER and YAMA.exists() and YAMA.read_text(encoding="ascii") != "0\n"
    assert (reached > 0) is (attack != "files" and not forbidden)
    # Memory that is overwritten while the guest waits may be missed only when it is asked for something.
    return attack in ("stop", "files", "overwrite") or forbidden


def is_clear(out: bytes, err: bytes, *, silent: bool = False) -> None:
    """Nothing raw and nothing of the attacker's was printed, and at most one error, in podbot's words."""
    assert out == b""
    assert b"owned" not in err
    assert b"\x1b" not in err
    lines = err.decode().splitlines()
    errors = [line for line in lines if "does not enforce sandbox." not in line]  # of a rootless engine on cgroup v1
    assert len(errors) == 1 or (silent and not errors), err
    assert all(line.startswith("podbot: ") for line in lines), err


@each_attack
def test_exec(world: World, attack: str) -> None:
    workspace = world.workspace()
    place = os.path.join(workspace, "reached")
    with world.session(workspace=workspace) as name:
        child = world.start("exec", name, "--", "python3", "-c", INSIDE.read_text(encoding="utf-8"), attack, place)
        silent = is_silent(attack, place)
        if silent:
            child.send_signal(signal.SIGTERM)
        out, err = child.communicate(timeout=60)
        assert child.returncode in ((1, 143) if silent else (1,))
        is_clear(out, err, silent=child.returncode == 143)
        # The engine runs the next command, or the sandbox has ended with its guest.
        after = world.podbot("exec", name, "--", "echo", "more", timeout=60)
        if attack in ("stop", "files") or after.returncode == 0:
            assert (after.returncode, after.stdout, after.stderr) == (0, "more\n", "")
        else:
            assert after.stdout in ("", "more\n")  # it may be running when the sandbox ends
            is_clear(b"", after.stderr.encode())


@each_attack
def test_run(world: World, attack: str) -> None:
    workspace = world.workspace()
    place = os.path.join(workspace, "reached")
    words = ("python3", "-c", INSIDE.read_text(encoding="utf-8"), attack, place)
    child = world.start("run", "--quiet", "--workspace", workspace, "--agent", "custom", "--", *words)
    silent = is_silent(attack, place)
    if silent:
        child.send_signal(signal.SIGTERM)
    out, err = child.communicate(timeout=60)
    assert child.returncode in ((1, 143) if silent else (1,))
    is_clear(out, err, silent=child.returncode == 143)
    assert not [name for name in world.managed() if os.path.basename(workspace) in name]


@each_attack
def test_host(world: World, attack: str) -> None:
    with pipe(world, "puppet", flags=("--quiet",)) as host:
        host.ask("session/list")
        before = len(host.out)
        place = os.path.join(host.workspace, "reached")
        line = f"exec python3 /e2e/host/{INSIDE.name} {attack} {place}"
        host.send({"jsonrpc": "2.0", "id": 1, "method": "_e2e/shell", "params": {"line": line}})
        silent = is_silent(attack, place)
        if silent:
            host.hang_up()
        assert host.end(60) in ((0, 1) if silent else (1,))
        host.frames()  # all of stdout is frames
        is_clear(bytes(host.out[before:]), bytes(host.err), silent=silent)
        wait_for(lambda: host.name not in world.managed(), what="the sandbox to be removed", seconds=60)
