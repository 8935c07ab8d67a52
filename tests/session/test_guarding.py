"""The guard around a session: recorded before anything runs inside, reported once the container was removed."""

from __future__ import annotations

import contextlib
import marshal
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from podbot.children import sweep
from podbot.errors import NameTaken, StartFailed, StopFailed
from podbot.execution.runner import ExecIO
from podbot.guard import scan
from podbot.guard.child import Child, left_of
from podbot.hosting.ending import Job, remove_session
from podbot.launch.resources.guard import GuardPlan
from podbot.launch.types import LaunchPlan
from podbot.management.manage import stop_sessions
from podbot.session.abandoned import remove_abandoned
from podbot.session.directory import guard_records, left_session, session_directory, sessions
from podbot.session.guarding import RECORD, Scanner, Watch, report_left
from podbot.session.kept_reports import kept_reports
from podbot.session.orphans import report_orphans
from podbot.session.run import SessionResult, run_session
from podbot.streams.wake import Wake
from podbot.testing import ExecPeer, FakeEngine
from tests.guard.registries import with_hosts
from tests.session.plans import SESSION, Place, container, in_state, labels, made
from tests.waiting import HANG, wait_until

SILENT = ExecIO(None, None, None)
PATIENT = Scanner(first=HANG, second=HANG)  # however long a new interpreter takes to start


def plan(place: Place) -> LaunchPlan:
    return place.plan(guard=GuardPlan(place.workspace))


def plant(place: Place, name: str = ".envrc") -> None:
    with open(os.path.join(place.workspace, name), "w", encoding="utf-8") as file:
        file.write("x")


def findings(place: Place) -> list[tuple[int, str]]:
    return [(e.fields["danger"], e.fields["path"]) for e in place.events if e.kind == "guard.finding"]


def run(engine: FakeEngine, place: Place, wake: Wake, *planted: str, scanner: Scanner = PATIENT) -> SessionResult:
    def agent(_peer: ExecPeer) -> int:
        for name in planted:
            plant(place, name)
        return 0

    engine.on("claude", agent)
    return run_session(engine, plan(place), SILENT, wake, place.events.append, scanner=scanner)


def recorded(engine: FakeEngine, place: Place) -> None:
    """A session whose podbot was killed: its record exists, its lock is free."""
    with session_directory(place.directory(), engine.endpoint) as directory:
        in_state(directory, "running")
        watch = Watch(SESSION, GuardPlan(place.workspace), directory, place.events.append, PATIENT)
        watch.begin()
        watch.ready()
        assert watch.recorded
    plant(place)


def stop(engine: FakeEngine, place: Place) -> None:
    emit = place.events.append
    list(stop_sessions(engine, place.environ, [SESSION], seconds=0, emit=emit, scanner=PATIENT))


def test_findings_are_reported_and_in_the_result(engine: FakeEngine, place: Place, wake: Wake) -> None:
    plant(place, "Makefile")
    result = run(engine, place, wake, ".envrc", "Makefile", "conftest.py")
    assert findings(place) == [(1, ".envrc"), (4, "conftest.py")]
    assert result.guard is not None
    assert [found.path for found in result.guard.findings] == [".envrc", "conftest.py"]
    assert place.kinds()[-1] == "guard.end"
    assert place.kinds().index("container.removed") < place.kinds().index("guard.finding")
    assert not os.path.exists(place.directory())


def test_nothing_is_reported_when_nothing_was_left(engine: FakeEngine, place: Place, wake: Wake) -> None:
    result = run(engine, place, wake, "app.py")
    assert result.guard is not None
    assert result.guard.findings == ()
    assert {kind for kind in place.kinds() if kind.startswith("guard")} == {"guard.end"}


def test_it_is_recorded_before_the_images_own_programs_run(engine: FakeEngine, place: Place, wake: Wake) -> None:
    start = engine.start

    def starting(container: str) -> None:
        assert os.path.exists(os.path.join(place.directory(), RECORD))
        plant(place)
        start(container)

    engine.start = starting  # type: ignore[method-assign]
    run(engine, place, wake)
    assert findings(place) == [(1, ".envrc")]


