"""Why a sandbox is ending, as its session's directory shows it to the command of another podbot."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from podbot.errors import SandboxDied
from podbot.events import Event
from podbot.execution.runner import ExecIO
from podbot.session.end_cause import OwnersWitness, SessionWitness, end_cause
from podbot.session.flags import ENDING, LEAVING, ORPHANED, STOPPING, USED, WANTED, flagged
from podbot.session.record import SessionRecord, read_record, write_record
from podbot.session.run import run_session
from podbot.streams.wake import Wake
from podbot.testing import ExecPeer, FakeEngine
from tests.session.plans import SESSION, Place

SILENT = ExecIO(None, None, None)


def recorded(place: Path, state: str) -> str:
    path = str(place / SESSION)
    (place / SESSION).mkdir(0o700)
    write_record(path, SessionRecord(SESSION, "unix:///e", state))  # type: ignore[arg-type]
    return path


@pytest.mark.parametrize(
    ("flag", "cause"),
    [
        (STOPPING, "stopped"),
        (LEAVING, "session_ended"),
        (ORPHANED, "owner_killed"),
        (ENDING, ""),
        (USED, ""),
        (WANTED, ""),
    ],
)
def test_what_a_podbot_does_to_a_session_shows(short_path: str, flag: str, cause: str) -> None:
    path = recorded(Path(short_path), "detached")
    with flagged(path, flag):
        assert end_cause(path) == cause
    assert end_cause(path) == ""


def test_a_stop_goes_before_the_end_that_the_session_s_own_podbot_makes_of_it(short_path: str) -> None:
    path = recorded(Path(short_path), "detached")
    with flagged(path, LEAVING), flagged(path, STOPPING):
        assert end_cause(path) == "stopped"


@pytest.mark.parametrize(
    ("state", "cause"), [("running", "owner_killed"), ("detached", ""), ("stopped", ""), ("gone", "")]
)
def test_a_session_that_must_have_a_podbot_and_has_none_was_killed(short_path: str, state: str, cause: str) -> None:
    path = recorded(Path(short_path), state)
    assert end_cause(path) == cause
    with flagged(path, "lock"):
        assert end_cause(path) == ""


def test_a_podbot_that_ends_or_starts_while_its_record_is_read_was_not_killed(short_path: str) -> None:
    """It removes the record, and releases the lock then; one that starts takes the lock, and then writes the record."""
    path = recorded(Path(short_path), "running")
    with contextlib.ExitStack() as lock:

        def ends(directory: str) -> SessionRecord | None:
            found = read_record(directory)
            lock.close()
            return found

        def starts(directory: str) -> SessionRecord | None:
            lock.enter_context(flagged(path, "lock"))
            return read_record(directory)

        lock.enter_context(flagged(path, "lock"))
        assert end_cause(path, read=ends) == ""
        assert end_cause(path, read=starts) == ""
    assert end_cause(path) == "owner_killed"


@pytest.mark.parametrize(("flag", "cause"), [(STOPPING, "stopped"), (LEAVING, ""), (ORPHANED, ""), (ENDING, "")])
def test_a_podbot_does_not_take_itself_for_killed(short_path: str, flag: str, cause: str) -> None:
    path = recorded(Path(short_path), "running")
    witness = OwnersWitness(path)
    with flagged(path, flag):
        assert (witness.now(), witness.later()) == (cause, "")
    assert (witness.now(), witness.later()) == ("", "")


def test_a_killed_podbot_has_its_locks_a_little_longer(short_path: str) -> None:
    path = recorded(Path(short_path), "running")
    slept: list[float] = []
    with contextlib.ExitStack() as lock:
        lock.enter_context(flagged(path, "lock"))
        witness = SessionWitness(path, sleep=slept.append)
        assert (witness.now(), witness.later()) == ("", "")
        looks = len(slept)

        def sleep(_seconds: float) -> None:
            slept.append(0.0)
            if len(slept) == looks + 2:
                lock.close()

        assert SessionWitness(path, sleep=sleep).later() == "owner_killed"
    assert len(slept) == looks + 2


def test_of_one_command_s_session_that_its_directory_is_gone_says_that_it_has_ended(short_path: str) -> None:
    gone = f"{short_path}/gone"
    of_one, of_many = (SessionWitness(gone, for_one=one, sleep=lambda _: None) for one in (True, False))
    assert (of_one.now(), of_many.now()) == ("session_ended", "")
    assert of_one.later() == "", "its podbot may have cleaned up by then after an end that came from outside"


def test_without_a_record_nothing_is_known(short_path: str) -> None:
    assert end_cause(f"{short_path}/none") == ""
    (Path(short_path) / "session.json").write_text("[")
    assert end_cause(short_path) == ""


class Watched(FakeEngine):
    """Notes the cause that shows whenever the container is removed or stopped."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path, self.seen = path, list[str]()

    def remove(self, *words: object, **options: object) -> None:
        self.seen.append(end_cause(self.path))
        super().remove(*words, **options)  # type: ignore[arg-type]

    def stop(self, *words: object, **options: object) -> None:
        self.seen.append(end_cause(self.path))
        super().stop(*words, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("keep", ["never", "always"])
def test_a_session_that_ends_with_its_agent_shows_it_while_it_removes_or_stops_the_sandbox(
    place: Place, wake: Wake, keep: str
) -> None:
    plan = place.plan(keep=keep)
    engine = Watched(plan.sandbox.runtime_dir)
    engine.on("claude", lambda _peer: 0)
    run_session(engine, plan, SILENT, wake, place.events.append)
    assert set(engine.seen) == {"session_ended"}


def test_a_session_whose_sandbox_died_only_cleans_up(place: Place, wake: Wake) -> None:
    engine = Watched(place.plan().sandbox.runtime_dir)

    def agent(_peer: ExecPeer) -> int:
        engine.die(SESSION)
        return 0

    engine.on("claude", agent)
    with pytest.raises(SandboxDied) as caught:
        run_session(engine, place.plan(), SILENT, wake, place.events.append)
    assert (caught.value.cause, set(engine.seen)) == ("not_running", {""})


def test_other_podbots_see_that_a_session_ends_until_its_directory_is_gone(place: Place, wake: Wake) -> None:
    """After the sandbox was removed, its session looked as one whose podbot does nothing."""
    plan = place.plan()
    engine = Watched(plan.sandbox.runtime_dir)
    engine.on("claude", lambda _peer: 0)
    seen = []

    def emit(event: Event) -> None:
        if event.kind == "container.removed":
            seen.append(end_cause(plan.sandbox.runtime_dir))

    run_session(engine, plan, SILENT, wake, emit)
    assert (seen, os.path.exists(plan.sandbox.runtime_dir)) == (["session_ended"], False)


@pytest.mark.parametrize(("flag", "cause"), [(STOPPING, "stopped"), (ORPHANED, "not_running")])
def test_an_agent_whose_session_is_stopped_says_so(
    engine: FakeEngine, place: Place, wake: Wake, flag: str, cause: str
) -> None:
    path = place.plan().sandbox.runtime_dir
    with contextlib.ExitStack() as stack:

        def agent(_peer: ExecPeer) -> int:
            stack.enter_context(flagged(path, flag))
            engine.die(SESSION)
            return 0

        engine.on("claude", agent)
        with pytest.raises(SandboxDied) as caught:
            run_session(engine, place.plan(), SILENT, wake, place.events.append)
    assert (caught.value.cause, bool(caught.value.remedy)) == (cause, cause != "stopped")
