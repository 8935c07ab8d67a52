"""The guard around a session: recorded before anything runs inside, reported once the container is gone."""

from __future__ import annotations

import contextlib
import marshal
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.errors import NameTaken, StartFailed, StopFailed
from podbot.execution.runner import ExecIO
from podbot.guard import scan
from podbot.guard.child import Child, left_of
from podbot.hosting.ending import Job, end_session
from podbot.launch.resources.guard import GuardPlan
from podbot.launch.types import LaunchPlan
from podbot.management.manage import stop_sessions
from podbot.session import guarding
from podbot.session.abandoned import remove_abandoned
from podbot.session.guarding import RECORD, Watch, records, report_left
from podbot.session.orphans import report_orphans
from podbot.session.run import SessionResult, run_session
from podbot.session.sessions import session_directory, sessions
from podbot.streams.wake import Wake
from podbot.testing import ExecPeer, FakeEngine
from tests.session.plans import SESSION, Place, container, in_state, labels, made

SILENT = ExecIO(None, None, None)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(os.fspath(tmp_path))


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def wake() -> Iterator[Wake]:
    with contextlib.closing(Wake()) as made_here:
        yield made_here


def plan(place: Place) -> LaunchPlan:
    return place.plan(guard=GuardPlan(place.workspace))


def plant(place: Place, name: str = ".envrc") -> None:
    with open(os.path.join(place.workspace, name), "w", encoding="utf-8") as file:
        file.write("x")


def findings(place: Place) -> list[tuple[int, str]]:
    return [(e.fields["danger"], e.fields["path"]) for e in place.events if e.kind == "guard.finding"]


def run(engine: FakeEngine, place: Place, wake: Wake, *planted: str) -> SessionResult:
    def agent(_peer: ExecPeer) -> int:
        for name in planted:
            plant(place, name)
        return 0

    engine.on("claude", agent)
    return run_session(engine, plan(place), SILENT, wake, place.events.append)


def recorded(engine: FakeEngine, place: Place) -> None:
    """A session whose podbot was killed: its record is there, its lock is free."""
    with session_directory(place.directory(), engine.endpoint) as directory:
        in_state(directory, "running")
        watch = Watch(SESSION, GuardPlan(place.workspace), directory, place.events.append)
        watch.begin()
        watch.ready()
        assert watch.recorded
    plant(place)


def test_what_the_agent_left_is_reported_and_in_the_result(engine: FakeEngine, place: Place, wake: Wake) -> None:
    plant(place, "Makefile")
    result = run(engine, place, wake, ".envrc", "Makefile", "conftest.py")
    assert findings(place) == [(1, ".envrc"), (4, "conftest.py")]
    assert result.guard is not None
    assert [found.path for found in result.guard.findings] == [".envrc", "conftest.py"]
    assert place.kinds()[-1] == "guard.end"
    assert place.kinds().index("container.removed") < place.kinds().index("guard.finding")
    assert not os.path.exists(place.directory())


def test_nothing_is_said_when_nothing_was_left(engine: FakeEngine, place: Place, wake: Wake) -> None:
    result = run(engine, place, wake, "app.py")
    assert result.guard is not None
    assert result.guard.findings == ()
    assert {kind for kind in place.kinds() if kind.startswith("guard")} == {"guard.end"}


def test_it_is_recorded_before_the_image_s_own_programs_run(engine: FakeEngine, place: Place, wake: Wake) -> None:
    start = engine.start

    def starting(container: str) -> None:
        assert os.path.exists(os.path.join(place.directory(), RECORD))
        plant(place)
        start(container)

    engine.start = starting  # type: ignore[method-assign]
    run(engine, place, wake)
    assert findings(place) == [(1, ".envrc")]


def test_what_is_written_while_the_container_is_being_removed_is_seen(
    engine: FakeEngine, place: Place, wake: Wake
) -> None:
    remove = engine.remove

    def removing(container: str) -> None:
        plant(place)
        remove(container)

    engine.remove = removing  # type: ignore[method-assign]
    run(engine, place, wake)
    assert findings(place) == [(1, ".envrc")]


def test_a_session_that_did_not_start_reports_too_and_leaves_nothing(
    engine: FakeEngine, place: Place, wake: Wake
) -> None:
    def failing(container: str) -> None:
        plant(place)
        raise StartFailed(container=container, reason="no")

    engine.start = failing  # type: ignore[method-assign]
    with pytest.raises(StartFailed):
        run(engine, place, wake)
    assert findings(place) == [(1, ".envrc")]
    assert sessions(place.environ) == []


def test_without_a_plan_for_it_nothing_is_recorded(engine: FakeEngine, place: Place, wake: Wake) -> None:
    def agent(_peer: ExecPeer) -> int:
        plant(place)
        return 0

    engine.on("claude", agent)
    result = run_session(engine, place.plan(), SILENT, wake, place.events.append)
    assert result.guard is None
    assert not [kind for kind in place.kinds() if kind.startswith("guard")]


