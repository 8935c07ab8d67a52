"""Fixtures of the end-to-end suite. Nothing is skipped: what is missing fails."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from e2e.harness import World, close_world, new_world
from e2e.patience import be_patient
from e2e.vm import HOSTNAME

be_patient()

# They take parts of the machine away, and are for that of `make test-vm` alone.
collect_ignore = [] if socket.gethostname() == HOSTNAME else ["vm"]

# podbot leaves signals ignored that it was started to ignore (nohup, a shell's `&`); so that a suite started
# that way still tests them, its children start with the defaults.
for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture(scope="session")
def image() -> str:
    """The sandbox image that `podbot setup` built."""
    from podbot.images.recipe import load_recipe

    return os.environ.get("PODBOT_E2E_IMAGE") or load_recipe().image


@pytest.fixture(scope="session")
def shared_world(image: str) -> Iterator[World]:
    """One operator for tests that leave nothing behind."""
    world = new_world(image)
    ready = world.podbot("doctor")
    assert ready.returncode == 0, f"the engine is not ready:\n{ready.stdout}{ready.stderr}"
    yield world
    close_world(world)


@pytest.fixture
def world(shared_world: World) -> Iterator[World]:
    """The shared operator; fails the test when it leaves a container or a session's directory behind."""
    containers, sessions = shared_world.managed(), shared_world.sessions()
    yield shared_world
    shared_world.settled()
    left = sorted(set(shared_world.managed()) - set(containers))
    stale = sorted(set(shared_world.sessions()) - set(sessions))
    if left:
        shared_world.podbot("stop", "--rm", "--time", "0", *left)
    assert not left, f"containers left behind: {left}"
    assert not stale, f"session directories left behind: {stale}"


@pytest.fixture
def own_world(image: str) -> Iterator[World]:
    """An operator of the test's own, for tests that kill services or change configuration."""
    world = new_world(image)
    yield world
    close_world(world)


@pytest.fixture(autouse=True, scope="session")
def _podman_is_there() -> None:
    done = subprocess.run(["podman", "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, "podman is missing: `make test-e2e` installs it"
    sys.stderr.write(done.stdout)
