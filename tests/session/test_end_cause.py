"""Why a sandbox is ending, as its session's directory shows it to the command of another podbot."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from podbot.errors import SandboxDied
from podbot.execution.runner import ExecIO
from podbot.session.end_cause import end_cause
from podbot.session.flags import ENDING, LEAVING, ORPHANED, STOPPING, USED, WANTED, flagged
from podbot.session.record import SessionRecord, write_record
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


def test_an_agent_whose_session_is_stopped_says_so(engine: FakeEngine, place: Place, wake: Wake) -> None:
    path = place.plan().sandbox.runtime_dir
    with contextlib.ExitStack() as stack:

        def agent(_peer: ExecPeer) -> int:
            stack.enter_context(flagged(path, STOPPING))
            engine.die(SESSION)
            return 0

        engine.on("claude", agent)
        with pytest.raises(SandboxDied) as caught:
            run_session(engine, place.plan(), SILENT, wake, place.events.append)
    assert (caught.value.cause, caught.value.remedy) == ("stopped", "")
