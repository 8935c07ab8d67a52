"""A clone's container is removed only when it contains no work that exists nowhere else."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import threading

import pytest

from podbot.errors import BranchNotFound, EngineGone, SandboxDied, StartFailed, UnsafeDirectory
from podbot.execution.runner import ExecIO, ExecStatus
from podbot.launch.resources.clone import ClonePlan
from podbot.launch.resources.token import SECRETS_DIRECTORY
from podbot.launch.types import Keep
from podbot.management.manage import StopResult, list_sessions, stop_sessions
from podbot.session.directory import session_directory, sessions
from podbot.session.flags import stopping
from podbot.session.restore import restore_mounts
from podbot.session.run import run_session
from podbot.streams.wake import Signal, Wake
from podbot.testing import ExecPeer, FakeEngine
from tests.launch.build import resource
from tests.session.clones import clone_labels, clone_plan, left_behind
from tests.session.plans import SESSION, Place, changed, container, kept, made
from tests.session.real import with_git
from tests.waiting import HANG

SILENT = ExecIO(None, None, None)


@pytest.fixture
def engine() -> FakeEngine:
    return with_git()


def work(peer: ExecPeer) -> int:
    """An agent that leaves a file and fails."""
    assert peer.spec.workdir is not None
    with open(os.path.join(peer.spec.workdir, "new"), "w", encoding="utf-8"):
        pass
    return 5


def notice(place: Place) -> str:
    return "".join(event.message for event in place.events if event.kind == "container.kept")


# --- at the agent's end -------------------------------------------------------------------------------


def test_a_clean_clone_is_removed(engine: FakeEngine, place: Place, wake: Wake) -> None:
    engine.on("claude", lambda _peer: 3)
    result = run_session(engine, clone_plan(place), SILENT, wake, place.events.append)
    assert (result.status, result.kept) == (ExecStatus(3), False)
    assert engine.by_name == {}
    assert sessions(place.environ) == []
    assert place.kinds()[-2:] == ["clone.examine", "container.removed"]


def test_unsaved_work_keeps_it_and_is_named(engine: FakeEngine, place: Place, wake: Wake) -> None:
    engine.on("claude", work)
    result = run_session(engine, clone_plan(place), SILENT, wake, place.events.append)
    assert (result.status, result.kept) == (ExecStatus(5), True)
    assert engine.inspect(SESSION).state == "exited"
    assert [(found.state, found.live) for found in sessions(place.environ)] == [("stopped", False)]
    assert "1 untracked file (new)" in notice(place)
    for command in (f"podbot start {SESSION}", f"podbot exec {SESSION} git status", f"podbot stop --rm {SESSION}"):
        assert f"`{command}`" in notice(place)


@pytest.mark.parametrize(("keep", "there"), [("always", True), ("never", False)])
def test_an_explicit_decision_is_followed_without_a_check(
    engine: FakeEngine, place: Place, wake: Wake, keep: Keep, there: bool
) -> None:
    engine.on("claude", work)
    result = run_session(engine, clone_plan(place, keep), SILENT, wake, place.events.append)
    assert (result.kept, SESSION in engine.by_name) == (there, there)
    assert "clone.examine" not in place.kinds()


def test_a_terminated_podbot_checks_as_well(engine: FakeEngine, place: Place, wake: Wake) -> None:
    def agent(peer: ExecPeer) -> int:
        work(peer)
        for number in (signal.SIGHUP, signal.SIGHUP):  # a terminal that closes can report it twice
            wake.post(Signal(number))
        peer.ended.wait(HANG)
        return 0

    engine.on("claude", agent)
    result = run_session(engine, clone_plan(place), SILENT, wake, place.events.append)
    assert result.status.signal == signal.SIGHUP
    assert "1 untracked file (new)" in notice(place)


def test_a_container_that_died_is_kept(engine: FakeEngine, place: Place, wake: Wake) -> None:
    def agent(_peer: ExecPeer) -> int:
        engine.die(SESSION)
        return 0

    engine.on("claude", agent)
    with pytest.raises(SandboxDied):
        run_session(engine, clone_plan(place), SILENT, wake, place.events.append)
    assert "perhaps unsaved work: it could not be examined" in notice(place)
    assert engine.inspect(SESSION).state == "exited"


def test_an_engine_that_stops_leaves_container_and_record(engine: FakeEngine, place: Place, wake: Wake) -> None:
    def agent(_peer: ExecPeer) -> int:
        engine.vanish()
        return 0

    engine.on("claude", agent)
    with pytest.raises(EngineGone):
        run_session(engine, clone_plan(place), SILENT, wake, place.events.append)
    assert SESSION in engine.by_name
    assert [found.session for found in sessions(place.environ)] == [SESSION]


def test_a_clone_that_failed_is_never_kept(engine: FakeEngine, place: Place, wake: Wake) -> None:
    plan = clone_plan(place, "always")
    plan = changed(plan, clone=dataclasses.replace(resource(plan, ClonePlan), branch="other"))
    with pytest.raises(BranchNotFound):
        run_session(engine, plan, SILENT, wake, place.events.append)
    assert engine.by_name == {}
    assert sessions(place.environ) == []


# --- podbot stop ---------------------------------------------------------------------------------------


def stopped(engine: FakeEngine, place: Place, *, remove_kept: bool = False) -> StopResult:
    found = stop_sessions(
        engine,
        place.environ,
        [SESSION],
        seconds=3,
        remove_kept=remove_kept,
        emit=place.events.append,
        release_seconds=HANG,
    )
    (result,) = found
    return result


@pytest.mark.parametrize("running", [True, False])
def test_stop_removes_a_clean_clone(engine: FakeEngine, place: Place, running: bool) -> None:
    left_behind(engine, place)
    if not running:
        engine.die(SESSION)
    assert stopped(engine, place) == StopResult(SESSION, removed=True)
    assert engine.by_name == {}
    assert sessions(place.environ) == []
    assert notice(place) == ""


@pytest.mark.parametrize("running", [True, False])
def test_stop_keeps_unsaved_work(engine: FakeEngine, place: Place, running: bool) -> None:
    directory = left_behind(engine, place)
    with open(os.path.join(directory, "new"), "w", encoding="utf-8"):
        pass
    if not running:
        engine.die(SESSION)
    assert stopped(engine, place) == StopResult(SESSION, removed=False)
    assert engine.inspect(SESSION).state == "exited"
    assert "1 untracked file (new)" in notice(place)
    assert [found.state for found in sessions(place.environ)] == ["stopped"]
    names = [name for name, _ in engine.calls if name in ("stop", "start", "exec_create")]
    assert names[-3:] == ["start", "exec_create", "stop"], "it is looked at without its agent"


def test_stop_rm_does_not_ask(engine: FakeEngine, place: Place) -> None:
    directory = left_behind(engine, place)
    with open(os.path.join(directory, "new"), "w", encoding="utf-8"):
        pass
    assert stopped(engine, place, remove_kept=True).removed
    assert engine.by_name == {}


def test_one_in_which_no_agent_ran_is_removed(engine: FakeEngine, place: Place) -> None:
    engine.create(container(SESSION, marks=clone_labels(place)))
    assert stopped(engine, place).removed


def test_a_container_that_started_while_others_were_stopped_is_checked(engine: FakeEngine, place: Place) -> None:
    made(engine, "zz-other", started=False)
    directory = left_behind(engine, place)
    info = engine.by_name[SESSION].info
    engine.by_name[SESSION].info = dataclasses.replace(info, state="created")
    results = stop_sessions(engine, place.environ, [], seconds=1, all_sessions=True, emit=place.events.append)
    assert next(results) == StopResult("zz-other", removed=True)
    engine.by_name[SESSION].info = info
    with open(os.path.join(directory, "new"), "w", encoding="utf-8"):
        pass
    assert next(results) == StopResult(SESSION, removed=False)
    assert "1 untracked file (new)" in notice(place)


@pytest.mark.parametrize(("keep", "removed"), [("always", False), ("never", True)])
def test_stop_with_an_explicit_decision(engine: FakeEngine, place: Place, keep: Keep, removed: bool) -> None:
    left_behind(engine, place, keep=keep)
    assert stopped(engine, place).removed is removed
    assert "exec_create" not in [name for name, _ in engine.calls]


def test_a_container_that_cannot_be_started_for_the_check_is_kept(engine: FakeEngine, place: Place) -> None:
    left_behind(engine, place)
    engine.fail("start", StartFailed(container=SESSION, reason="statfs: no such file"))
    assert not stopped(engine, place).removed
    assert "could not be started for the search" in notice(place)


def test_a_token_that_a_killed_podbot_left_is_removed(engine: FakeEngine, place: Place) -> None:
    directory = left_behind(engine, place)
    with open(os.path.join(directory, "new"), "w", encoding="utf-8"):
        pass
    restore_mounts(engine, place.environ, engine.inspect(SESSION))
    token = os.path.join(place.directory(), "secrets", "ghapp_token")
    with open(token, "w", encoding="ascii") as file:
        file.write("ghs_x")
    assert not stopped(engine, place).removed
    assert not os.path.exists(token)
    assert os.path.isdir(os.path.dirname(token))


@pytest.mark.parametrize("dirty", [True, False])
def test_a_live_sessions_own_podbot_leaves_it_to_stop(
    engine: FakeEngine, place: Place, wake: Wake, dirty: bool
) -> None:
    running = threading.Event()

    def agent(peer: ExecPeer) -> int:
        if dirty:
            work(peer)
        running.set()
        peer.ended.wait(HANG)
        return 0

    engine.on("claude", agent)
    plan = clone_plan(place)
    own: list[str] = []
    caught: list[BaseException] = []

    def live() -> None:
        try:
            run_session(engine, plan, SILENT, wake, lambda event: own.append(event.kind))
        except SandboxDied as exc:
            caught.append(exc)

    thread = threading.Thread(target=live)
    thread.start()
    assert running.wait(HANG)
    result = stopped(engine, place)
    thread.join(HANG)
    assert [type(exc) for exc in caught] == [SandboxDied]
    assert result.removed is not dirty
    assert not {"container.kept", "container.removed"} & set(own)
    assert (SESSION in engine.by_name) is dirty
    assert [found.session for found in sessions(place.environ)] == ([SESSION] if dirty else [])


def test_a_session_that_is_stopped_while_it_clones(engine: FakeEngine, place: Place, wake: Wake) -> None:
    cloning = threading.Event()

    def clone(peer: ExecPeer) -> int:
        cloning.set()
        peer.ended.wait(HANG)
        return 0

    engine.on("git", clone)
    plan = clone_plan(place)

    def live() -> None:
        with contextlib.suppress(SandboxDied):
            run_session(engine, plan, SILENT, wake, lambda event: None)

    thread = threading.Thread(target=live)
    thread.start()
    assert cloning.wait(HANG)
    assert stopped(engine, place) == StopResult(SESSION, removed=True)
    thread.join(HANG)
    assert engine.by_name == {}
    assert sessions(place.environ) == []
    assert notice(place) == ""


def test_an_interrupted_check_stops_the_container_again(engine: FakeEngine, place: Place) -> None:
    def interrupted(*_: object, **__: object) -> str:
        assert engine.inspect(SESSION).state == "running"
        raise KeyboardInterrupt

    left_behind(engine, place)
    engine.exec_create = interrupted  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        stopped(engine, place)
    assert engine.inspect(SESSION).state == "exited"


def test_a_mark_without_a_holder_does_not_count(place: Place) -> None:
    with session_directory(place.directory(), "x") as directory:
        assert not directory.being_stopped()
        with stopping(place.directory()), stopping(place.directory()):
            assert directory.being_stopped()
        assert not directory.being_stopped()
    with stopping(os.path.join(place.base, "nowhere")):
        pass
    assert not os.path.exists(os.path.join(place.base, "nowhere"))


# --- after a reboot ------------------------------------------------------------------------------------


def test_ps_restores_what_a_reboot_removed(engine: FakeEngine, place: Place) -> None:
    left_behind(engine, place)
    engine.die(SESSION)
    assert sessions(place.environ) == []
    (row,) = list_sessions(engine, place.environ, include_stopped=True)
    assert (row.path, row.workspace, row.orphan) == ("octo/shop", "github_clone", False)
    assert os.stat(os.path.join(place.directory(), SECRETS_DIRECTORY)).st_mode & 0o777 == 0o700
    assert [found.state for found in sessions(place.environ)] == ["stopped"]


def test_ps_makes_nothing_here_for_an_engine_elsewhere(engine: FakeEngine, place: Place) -> None:
    left_behind(engine, place)
    engine.die(SESSION)
    engine.local = False
    assert len(list_sessions(engine, place.environ, include_stopped=True)) == 1
    assert not os.path.exists(place.runtime)


def test_ps_does_not_change_the_others(engine: FakeEngine, place: Place) -> None:
    left_behind(engine, place, "running")
    kept(engine, place, "mounted")
    engine.die("mounted")
    list_sessions(engine, place.environ, include_stopped=True)
    assert [found.session for found in sessions(place.environ)] == ["mounted"]
    assert not os.path.exists(os.path.join(place.directory("mounted"), "secrets"))


def test_ps_does_not_report_a_runtime_directory_that_it_may_not_use(engine: FakeEngine, place: Place) -> None:
    left_behind(engine, place)
    engine.die(SESSION)
    os.makedirs(place.runtime)
    os.chmod(os.path.join(place.base, "run"), 0o777)
    assert len(list_sessions(engine, place.environ, include_stopped=True)) == 1
    os.makedirs(place.directory())
    with pytest.raises(UnsafeDirectory):
        restore_mounts(engine, place.environ, engine.inspect(SESSION))
