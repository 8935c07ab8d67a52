"""An engine in memory for the CLI, and a separate host environment: the developer's configuration is not read."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from podbot.cli.globals import Globals
from podbot.testing import FakeEngine
from tests.cli.terminals import no_terminal
from tests.driver import FakeDriver
from tests.session.plans import Place


@pytest.fixture
def engine(driver: FakeDriver) -> FakeEngine:
    """The engine that every command connects to."""
    return driver.engine


@pytest.fixture(autouse=True)
def signals() -> Iterator[None]:
    """Commands that build set the handlers of the process, which ends with them; the tests' process does not."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def no_terminal_here() -> Iterator[None]:
    with no_terminal():
        yield


@pytest.fixture(autouse=True)
def globals_as_before() -> Iterator[None]:
    before, Globals.current, Globals.typed = Globals.current, Globals(), ()
    yield
    Globals.current, Globals.typed = before, ()


@pytest.fixture
def place(tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch) -> Place:
    """Home, runtime directory and workspace, all temporary; no PODBOT_ variable."""
    made = Place(os.fspath(tmp_path))
    for name in [name for name in os.environ if name.startswith(("PODBOT_", "XDG_"))]:
        monkeypatch.delenv(name)
    for name in ("CONTAINER_HOST", "DOCKER_HOST", "PODMAN_HOST", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", made.base)
    for name, value in made.environ.items():
        monkeypatch.setenv(name, value)
    without = os.path.join(made.base, "no-installers")  # a test that installs packages here fails
    os.mkdir(without)
    for name in ("sudo", "apt-get", "dnf", "pacman", "zypper", "apk"):
        with open(os.path.join(without, name), "w", encoding="utf-8", opener=_executable) as file:
            file.write("#!/bin/sh\nexit 99\n")
    monkeypatch.setenv("PATH", f"{without}:{os.environ['PATH']}")
    return made


def _executable(path: str, flags: int) -> int:
    return os.open(path, flags, 0o755)
