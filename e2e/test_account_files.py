"""A FIFO in place of /etc/passwd: the engine opens it before it runs a command, and then hangs for everybody."""

from __future__ import annotations

import os
import signal

import pytest

import podbot
from e2e.bench_sessions import guest_of
from e2e.harness import World
from podbot.errors import ExecFailed
from podbot.launch.types import ExecSpec

PLANT = "rm /etc/{0}; mkfifo /etc/{0}"


def works(world: World, session: str) -> None:
    """The engine looks at containers, and starts another session."""
    assert session in world.podman("ps", "--format", "{{.Names}}").stdout
    done = world.agent("echo", "another")
    assert (done.returncode, done.stdout) == (0, "another\n"), done.stderr


@pytest.mark.parametrize("name", ["passwd", "group"])
def test_a_command_does_not_hang_the_engine_when_the_guest_is_stopped(own_world: World, name: str) -> None:
    """An agent can stop the guest; podbot then has the engine run the command."""
    with own_world.session() as session:
        own_world.podbot("exec", session, "sh", "-c", PLANT.format(name), check=True)
        guest = guest_of(int(own_world.inspect(session)["State"]["Pid"]))
        os.kill(guest, signal.SIGSTOP)
        done = own_world.podbot("exec", session, "true")
        assert done.returncode == 1
        assert f"its /etc/{name} is a FIFO" in done.stderr
        works(own_world, session)


@pytest.mark.parametrize("name", ["passwd", "group"])
def test_an_engine_that_hangs_at_a_fifo_is_let_go(own_world: World, name: str) -> None:
    """The agent puts it there after podbot has looked. The start ends as after a signal."""
    environ = {**os.environ, **own_world.env}
    config = podbot.load_config(podbot.LoadOptions(environ=environ))
    with own_world.session() as session, podbot.open_engine(config, environ=environ) as engine:
        made = engine.exec_create(session, ExecSpec(("true",), stdin=False))
        own_world.podbot("exec", session, "sh", "-c", PLANT.format(name), check=True)
        with pytest.raises(ExecFailed, match=f"its /etc/{name} is a FIFO, at which the engine waited"):
            engine.exec_start(made, tty=False, size=None, sooner=lambda: 2.0)
        works(own_world, session)
