"""Reading the log of a session."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.errors import NoLog, PathError
from podbot.execution.output_log import CURRENT, EARLIER, OutputLog
from podbot.launch.own_file import log_directory
from podbot.management.logs import session_log
from podbot.session.directory import session_directory
from podbot.testing import FakeEngine
from tests.session.plans import Place, kept, made


@pytest.fixture
def log(engine: FakeEngine, place: Place) -> Path:
    """The directory of the log of the session `shop`."""
    kept(engine, place, "shop")
    found = Path(log_directory(os.path.join(place.directory("shop"), "files")))
    found.mkdir(parents=True, mode=0o700)
    return found


def test_lines_of_both_files(engine: FakeEngine, place: Place, log: Path) -> None:
    (log / EARLIER).write_bytes(b"one\ntw")
    (log / CURRENT).write_bytes(b"o\nthree")
    found = session_log(engine, place.environ, "sh")
    assert found.lines() == [b"one\n", b"two\n", b"three"]
    assert found.lines(2) == [b"two\n", b"three"]
    assert found.lines(9) == found.lines()
    assert found.lines(0) == []


def test_a_session_without_a_log(engine: FakeEngine, place: Place) -> None:
    made(engine, "shop")
    with pytest.raises(NoLog, match=r"session\.logs = true"):
        session_log(engine, place.environ, "shop")


def test_links_are_not_followed(engine: FakeEngine, place: Place, log: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("secret")
    (log / CURRENT).symlink_to(tmp_path / "mine")
    with pytest.raises(PathError):
        session_log(engine, place.environ, "shop").lines()
    (log / CURRENT).unlink()
    os.mkfifo(log / CURRENT)
    with pytest.raises(PathError, match="no file of this user's"):
        session_log(engine, place.environ, "shop").lines()
    log.rename(tmp_path / "elsewhere")
    log.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NoLog):
        session_log(engine, place.environ, "shop")


@contextlib.contextmanager
def running(engine: FakeEngine, place: Place) -> Iterator[OutputLog]:
    """What writes the log of the session `shop`, which is live until its lock is gone."""
    made(engine, "shop")
    with session_directory(place.directory("shop"), engine.endpoint) as directory:
        directory.move("creating")
        files = os.path.join(place.directory("shop"), "files")
        os.mkdir(files, 0o700)
        with contextlib.closing(OutputLog(log_directory(files), (), place.events.append, limit=40)) as writer:
            yield writer
        directory.move("gone")


def ended(place: Place) -> None:
    os.unlink(os.path.join(place.directory("shop"), "lock"))  # nobody holds it any more


def test_following_a_session_to_its_end(engine: FakeEngine, place: Place) -> None:
    """Through a rotation of the log."""
    with running(engine, place) as writer:
        writer(b"before\n")
        steps = [b"one\n", b"two\n", b"x" * 30 + b"\n", b"three\n"]

        def sleep(_: float) -> None:
            writer(steps.pop(0)) if steps else ended(place)

        found = b"".join(session_log(engine, place.environ, "shop").follow(0, sleep=sleep))
        assert found == b"one\ntwo\n" + b"x" * 30 + b"\nthree\n"


@pytest.mark.parametrize("more", [b"more\n", b"m" * 30 + b"\n"], ids=["same file", "rotated"])
def test_what_is_recorded_while_the_last_lines_are_printed_is_followed(
    engine: FakeEngine, place: Place, more: bytes
) -> None:
    with running(engine, place) as writer:
        writer(b"first\nsecond\n")
        found = session_log(engine, place.environ, "shop").follow(1, sleep=lambda _: ended(place))
        assert next(found) == b"second\n"
        writer(more)
        assert b"".join(found) == more


def test_following_begins_before_anything_is_recorded(engine: FakeEngine, place: Place) -> None:
    with running(engine, place) as writer:
        writer(b"one\n")
        log = session_log(engine, place.environ, "shop")
        os.unlink(os.path.join(log_directory(os.path.join(place.directory("shop"), "files")), CURRENT))
        assert log.lines() == []
        found = log.follow(sleep=lambda _: ended(place))
        assert next(found) == b""
        assert b"".join(found) == b""


def test_what_is_recorded_after_a_rotation_just_before_the_end_is_followed(engine: FakeEngine, place: Place) -> None:
    with running(engine, place) as writer:
        writer(b"a line of nearly forty bytes, the limit\n")

        def sleep(_: float) -> None:
            writer(b"the error\n")
            ended(place)

        found = b"".join(session_log(engine, place.environ, "shop").follow(sleep=sleep))
        assert found.endswith(b"limit\nthe error\n")
