"""One build at a time on one engine, of processes and of threads alike: flock is of the open file."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from podbot.errors import PathError
from podbot.events import Event
from podbot.images.build_turn import build_turn
from tests.waiting import HANG

ENGINE = "unix:///run/e.sock"


@pytest.fixture
def environ(tmp_path: Path) -> Mapping[str, str]:
    runtime = tmp_path / "run"
    runtime.mkdir(mode=0o700)
    return {"XDG_RUNTIME_DIR": str(runtime)}


def test_the_second_build_reports_that_it_waits_and_continues_after_the_first(environ: Mapping[str, str]) -> None:
    events, order = list[Event](), list[str]()
    waits = threading.Event()

    def tell(event: Event) -> None:
        events.append(event)
        waits.set()

    def second() -> None:
        with build_turn(environ, ENGINE, tell):
            order.append("second")

    thread = threading.Thread(target=second)
    with build_turn(environ, ENGINE):
        thread.start()
        assert waits.wait(HANG)
        order.append("first")
    thread.join(HANG)
    assert order == ["first", "second"]
    assert [(event.level, event.kind) for event in events] == [("notice", "image.wait")]


def test_no_build_waits_for_itself_or_for_another_engine(environ: Mapping[str, str]) -> None:
    events: list[Event] = []
    for _ in range(2):
        with build_turn(environ, ENGINE, events.append), build_turn(environ, "unix:///run/other.sock", events.append):
            pass
    assert events == []


def test_a_build_that_fails_releases_the_lock(environ: Mapping[str, str]) -> None:
    events: list[Event] = []
    with pytest.raises(ZeroDivisionError), build_turn(environ, ENGINE):
        raise ZeroDivisionError
    with build_turn(environ, ENGINE, events.append):
        pass
    assert events == []


def test_a_lock_that_is_a_link_is_refused(environ: Mapping[str, str]) -> None:
    with build_turn(environ, ENGINE):
        (name,) = os.listdir(os.path.join(environ["XDG_RUNTIME_DIR"], "podbot"))
    lock = Path(environ["XDG_RUNTIME_DIR"], "podbot", name)
    assert lock.stat().st_mode & 0o777 == 0o600
    lock.unlink()
    lock.symlink_to("/dev/null")
    with pytest.raises(PathError), build_turn(environ, ENGINE):
        pytest.fail("entered")