def test_files_written_while_the_container_is_being_removed_are_found(
    engine: FakeEngine, place: Place, wake: Wake
) -> None:
    remove = engine.remove

    def removing(container: str, *, kill: bool = True) -> None:
        plant(place)
        remove(container, kill=kill)

    engine.remove = removing  # type: ignore[method-assign]
    run(engine, place, wake)
    assert findings(place) == [(1, ".envrc")]


def test_a_session_that_did_not_start_also_reports_and_leaves_nothing(
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


def test_the_next_command_reports_when_the_container_was_removed(engine: FakeEngine, place: Place) -> None:
    recorded(engine, place)
    report_orphans(engine, place.environ, place.events.append, scanner=PATIENT)
    assert findings(place) == [(1, ".envrc")]
    assert sessions(place.environ) == []


def test_podbot_stop_reports_for_a_killed_podbots_session(engine: FakeEngine, place: Place) -> None:
    made(engine, SESSION)
    recorded(engine, place)
    report_orphans(engine, place.environ, place.events.append, scanner=PATIENT)
    assert findings(place) == []  # its agent may still be at work
    stop(engine, place)
    assert findings(place) == [(1, ".envrc")]
    assert sessions(place.environ) == []


def test_the_clean_up_of_a_hosted_session_reports_findings(engine: FakeEngine, place: Place) -> None:
    made(engine, SESSION)
    recorded(engine, place)
    remove_abandoned(engine, place.environ, engine.inspect(SESSION), place.events.append, scanner=PATIENT)
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
            container=SESSION, labels=labels(), keep="never", clone=None, files=None, exec_id="", connection=-1,
            state={}, hurried=False,
        )  # fmt: skip
        remove_session(engine, job, place.environ)


def test_the_helper_process_keeps_its_report(engine: FakeEngine, place: Place) -> None:
    ended_by_the_helper(engine, place)
    assert sessions(place.environ) == []
    report_orphans(engine, place.environ, place.events.append, scanner=PATIENT)
    assert place.events == []
    (report,) = kept_reports(place.environ)
    assert [event.fields["path"] for event in report.events if event.kind == "guard.finding"] == [".envrc"]


def no_store(place: Place) -> None:
    """A file is where reports are kept."""
    Path(place.base, ".local", "state", "podbot").mkdir(parents=True)
    Path(place.base, ".local", "state", "podbot", "reports").touch()


def test_a_report_that_cannot_be_kept_is_left_for_the_next_command(engine: FakeEngine, place: Place) -> None:
    no_store(place)
    ended_by_the_helper(engine, place)
    assert findings(place) == []
    assert [record.untold for record in sessions(place.environ)] == [True]
    report_orphans(engine, place.environ, place.events.append, scanner=PATIENT)
    assert findings(place) == [(1, ".envrc")]
    assert place.kinds()[-1] == "report.not_kept"
    assert sessions(place.environ) == []


def test_a_session_of_the_same_name_reports_it_first(engine: FakeEngine, place: Place, wake: Wake) -> None:
    no_store(place)
    ended_by_the_helper(engine, place)
    run(engine, place, wake)
    assert findings(place) == [(1, ".envrc")]


def test_one_of_several_reports(engine: FakeEngine, place: Place) -> None:
    recorded(engine, place)
    assert report_left(place.directory(), place.events.append, scanner=PATIENT) is not None
    assert report_left(place.directory(), place.events.append, scanner=PATIENT) is None
    assert len(findings(place)) == 1


def test_a_name_held_by_a_killed_podbots_session_keeps_its_record(engine: FakeEngine, place: Place, wake: Wake) -> None:
    earlier = labels(created="2026-07-01T12:00:00Z")
    engine.start(engine.create(container(SESSION, marks=earlier)))
    recorded(engine, place)
    with pytest.raises(NameTaken):
        run(engine, place, wake)
    assert findings(place) == []
    assert guard_records(place.directory()) == [os.path.join(place.directory(), RECORD)]
    stop(engine, place)
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

    def failing(container: str, *, kill: bool = True) -> None:
        raise StopFailed(container=container, reason="the engine was ended")

    engine.remove = failing  # type: ignore[method-assign]
    with pytest.raises(StopFailed):
        run(engine, place, wake, ".envrc")
    assert findings(place) == []
    engine.remove = remove  # type: ignore[method-assign]
    plant(place, ".exrc")
    stop(engine, place)
    assert findings(place) == [(1, ".envrc"), (2, ".exrc")]
    assert sessions(place.environ) == []


