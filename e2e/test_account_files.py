"""A FIFO in place of /etc/passwd: the engine opens it before it runs a command, and then hangs for everybody."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

import podbot
from e2e.bench_sessions import guest_of
from e2e.harness import World, wait_for
from podbot.engine.podman.private.service import process_of
from podbot.errors import EngineGone, ExecFailed
from podbot.exec_spec import ExecSpec

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


def waits(pid: int) -> bool:
    """Whether a thread of the process waits at a FIFO."""
    return any(path.read_text() == "wait_for_partner" for path in Path(f"/proc/{pid}/task").glob("*/wchan"))


def test_an_engine_that_hangs_at_a_fifo_that_was_moved_away_is_ended(own_world: World) -> None:
    """Nothing in the container leads there any more; the service is podbot's own, and the next command starts it."""
    environ = {**os.environ, **own_world.env}
    config = podbot.load_config(podbot.LoadOptions(environ=environ))
    with own_world.session() as session, podbot.open_engine(config, environ=environ) as engine:
        service = process_of(own_world.service_socket)
        made = engine.exec_create(session, ExecSpec(("true",), stdin=False))
        plant = f"cp /etc/passwd /tmp; {PLANT.format('passwd')}"
        own_world.podbot("exec", session, "sh", "-c", plant, check=True)
        moved = threading.Event()

        def move() -> None:
            wait_for(lambda: waits(service), what="the engine to wait")
            own_world.podbot("exec", session, "sh", "-c", "rm /etc/passwd; cp /tmp/passwd /etc", check=True)
            moved.set()

        mover = threading.Thread(target=move)
        mover.start()
        with pytest.raises(EngineGone, match=r"waits at a named pipe .* podbot ended it"):
            engine.exec_start(made, tty=False, size=None, sooner=lambda: 1.0 if moved.is_set() else None)
        mover.join()
        works(own_world, session)
        assert process_of(own_world.service_socket) not in (0, service)


def test_an_upload_does_not_hang_the_engine(own_world: World) -> None:
    """The main process of a kept session can be a program of the agent's, which has changed the image's python3."""
    login = Path(own_world.env["HOME"], ".codex", "auth.json")
    login.parent.mkdir(parents=True, exist_ok=True)
    login.write_text('{"OPENAI_API_KEY": null}')
    own_world.env["PODBOT_CREDS_COPY_CODEX"] = "true"
    program = "#!/bin/sh\nrm /etc/passwd; mkfifo /etc/passwd; sleep 1000\n"
    planted = f"p=$(readlink -f $(command -v python3)); rm $p; printf '{program}' > $p; chmod 755 $p"
    own_world.agent("sh", "-c", planted, flags=("--keep", "--name", "e2e-planted"), check=True)
    own_world.podbot("start", "e2e-planted", timeout=400)  # whether it fails depends on which of them is faster
    assert own_world.podman("ps").returncode == 0
    done = own_world.agent("echo", "another")
    assert (done.returncode, done.stdout) == (0, "another\n"), done.stderr
