"""For every fast test: the fixtures that more than one room uses, and how the tests run."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, cast

import pytest

from podbot.engine.kinds import ENGINES
from podbot.streams.wake import Wake
from podbot.testing import FakeEngine
from tests.driver import FakeDriver
from tests.examples import load_profile
from tests.faults import STRANGER, GiveAway
from tests.session.plans import Place

load_profile()

# podbot leaves signals ignored that it was started to ignore (nohup, a shell's `&`): a suite started so tests them.
for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_number) == signal.SIG_IGN:
        signal.signal(_number, signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL)


@pytest.fixture
def give_away(monkeypatch: pytest.MonkeyPatch) -> GiveAway:
    """Make a file or a directory STRANGER's; a link is not followed."""

    def give(path: str | os.PathLike[str]) -> None:
        try:
            os.chown(path, STRANGER, -1, follow_symlinks=False)
        except PermissionError:
            # Only root can give a file away: for another user's tests the kernel's answer is put in its place.
            given = os.lstat(path)
            for name in ("lstat", "fstat"):
                monkeypatch.setattr(os, name, _owned_by_stranger(getattr(os, name), given))

    return give


def _owned_by_stranger(look: Callable[..., os.stat_result], given: os.stat_result) -> Callable[..., os.stat_result]:
    def looked(what: Any, **options: Any) -> os.stat_result:
        found = look(what, **options)
        return os.stat_result((*found[:4], STRANGER, *found[5:])) if os.path.samestat(found, given) else found

    return looked


@pytest.fixture
def open_directory() -> Iterator[str]:
    """A temporary directory that other users can reach, as ``tmp_path`` is not."""
    with tempfile.TemporaryDirectory() as path:
        os.chmod(path, 0o755)
        yield path


@pytest.fixture
def short_path() -> Iterator[str]:
    """A temporary directory for sockets, whose paths have room for 107 bytes: ``tmp_path`` contains the user's name."""
    with tempfile.TemporaryDirectory(prefix="pb-") as path:
        yield path


@pytest.fixture
def place(short_path: str) -> Place:
    """A runtime directory and a workspace, both temporary."""
    return Place(short_path)


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    """Where Podman's line in the registry leads: to an engine in memory."""
    made = FakeDriver(FakeEngine())
    monkeypatch.setitem(sys.modules, "tests.fake_driver", cast("ModuleType", made))
    monkeypatch.setitem(ENGINES, "podman", "tests.fake_driver")
    return made


@pytest.fixture
def wake() -> Iterator[Wake]:
    with contextlib.closing(Wake()) as made:
        yield made
