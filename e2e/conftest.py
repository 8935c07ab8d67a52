"""Fixtures of the end-to-end suite. Nothing is skipped: a missing part is a failure."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from e2e.harness import World, close_world, new_world
from e2e.integrations import podman_source
from e2e.integrations.extra import newer_python
from e2e.patience import be_patient
from e2e.suites import KINDS, Tools, opened
from e2e.vm import HOSTNAME

be_patient()

# Two workers share the files (scripts/e2e-suite). Those that take longest, one to five minutes, begin first, so that no
# worker is left with one of them at the end.
LONGEST = (
    "test_matrix.py", "test_renewal.py", "test_history.py", "test_token_daemon.py", "test_clone.py", "test_image.py",
    "test_unsaved_work.py", "test_suite_life.py", "test_host_agents.py", "test_agents.py", "test_inspect.py",
    "test_suspend.py", "test_host_ends.py", "test_kills.py", "test_kills_more.py", "test_deepagents.py",
    "test_swerex.py", "test_podman_suite.py",
)  # fmt: skip

LOGINS = (".claude", ".claude.json", ".codex", ".gemini")  # in an operator's home

# They remove parts of the machine, and are for the machine of `make test-vm` only.
collect_ignore = [] if socket.gethostname() == HOSTNAME else ["vm"]
# What needs a newer Python than Debian 12 has; the summary of a run names what is left out.
NEEDS_PYTHON = {"test_harbor.py": 12, "test_weakincentives.py": 13, "test_weakincentives_filesystem.py": 13}
LEFT_OUT = {name: f"Python 3.{minor} or later" for name, minor in NEEDS_PYTHON.items() if newer_python(minor) is None}
# Podman's own tests are in the archive of the Debian whose Podman they test.
if not podman_source.available():
    LEFT_OUT["test_podman_suite.py"] = f"Debian's archive for {podman_source.CODENAME}"
collect_ignore += LEFT_OUT

# podbot keeps ignoring signals that it was started to ignore (nohup, a shell's `&`). The suite resets them to the
# defaults for its children, so that a suite started in that way still tests signals.
for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Nothing is left out silently, also with ``-q``."""
    for name, needed in LEFT_OUT.items():
        terminalreporter.write_line(f"left out: {name}, which needs {needed}")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The files of LONGEST first; the order within a file stays."""
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.name, len(places)))


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
    """The shared operator; fails the test if it leaves a container, a session's directory or a login behind."""
    containers, sessions = shared_world.managed(), shared_world.sessions()
    yield shared_world
    shared_world.settled()
    left = sorted(set(shared_world.managed()) - set(containers))
    stale = sorted(set(shared_world.sessions()) - set(sessions))
    if left:
        shared_world.podbot("stop", "--rm", "--time", "0", *left)
    assert not left, f"containers left behind: {left}"
    assert not stale, f"session directories left behind: {stale}"
    logins = [name for name in LOGINS if os.path.lexists(os.path.join(shared_world.env["HOME"], name))]
    assert not logins, f"left in the home, to be copied into sessions of later tests: {logins}"


@pytest.fixture
def own_world(image: str) -> Iterator[World]:
    """A separate operator for tests that kill services or change configuration."""
    world = new_world(image)
    yield world
    close_world(world)


@pytest.fixture(scope="module", params=KINDS)
def running_tools(request: pytest.FixtureRequest, shared_world: World) -> Iterator[Tools]:
    """The tools of a workspace of each backend."""
    with opened(shared_world, request.param) as tools:
        yield tools


@pytest.fixture
def tools(running_tools: Tools) -> Tools:
    """The same, in a workspace that is empty."""
    running_tools.empty()
    return running_tools


@pytest.fixture(autouse=True, scope="session")
def _podman_is_there() -> None:
    done = subprocess.run(["podman", "--version"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, "podman is missing: `make test-e2e` installs it"
    sys.stderr.write(done.stdout)