# --- a podbot that was killed, or did not wait ------------------------------------------------------


def test_the_next_command_reports_when_the_container_is_gone(engine: FakeEngine, place: Place) -> None:
    recorded(engine, place)
    report_orphans(engine, place.environ, place.events.append)
    assert findings(place) == [(1, ".envrc")]
    assert sessions(place.environ) == []


def test_podbot_stop_reports_what_a_killed_podbots_session_left(engine: FakeEngine, place: Place) -> None:
    made(engine, SESSION)
    recorded(engine, place)
    report_orphans(engine, place.environ, place.events.append)
    assert findings(place) == []  # its agent may still be at work
    list(stop_sessions(engine, place.environ, [SESSION], seconds=0, emit=place.events.append))
    assert findings(place) == [(1, ".envrc")]
    assert sessions(place.environ) == []


def test_what_is_removed_of_a_hosted_session_is_reported(engine: FakeEngine, place: Place) -> None:
    made(engine, SESSION)
    recorded(engine, place)
    remove_abandoned(engine, place.environ, engine.inspect(SESSION), place.events.append)
    assert place.kinds()[0] == "session.removed"
    assert findings(place) == [(1, ".envrc")]


def ended_by_the_helper(engine: FakeEngine, place: Place) -> None:
    made(engine, SESSION)
    recorded(engine, place)
    with session_directory(place.directory(), engine.endpoint) as directory:
        in_state(directory, "running")
        directory.handed_over = True
        job = Job(
            directory=directory.path, endpoint=engine.endpoint, engine="fake", lock=directory.lock,
            container=SESSION, labels=labels(), keep="never", clone=None, files=None, exec_id="", descriptors=(),
            hurried=False,
        )  # fmt: skip
        end_session(engine, job)


def test_the_helper_process_leaves_its_report_for_the_next_command(engine: FakeEngine, place: Place) -> None:
    ended_by_the_helper(engine, place)
    assert findings(place) == []
    assert [record.untold for record in sessions(place.environ)] == [True]
    report_orphans(engine, place.environ, place.events.append)
    assert findings(place) == [(1, ".envrc")]
    assert sessions(place.environ) == []


def test_a_session_of_the_same_name_reports_it_first(engine: FakeEngine, place: Place, wake: Wake) -> None:
    ended_by_the_helper(engine, place)
    run(engine, place, wake)
    assert findings(place) == [(1, ".envrc")]


def test_one_of_several_reports(engine: FakeEngine, place: Place) -> None:
    recorded(engine, place)
    assert report_left(place.directory(), place.events.append) is not None
    assert report_left(place.directory(), place.events.append) is None
    assert len(findings(place)) == 1


def test_a_name_that_is_taken_by_a_killed_podbots_session_leaves_its_record(
    engine: FakeEngine, place: Place, wake: Wake
) -> None:
    earlier = labels(created="2026-07-01T12:00:00Z")
    engine.start(engine.create(container(SESSION, marks=earlier)))
    recorded(engine, place)
    with pytest.raises(NameTaken):
        run(engine, place, wake)
    assert findings(place) == []
    assert records(place.directory()) == [os.path.join(place.directory(), RECORD)]
    list(stop_sessions(engine, place.environ, [SESSION], seconds=0, emit=place.events.append))
    assert findings(place) == [(1, ".envrc")]
    assert sessions(place.environ) == []


def test_an_earlier_record_of_the_name_is_reported_once_the_container_is_made(
    engine: FakeEngine, place: Place, wake: Wake
) -> None:
    recorded(engine, place)
    result = run(engine, place, wake, ".exrc")
    assert findings(place) == [(1, ".envrc"), (2, ".exrc")]
    assert result.guard is not None
    assert [found.path for found in result.guard.findings] == [".exrc"]
    assert sessions(place.environ) == []


def test_a_session_whose_engine_fails_is_reported_later(engine: FakeEngine, place: Place, wake: Wake) -> None:
    """Its container may run on."""
    remove = engine.remove

    def failing(container: str) -> None:
        raise StopFailed(container=container, reason="the engine was ended")

    engine.remove = failing  # type: ignore[method-assign]
    with pytest.raises(StopFailed):
        run(engine, place, wake, ".envrc")
    assert findings(place) == []
    engine.remove = remove  # type: ignore[method-assign]
    plant(place, ".exrc")
    list(stop_sessions(engine, place.environ, [SESSION], seconds=0, emit=place.events.append))
    assert findings(place) == [(1, ".envrc"), (2, ".exrc")]
    assert sessions(place.environ) == []


