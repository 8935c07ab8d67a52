"""The engine's storage is full: commands are still terminated, and every error names the cause (issue 10.7)."""

from __future__ import annotations

import contextlib
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import podbot
from e2e.harness import ROOTLESS, TAG, World, running, small_disk, wait_for
from podbot.engine.port import Engine
from podbot.errors import ContainerError
from podbot.exec_spec import ExecSpec
from podbot.testing.engine_contract import OnlyContainerErrors, a_spec, archive


@pytest.fixture
def small_world(own_world: World) -> Iterator[World]:
    """Containers are on a file system of 24 MiB; images are the operator's."""
    store = os.path.join(own_world.root, "small")
    with open(own_world.storage_conf, encoding="utf-8") as file:
        text = file.read()
    with open(own_world.storage_conf, "w", encoding="utf-8") as file:
        file.write(re.sub(r'graphroot = ".*"', f'graphroot = "{store}/graph"', text))
    with small_disk(own_world, store, "24m"):
        yield own_world


def test_an_agent_that_fails_on_a_full_storage_is_told_so(small_world: World) -> None:
    """Issue 29.7."""
    done = small_world.agent("sh", "-c", "head -c 200M /dev/zero > /filler")
    assert done.returncode == 1
    assert "head: error writing 'standard output': No space left on device" in done.stderr
    told = "the disk is full: 0 MB are free on the file system of the sandbox's own files"
    # An ordinary user's small disk is mounted where podbot itself does not see it.
    assert (told in done.stderr) == (not ROOTLESS), done.stderr
    freed(small_world)
    small_world.cleaned()  # a helper process tries again to remove what the end could not
    for left in small_world.managed():
        small_world.podbot("stop", "--rm", "--time", "0", left)
    assert small_world.managed() == []


def test_a_command_ends_and_errors_name_the_cause(small_world: World) -> None:
    """The sandbox itself fills the storage, as a hostile agent would."""
    world, command = small_world, f"sleep 41177.{TAG}"
    with world.session() as name:
        child = world.start("exec", name, "--", *command.split())
        wait_for(lambda: running(command), what="the command", child=child)
        # With an engine that runs a command, its status is lost, because the engine cannot write that either.
        world.podbot("exec", name, "--", "sh", "-c", "cat /dev/zero >/filler 2>/dev/null")
        by_guest = world.podbot("exec", name, "--", "true")
        by_engine = world.podbot("exec", world.container(name)["Id"], "--", "true")  # by its id, the engine's
        child.send_signal(signal.SIGTERM)
        _, err = child.communicate(timeout=60)
        assert child.returncode == 143, err
        assert not running(command)
        assert (by_guest.returncode, by_guest.stderr) == (0, "")
        # Where the engine managed to start the command, its status is lost, and the engine only reports 1.
        assert by_engine.returncode == 1
        assert by_engine.stderr == "" or "no space left in the engine's storage: cannot " in by_engine.stderr
        refused = world.agent("true")
        assert refused.returncode == 1
        assert "no space left in the engine's storage: cannot " in refused.stderr
        config = podbot.load_config(podbot.LoadOptions(environ=world.env))
        with podbot.open_engine(config, environ={**os.environ, **world.env}) as bare:
            engine: Engine = OnlyContainerErrors(bare)
            operations: tuple[Callable[[], object], ...] = (
                lambda: engine.create(a_spec(world.image)),
                lambda: engine.put_archive(name, "/root", archive(big="x" * 100_000)),
                lambda: engine.exec_create(name, ExecSpec(command=("true",))),
                lambda: engine.inspect(name),
                lambda: engine.processes(name),
            )
            for operation in operations:
                with contextlib.suppress(ContainerError):
                    operation()
        freed(world)
    # A container that was made but could not be started could not be removed: the next command names it.
    for left in world.managed():
        assert left in world.podbot("ps").stderr
        world.podbot("stop", "--rm", "--time", "0", left, check=True)
    assert world.managed() == []


def freed(world: World) -> None:
    """The engine cannot record that a container is gone, either: the operator frees some space, as errors advise."""
    for filler in Path(world.root, "small").rglob("filler"):
        os.truncate(filler, 0)