def children() -> set[str]:
    """Pids of this process's children, also of those that have ended and were not waited for."""
    found: set[str] = set()
    for task in os.listdir("/proc/self/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that ends just now
            found.update(Path(f"/proc/self/task/{task}/children").read_text().split())
    return found


def no_more_children_than(before: set[str]) -> None:
    """A killed one that has not ended at once is abandoned, and reaped later."""

    def reaped() -> bool:
        sweep()
        return children() <= before

    wait_until(reaped)


def test_an_interrupted_report_is_made_by_the_next_command(engine: FakeEngine, place: Place, tmp_path: Path) -> None:
    recorded(engine, place)
    before = children()
    with left_session(place.directory()), pytest.raises(KeyboardInterrupt):
        report_left(place.directory(), place.events.append, scanner=sending(tmp_path, signal.SIGINT))
    assert findings(place) == []
    no_more_children_than(before)
    report_orphans(engine, place.environ, place.events.append, scanner=PATIENT)
    assert findings(place) == [(1, ".envrc")]
    assert sessions(place.environ) == []


def test_a_later_report_that_is_not_made_in_time_is_made_by_the_next_command(
    engine: FakeEngine, place: Place, tmp_path: Path
) -> None:
    recorded(engine, place)
    assert report_left(place.directory(), place.events.append, scanner=stuck(tmp_path)) is None
    assert place.kinds()[-1] == "guard.incomplete"
    report_orphans(engine, place.environ, place.events.append, scanner=PATIENT)
    assert findings(place) == [(1, ".envrc")]


def test_a_report_whose_podbot_is_killed_is_made_by_the_next_command(
    place: Place, engine: FakeEngine, tmp_path: Path
) -> None:
    recorded(engine, place)
    code = (
        "import sys\n"
        "from podbot.session.guarding import Scanner, report_left\n"
        "report_left(sys.argv[1], lambda event: None, scanner=Scanner(second=60, script=sys.argv[2]))\n"
    )
    script = str(sending(tmp_path, signal.SIGKILL).script)
    done = subprocess.run([sys.executable, "-c", code, place.directory(), script], check=False)
    assert done.returncode == -signal.SIGKILL
    assert report_left(place.directory(), place.events.append, scanner=PATIENT) is not None
    assert findings(place) == [(1, ".envrc")]


@pytest.mark.parametrize("malformed", [b"", b"{}", marshal.dumps({}), marshal.dumps({"snapshot": {"marks": 1}})])
def test_a_malformed_record_is_reported_and_removed(engine: FakeEngine, place: Place, malformed: bytes) -> None:
    recorded(engine, place)
    Path(place.directory(), RECORD).write_bytes(malformed)
    report_orphans(engine, place.environ, place.events.append, scanner=PATIENT)
    assert place.kinds()[-1] == "guard.incomplete"
    assert sessions(place.environ) == []


# --- a scan that hangs, or cannot be started ---------------------------------------------------------


def scanner(tmp_path: Path, code: str, *, first: float = 0.05, second: float = 0.05, patience: float = 0.05) -> Scanner:
    script = tmp_path / "scan.py"
    script.write_text(code)
    return Scanner(first=first, second=second, patience=patience, script=os.fspath(script))


def stuck(tmp_path: Path) -> Scanner:
    """Its process never answers, as on a file system whose server is gone."""
    return scanner(tmp_path, "import signal\nsignal.pause()\n")


def sending(tmp_path: Path, number: int) -> Scanner:
    """podbot gets a signal while it waits for the answer."""
    code = (
        "import os, sys\n"
        "given = sys.stdin.buffer\n"
        "given.read(int.from_bytes(given.read(4), 'big'))\n"
        "given.read(1)\n"  # let it begin
        f"os.kill(os.getppid(), {int(number)})\n"
        "given.read()\n"  # ends with podbot
    )
    return scanner(tmp_path, code, second=HANG)


def test_a_first_scan_that_hangs_does_not_keep_the_session_from_starting(
    engine: FakeEngine, place: Place, wake: Wake, tmp_path: Path
) -> None:
    result = run(engine, place, wake, ".envrc", scanner=stuck(tmp_path))
    assert (result.status.code, result.guard) == (0, None)
    assert [event.level for event in place.events if event.kind == "guard.incomplete"] == ["warning"]


def test_a_second_scan_that_hangs_is_reported_and_left_for_the_next_command(
    engine: FakeEngine, place: Place, wake: Wake, tmp_path: Path
) -> None:
    server_is_gone = tmp_path / "gone"

    def agent(_peer: ExecPeer) -> int:
        plant(place)
        server_is_gone.touch()
        return 0

    engine.on("claude", agent)
    code = (
        "import os, runpy, signal\n"
        f"if os.path.exists({str(server_is_gone)!r}):\n    signal.pause()\n"
        f"runpy.run_path({str(scan.__file__)!r}, run_name='__main__')\n"
    )
    hanging = scanner(tmp_path, code, first=HANG)
    result = run_session(engine, plan(place), SILENT, wake, place.events.append, scanner=hanging)
    assert result.guard is None
    assert "guard.incomplete" in place.kinds()
    report_orphans(engine, place.environ, place.events.append, scanner=PATIENT)
    assert findings(place) == [(1, ".envrc")]
    assert sessions(place.environ) == []


PATCHED = """import os, signal, sys, types
podbot = types.ModuleType("podbot")
podbot.__path__ = [{place!r}]
sys.modules["podbot"] = podbot
from podbot.guard import acting_parts, scan
real = acting_parts.value
def value(rule, name, data, budget):
    if b"attack" in data:
        {act}
    return real(rule, name, data, budget)
acting_parts.value = value
scan.main()
"""
"""The scan, in which a file's content does something to its parser."""


def attacked(tmp_path: Path, act: str) -> Scanner:
    code = PATCHED.format(place=os.path.dirname(os.path.dirname(scan.__file__)), act=act)
    return scanner(tmp_path, code, first=HANG, second=HANG, patience=HANG)


def attacking(engine: FakeEngine, place: Place) -> None:
    def agent(_peer: ExecPeer) -> int:
        os.makedirs(os.path.join(place.workspace, ".git", "hooks"))
        plant(place, ".git/hooks/pre-commit")
        with open(os.path.join(place.workspace, "package.json"), "w", encoding="utf-8") as file:
            file.write('{"scripts": {"attack": "x"}}')
        return 0

    engine.on("claude", agent)


def test_what_the_repository_at_the_top_has_is_known_when_the_rest_ends_the_scan(
    engine: FakeEngine, place: Place, wake: Wake, tmp_path: Path
) -> None:
    attacking(engine, place)
    lost = attacked(tmp_path, "os.killpg(os.getpgrp(), signal.SIGKILL)  # both halves")
    result = run_session(engine, plan(place), SILENT, wake, place.events.append, scanner=lost)
    assert result.guard is not None
    assert [(one.danger, one.path) for one in result.guard.findings] == [(1, ".git/hooks/pre-commit")]
    assert [gap for gap in result.guard.gaps if gap.startswith("only the repository at the top")]
    assert findings(place) == [(1, ".git/hooks/pre-commit")]
    report_orphans(engine, place.environ, place.events.append, scanner=PATIENT)  # which is about the rest, too
    assert (4, "package.json") in findings(place)
    assert sessions(place.environ) == []


def test_a_scan_that_fails_each_time_is_repeated_once(
    engine: FakeEngine, place: Place, wake: Wake, tmp_path: Path
) -> None:
    attacking(engine, place)
    lost = attacked(tmp_path, "os.killpg(os.getpgrp(), signal.SIGKILL)")
    run_session(engine, plan(place), SILENT, wake, place.events.append, scanner=lost)
    for _ in range(3):
        report_orphans(engine, place.environ, place.events.append, scanner=lost)
    assert findings(place) == [(1, ".git/hooks/pre-commit")] * 2
    assert sessions(place.environ) == []


def test_a_record_of_another_version_is_reported_and_removed(engine: FakeEngine, place: Place) -> None:
    recorded(engine, place)
    (record,) = guard_records(place.directory())
    with open(record, "rb") as file:
        data = marshal.load(file)
    data["snapshot"]["format"] = 1
    with open(record, "wb") as file:
        marshal.dump(data, file)
    for _ in range(2):
        report_orphans(engine, place.environ, place.events.append, scanner=PATIENT)
    assert place.kinds().count("guard.incomplete") == 1
    assert sessions(place.environ) == []


def test_a_file_that_never_ends_ends_the_scan_and_not_its_report(
    engine: FakeEngine, place: Place, wake: Wake, tmp_path: Path
) -> None:
    """The signal stands for the end of the scan's time."""
    attacking(engine, place)
    endless = attacked(tmp_path, "os.kill(os.getpid(), signal.SIGALRM)\n        while True: pass")
    result = run_session(engine, plan(place), SILENT, wake, place.events.append, scanner=endless)
    assert result.guard is not None
    found = [(one.danger, one.path) for one in result.guard.findings]
    assert found == [(1, ".git/hooks/pre-commit"), (4, "package.json")], "of the file every byte counts"
    assert [gap for gap in result.guard.gaps if gap.startswith("it took longer than")]
    assert sessions(place.environ) == []


def test_it_is_reported_when_no_process_can_be_started(engine: FakeEngine, place: Place, wake: Wake) -> None:
    in_an_archive = Scanner(script="/podbot.zip/podbot/guard/scan.py")
    assert run(engine, place, wake, ".envrc", scanner=in_an_archive).guard is None
    assert "guard.incomplete" in place.kinds()


def test_the_process_ends_with_podbot(place: Place) -> None:
    """It waits for the message to compare, and no process sends it."""
    record = os.path.join(place.base, "record")
    first = Child(
        {"what": "record", "session": "s", "workspace": place.workspace, "git": "", "record": record, "limits": {}}
    )
    assert first.answer(HANG) is not None
    job = scan.framed({"what": "compare", "record": record, "limits": {}})
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(scan.__file__)], input=job, capture_output=True, timeout=HANG, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_comparison_begins_when_nothing_runs_inside_any_more(place: Place) -> None:
    """And not before: files that are planted meanwhile are found. A closed pipe stands for the process."""
    record = os.path.join(place.base, "record")
    job = {"session": "s", "workspace": place.workspace, "git": "", "record": record, "limits": {}}
    assert Child({**job, "what": "record"}).answer(HANG) is not None
    ended, alive = os.pipe()
    child = Child({**job, "what": "compare"}, ended=ended)
    plant(place)
    os.close(alive)
    answer = child.answer(HANG)
    os.close(ended)
    assert answer is not None
    assert [finding.path for finding in left_of(answer).findings] == [".envrc"]


def test_the_process_knows_the_public_registries(place: Place) -> None:
    """They are the only thing that it takes from another room."""
    record = os.path.join(place.base, "record")
    job = {"session": "s", "workspace": place.workspace, "git": "", "record": record, "limits": {"seconds": HANG}}
    assert Child({**job, "what": "record"}).answer(HANG) is not None
    for name, host in (("yarn.lock", "<yarn>"), ("uv.lock", "x.example")):
        with open(os.path.join(place.workspace, name), "w", encoding="utf-8") as file:
            file.write(with_hosts(f'resolved "https://{host}/a/-/a-1.tgz"\n'))
    child = Child({**job, "what": "compare"})
    child.go()
    answer = child.answer(HANG)
    assert answer is not None
    assert answer["whole"]
    assert [finding.path for finding in left_of(answer).findings] == ["uv.lock"]


def test_no_process_is_left(engine: FakeEngine, place: Place, wake: Wake) -> None:
    before, handler = children(), signal.getsignal(signal.SIGALRM)
    run(engine, place, wake, ".envrc")
    no_more_children_than(before)  # tests before this one may have left some
    assert signal.getsignal(signal.SIGALRM) == handler