def test_a_report_that_is_broken_off_is_made_by_the_next_command(
    engine: FakeEngine, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded(engine, place)

    def interrupted(_child: Child, _seconds: float) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Child, "answer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            report_orphans(engine, place.environ, place.events.append)
    assert findings(place) == []
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    report_orphans(engine, place.environ, place.events.append)
    assert findings(place) == [(1, ".envrc")]
    assert sessions(place.environ) == []


def test_a_later_report_that_is_not_made_in_time_is_made_by_the_next_command(
    engine: FakeEngine, place: Place, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    recorded(engine, place)
    with monkeypatch.context() as patch:
        stuck(patch, tmp_path)
        assert report_left(place.directory(), place.events.append, seconds=0.05) is None
    assert place.kinds()[-1] == "guard.incomplete"
    report_orphans(engine, place.environ, place.events.append)
    assert findings(place) == [(1, ".envrc")]


def test_a_report_whose_podbot_is_killed_is_made_by_the_next_command(place: Place, engine: FakeEngine) -> None:
    recorded(engine, place)
    code = (
        "import os, signal, sys\n"
        "from podbot.session.guarding import report_left\n"
        "from podbot.guard.child import Child\n"
        "Child.answer = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "report_left(sys.argv[1], lambda event: None)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, place.directory()], check=False)
    assert done.returncode == -signal.SIGKILL
    assert report_left(place.directory(), place.events.append) is not None
    assert findings(place) == [(1, ".envrc")]


@pytest.mark.parametrize("malformed", [b"", b"{}", marshal.dumps({}), marshal.dumps({"snapshot": {"marks": 1}})])
def test_a_record_that_is_malformed_is_told_and_forgotten(engine: FakeEngine, place: Place, malformed: bytes) -> None:
    recorded(engine, place)
    Path(place.directory(), RECORD).write_bytes(malformed)
    report_orphans(engine, place.environ, place.events.append)
    assert place.kinds()[-1] == "guard.incomplete"
    assert sessions(place.environ) == []


# --- a scan that hangs, or cannot be started ---------------------------------------------------------


def stuck(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The process never answers, as on a file system whose server is gone."""
    script = tmp_path / "stuck.py"
    script.write_text("import signal\nsignal.pause()\n")
    monkeypatch.setattr(scan, "__file__", os.fspath(script))
    monkeypatch.setattr(guarding, "PATIENCE", 0.05)
    monkeypatch.setattr(guarding, "FIRST", {"seconds": 0.05})


def test_a_first_scan_that_hangs_does_not_keep_the_session_from_starting(
    engine: FakeEngine, place: Place, wake: Wake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stuck(monkeypatch, tmp_path)
    result = run(engine, place, wake, ".envrc")
    assert (result.status.code, result.guard) == (0, None)
    assert [event.level for event in place.events if event.kind == "guard.incomplete"] == ["warning"]


def test_a_second_scan_that_hangs_is_told_and_left_for_the_next_command(
    engine: FakeEngine, place: Place, wake: Wake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def agent(_peer: ExecPeer) -> int:
        plant(place)
        stuck(monkeypatch, tmp_path)
        monkeypatch.setattr(guarding, "SECOND", {"seconds": 0.05})
        return 0

    engine.on("claude", agent)
    result = run_session(engine, plan(place), SILENT, wake, place.events.append)
    assert result.guard is None
    assert "guard.incomplete" in place.kinds()
    monkeypatch.undo()
    report_orphans(engine, place.environ, place.events.append)
    assert findings(place) == [(1, ".envrc")]
    assert sessions(place.environ) == []


def test_where_no_process_can_be_started_it_is_told(
    engine: FakeEngine, place: Place, wake: Wake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert run(engine, place, wake, ".envrc").guard is None
    assert "guard.incomplete" in place.kinds()


def test_the_process_ends_with_podbot(place: Place) -> None:
    """It waits for the word to compare, and nobody is there to say it."""
    record = os.path.join(place.base, "record")
    first = Child(
        {"what": "record", "session": "s", "workspace": place.workspace, "git": "", "record": record, "limits": {}}
    )
    assert first.answer(20) is not None
    job = scan.framed({"what": "compare", "record": record, "limits": {}})
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(scan.__file__)], input=job, capture_output=True, timeout=20, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_comparison_begins_when_nothing_runs_inside_any_more(place: Place) -> None:
    """And not before: what is planted meanwhile is seen. A pipe that is closed stands for the process."""
    record = os.path.join(place.base, "record")
    job = {"session": "s", "workspace": place.workspace, "git": "", "record": record, "limits": {}}
    assert Child({**job, "what": "record"}).answer(20) is not None
    ended, alive = os.pipe()
    child = Child({**job, "what": "compare"}, ended=ended)
    plant(place)
    os.close(alive)
    answer = child.answer(20)
    os.close(ended)
    assert answer is not None
    assert [finding.path for finding in left_of(answer).findings] == [".envrc"]


def test_no_process_is_left(engine: FakeEngine, place: Place, wake: Wake) -> None:
    run(engine, place, wake, ".envrc")
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
