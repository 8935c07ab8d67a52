"""The daemon's steps, with real files and locks, an engine in memory and a GitHub that is a Python object."""

from __future__ import annotations

import dataclasses
import os
import select
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from podbot.engine.endpoint import EngineRef
from podbot.errors import AmbiguousName, EngineGone, TokenSessionMissing
from podbot.events import Event
from podbot.github.clock import SYSTEM, Clock, SystemClock
from podbot.github.grant import Grant, grant_path, withdraw
from podbot.github.lease import CLAIM, LEASE, FileLock
from podbot.github.mint import Minter
from podbot.github.status import Holder, TokenStatus
from podbot.github.token_file import TokenFile
from podbot.locks import is_held
from podbot.session.flags import LOCK
from podbot.session.guarding import RECORD
from podbot.session.orphans import report_orphans
from podbot.testing import FakeEngine
from podbot.tokens import token_daemon
from podbot.tokens.token_daemon import TokenDaemon
from podbot.tokens.token_liveness import Connect
from podbot.tokens.token_watch import MakeMinter, find, find_named, give_back_memory
from tests.session.granted import GitHub, granted, killed, running
from tests.session.plans import Place, kept, made
from tests.waiting import HANG, attempts


@pytest.fixture
def github() -> Iterator[GitHub]:
    made = GitHub()
    yield made
    made.gate.set()


class World:
    """A daemon whose clock is the test's."""

    def __init__(
        self,
        place: Place,
        engine: FakeEngine,
        github: GitHub,
        names: tuple[str, ...] = (),
        *,
        connect: Connect | None = None,
        make_minter: MakeMinter | None = None,
        renewal_clock: Clock = SYSTEM,
    ) -> None:
        self.now = 1000.0
        self.events: list[Event] = []
        self.trims: list[float] = []
        os.makedirs(place.runtime, 0o700, exist_ok=True)
        self.daemon = TokenDaemon(
            place.runtime,
            names,
            emit=self.events.append,
            connect=connect or (lambda _endpoint: engine),
            make_minter=make_minter or github.minter,
            clock=lambda: self.now,
            renewal_clock=renewal_clock,
            trim=lambda: self.trims.append(self.now),
            slice_seconds=HANG,  # a step ticks all of its sessions, on a slow machine, too
        )

    def steps(self, until: Callable[[], object], *, stride: float = 0.0, hanging: bool = False) -> None:
        """Step, ``stride`` seconds of the daemon's clock at a time, until something is so.

        The clock stands while a call is in progress, however long its thread waits for a processor; ``hanging``: but
        not when there are some that never end.
        """
        for _ in attempts():
            self.daemon.step()
            if until():
                return
            idle = self.daemon.jobs.idle
            if not idle or not stride:
                select.select([self.daemon.jobs], [], [], 0.005 if hanging or idle else HANG)
            if idle or hanging:
                self.now += stride

    def after(self, seconds: float) -> None:
        """Let the daemon's clock go on, and all that this causes end."""
        self.now += seconds
        self.daemon.step()
        self.steps(lambda: self.daemon.jobs.idle)
        self.daemon.step()

    def kinds(self, *but: str) -> list[str]:
        return [event.kind for event in self.events if event.level != "debug" and event.kind not in but]


@pytest.fixture
def world(place: Place, engine: FakeEngine, github: GitHub) -> Iterator[World]:
    made = World(place, engine, github)
    yield made
    made.daemon.close()


def token(path: str) -> str | None:
    return TokenFile(os.path.join(path, "secrets")).read()


# --- sessions -------------------------------------------------------------------------------------


def test_a_running_session_gets_a_token_without_asking_an_engine(
    world: World, place: Place, engine: FakeEngine, github: GitHub
) -> None:
    with running(place, engine, "a") as path:
        engine.calls.clear()
        world.steps(lambda: token(path))
        world.after(0)
        assert token(path) == "ghs_a1"
        assert engine.calls == []
        status = TokenStatus.load(path)
        assert status is not None
        assert status.holder == (os.getpid(), "daemon")
        assert threading.get_ident() not in github.threads  # the loop waits for no server
    world.after(2)
    assert not world.daemon.watched


def test_a_token_of_a_variable_is_left_to_its_own_podbot(
    world: World, place: Place, engine: FakeEngine, github: GitHub
) -> None:
    with running(place, engine, "a") as path:
        grant = Grant.load(path)
        assert grant is not None
        borrowed = dataclasses.replace(grant, auth="env:MINE", app_id=0, installation_id=0, private_key_path="")
        borrowed.store(path)
        for _ in range(5):
            world.daemon.step()
            world.daemon.refresh()
        assert not is_held(os.path.join(path, "token.claim"))
    assert github.asked == []


def test_no_needless_mints_however_often_it_looks(
    world: World, place: Place, engine: FakeEngine, github: GitHub
) -> None:
    with running(place, engine, "a") as path:
        world.steps(lambda: token(path))
        for _ in range(50):
            world.after(5)
        world.daemon.refresh()
        world.after(0)
        assert github.asked == ["octo/a"]


def test_one_listing_serves_all_sessions_whose_podbot_is_gone(
    world: World, place: Place, engine: FakeEngine, github: GitHub
) -> None:
    paths = [killed(place, engine, name) for name in ("a", "b", "c")]
    engine.calls.clear()
    world.steps(lambda: all(token(path) for path in paths), stride=0.5)
    assert sorted(github.asked) == ["octo/a", "octo/b", "octo/c"]
    assert engine.calls == [("containers", "io.podbot.managed=true")]


def test_engines_are_asked_less_and_less_often(world: World, place: Place, engine: FakeEngine) -> None:
    path = killed(place, engine, "a")
    world.steps(lambda: token(path), stride=0.5)
    engine.calls.clear()
    for _ in range(720):  # an hour
        world.after(5)
    assert 6 <= len(engine.calls) <= 14  # an idle engine service may exit: it is not contacted for 10 minutes at a time


def test_a_dead_session_is_dropped_and_its_token_removed(
    world: World, place: Place, engine: FakeEngine, github: GitHub
) -> None:
    path = killed(place, engine, "a")
    world.steps(lambda: token(path), stride=0.5)
    engine.remove("a")
    world.steps(lambda: not os.path.exists(grant_path(path)), stride=5)
    assert world.kinds() == ["daemon.dropped"]
    assert (token(path), TokenStatus.load(path)) == (None, None)
    world.after(2)
    assert not world.daemon.watched
    assert len(github.asked) == 1


def test_what_the_agent_left_is_reported_after_the_daemon_has_dropped_a_session(
    world: World, place: Place, engine: FakeEngine
) -> None:
    """Also when nothing else noticed that its podbot was killed."""
    path = killed(place, engine, "a")
    Path(path, RECORD).write_bytes(b"the first scan")
    engine.remove("a")
    world.steps(lambda: world.kinds() == ["daemon.dropped"], stride=1)
    report_orphans(engine, place.environ, place.events.append)
    assert place.kinds()[-1] == "guard.incomplete", "the record, which is malformed here, was looked at"
    assert not os.path.exists(path)


def test_an_answer_about_an_earlier_session_of_that_name_does_not_count(
    world: World, place: Place, engine: FakeEngine
) -> None:
    path = killed(place, engine, "a")
    engine.remove("a")
    world.steps(lambda: world.kinds() == ["daemon.dropped"], stride=1)
    report_orphans(engine, place.environ, place.events.append)
    world.after(100)
    assert not world.daemon.watched
    killed(place, engine, "a")
    world.now += 3600
    world.steps(lambda: token(path), stride=0.5)
    assert world.kinds() == ["daemon.dropped"]


def test_no_token_is_issued_for_a_removed_container(
    world: World, place: Place, engine: FakeEngine, github: GitHub
) -> None:
    path = killed(place, engine, "a")
    engine.remove("a")
    world.steps(lambda: not os.path.exists(grant_path(path)), stride=1)
    assert github.asked == []


def test_the_engine_is_asked_again_before_a_new_token(
    world: World, place: Place, engine: FakeEngine, github: GitHub
) -> None:
    path = killed(place, engine, "a")
    world.steps(lambda: token(path), stride=0.5)
    engine.remove("a")
    os.unlink(os.path.join(path, "secrets", "ghapp_token"))  # so that it is due
    minted = len(github.asked)
    asked = world.daemon.engines.asked[EngineRef(engine.endpoint)]
    asked.every = 600  # it is not the usual question that finds out
    world.now = asked.answered + token_daemon.RECENT + 1
    world.steps(lambda: not os.path.exists(grant_path(path)), stride=0.5)
    assert len(github.asked) == minted
    assert world.now < asked.at + 500


def test_a_stopped_container_is_skipped_until_it_runs_again(
    world: World, place: Place, engine: FakeEngine, github: GitHub
) -> None:
    path = killed(place, engine, "a")
    world.steps(lambda: token(path), stride=0.5)
    engine.die("a")
    world.steps(lambda: world.kinds() == ["daemon.dropped"], stride=5)
    assert os.path.exists(path)
    assert token(path) is None  # it must not be found
    assert TokenStatus.load(path) is None
    world.after(token_daemon.LOOK)
    assert world.daemon.summary == "renewing 0 of 0 tokens"
    assert not is_held(os.path.join(path, LEASE))
    engine.start("a")
    world.daemon.refresh()
    world.steps(lambda: token(path), stride=1)
    engine.die("a")
    world.daemon.refresh()
    world.steps(lambda: token(path) is None, stride=1)
    engine.remove("a")
    world.daemon.refresh()
    world.steps(lambda: not os.path.exists(grant_path(path)), stride=1)


def test_a_name_that_a_podbot_holds_is_never_removed(world: World, place: Place, engine: FakeEngine) -> None:
    with running(place, engine, "a") as path:
        world.steps(lambda: token(path))
        engine.remove("a")
        world.daemon.refresh()
        world.after(60)
        assert os.path.exists(grant_path(path))
        assert not world.kinds()


def test_an_unavailable_engine_ends_nothing(world: World, place: Place, engine: FakeEngine, github: GitHub) -> None:
    path = killed(place, engine, "a")
    engine.fail("containers", EngineGone(endpoint=engine.endpoint, reason="connection refused"), times=3)
    world.steps(lambda: token(path), stride=0.5)
    assert world.kinds() == ["daemon.engine_away"]
    for _ in range(40):
        world.after(30)
    assert world.kinds() == ["daemon.engine_away", "daemon.engine_back"]
    assert os.path.exists(path)
    assert len(github.asked) == 1


def test_a_stopped_session_stays_stopped_when_the_engine_is_unavailable(
    world: World, place: Place, engine: FakeEngine, github: GitHub
) -> None:
    path = killed(place, engine, "a")
    world.steps(lambda: token(path), stride=0.5)
    engine.die("a")
    world.steps(lambda: token(path) is None, stride=5)
    engine.fail("containers", EngineGone(endpoint=engine.endpoint, reason="connection refused"), times=None)
    for _ in range(30):
        world.after(60)
    assert (token(path), len(github.asked)) == (None, 1)


def test_an_error_with_a_directory_ends_nothing(world: World, place: Place, engine: FakeEngine, github: GitHub) -> None:
    a, b = killed(place, engine, "a"), killed(place, engine, "b")
    world.steps(lambda: token(a) and token(b), stride=0.5)
    os.unlink(os.path.join(a, LOCK))
    os.mkdir(os.path.join(a, LOCK))  # without the lock it cannot be removed
    engine.remove("a")
    world.daemon.refresh()
    for _ in range(5):
        world.after(10)
    assert "daemon.trouble" in world.kinds()
    assert world.daemon.watched["b"].renewer is not None


def test_a_kept_session_is_renewed_only_if_the_engine_reports_it_as_running(
    world: World, place: Place, engine: FakeEngine, github: GitHub
) -> None:
    kept(engine, place, "a")
    granted(place, engine, "a")
    path = place.directory("a")
    engine.fail("containers", EngineGone(endpoint=engine.endpoint, reason="connection refused"), times=None)
    for _ in range(30):
        world.after(60)
    assert github.asked == []  # podbot stopped it: that is known better than "unknown"
    assert os.path.exists(path)
    engine.fail("containers", EngineGone(endpoint="", reason=""), times=0)
    world.daemon.refresh()
    world.steps(lambda: token(path), stride=1)
    engine.fail("containers", EngineGone(endpoint=engine.endpoint, reason="connection refused"), times=None)
    for _ in range(30):
        world.after(60)
    assert token(path)
    assert not world.daemon.watched["a"].resting


def test_one_engine_away_and_the_other_not(place: Place, engine: FakeEngine, github: GitHub) -> None:
    away = FakeEngine(endpoint="unix:///away.sock")
    paths = [killed(place, engine, "a"), killed(place, away, "b")]
    away.vanish()
    engines = {EngineRef(found.endpoint): found for found in (engine, away)}
    world = World(place, engine, github, connect=engines.__getitem__)
    world.steps(lambda: all(token(path) for path in paths), stride=0.5)
    world.daemon.close()


def test_an_engine_with_an_invalid_listing_ends_nothing(place: Place, engine: FakeEngine, github: GitHub) -> None:
    path = killed(place, engine, "a")

    def broken(_engine: EngineRef) -> FakeEngine:
        raise KeyError("bug")

    world = World(place, engine, github, connect=broken)
    world.steps(lambda: token(path), stride=0.5)
    assert "unexpected KeyError" in world.events[[e.kind for e in world.events].index("daemon.engine_away")].message
    world.daemon.close()


# --- trouble --------------------------------------------------------------------------------------


def test_a_hanging_server_blocks_no_other_and_no_signal(place: Place, engine: FakeEngine) -> None:
    slow, quick = GitHub(), GitHub()
    slow.gate.clear()

    def minter(grant: Grant) -> Minter:
        return (slow if grant.api_url.endswith("slow") else quick).minter(grant)

    world = World(place, engine, quick, make_minter=minter)
    with running(place, engine, "z") as path:
        for number in range(20):
            name = f"s{number}"
            killed(place, engine, name)
            granted(place, engine, name, api_url="https://api.slow")
        world.steps(lambda: token(path), stride=0.5, hanging=True)
        assert len(slow.asked) <= token_daemon.PER_LANE
        world.daemon.close()
        assert slow.answered == [], "the end waits for no answer"
    assert not any(is_held(os.path.join(place.directory(f"s{n}"), lock)) for n in range(20) for lock in (LEASE, CLAIM))
    slow.gate.set()
    for thread in threading.enumerate():
        if thread.name.startswith("podbot-github"):
            thread.join(HANG)
    # too late: not written by a current process
    assert not any(token(place.directory(f"s{number}")) for number in range(20))


class LoopClock(SystemClock):
    """Counts as the loop's clock does, so that no test waits for the pauses between renewals."""

    def __init__(self) -> None:
        self.uptime: Callable[[], float] = time.monotonic

    def monotonic(self) -> float:
        return self.uptime()


def test_failures_and_their_end_are_reported_once(place: Place, engine: FakeEngine, github: GitHub) -> None:
    clock = LoopClock()
    world = World(place, engine, github, renewal_clock=clock)
    clock.uptime = lambda: world.now
    github.down = True
    with running(place, engine, "a") as path:
        world.steps(lambda: len(github.asked) >= 4, stride=1)
        github.down = False
        world.steps(lambda: token(path), stride=1)
        world.after(0)
    assert world.kinds("token.expired") == ["token.renewal_failed", "token.renewed_again"]
    world.daemon.close()


def test_a_grant_that_cannot_be_read_rests_until_it_changes(
    world: World, place: Place, engine: FakeEngine, github: GitHub
) -> None:
    with running(place, engine, "good") as good, running(place, engine, "bad") as bad:
        with open(grant_path(bad), "w", encoding="utf-8") as file:
            file.write('{"version": 99}')
        world.steps(lambda: token(good))
        world.after(60)
        assert world.kinds() == ["daemon.trouble"]
        assert github.asked == ["octo/good"]
        granted(place, engine, "bad")
        world.steps(lambda: token(bad), stride=1)


def test_a_bug_in_one_session_does_not_end_the_others(place: Place, engine: FakeEngine, github: GitHub) -> None:
    def minter(grant: Grant) -> Minter:
        if grant.repo == "octo/bad":
            raise ZeroDivisionError
        return github.minter(grant)

    world = World(place, engine, github, make_minter=minter)
    with running(place, engine, "bad"), running(place, engine, "good") as good:
        world.steps(lambda: token(good))
        world.after(60)
        world.after(60)
        assert world.kinds() == ["daemon.trouble"]
    world.daemon.close()


def test_without_a_runtime_directory_there_is_no_session(world: World, place: Place) -> None:
    os.rmdir(place.runtime)
    world.after(5)
    assert not world.daemon.watched


def test_memory_is_given_back_after_a_burst_and_then_rarely(
    world: World, place: Place, engine: FakeEngine, github: GitHub
) -> None:
    with running(place, engine, "a") as a, running(place, engine, "b") as b:
        world.steps(lambda: token(a) and token(b))
        for _ in range(30):
            world.after(10)
        assert len(world.trims) == 1
        os.unlink(os.path.join(a, "secrets", "ghapp_token"))  # so that it is minted again
        for _ in range(4):
            world.after(10)
        assert len(world.trims) == 2
    give_back_memory()


# --- more than one --------------------------------------------------------------------------------


def test_the_lease_of_run_is_waited_for_while_the_claim_is_held(
    world: World, place: Place, engine: FakeEngine, github: GitHub
) -> None:
    with running(place, engine, "a") as path:
        lease = FileLock(os.path.join(path, LEASE))
        assert lease.try_acquire()
        world.after(0)
        world.after(2)
        assert is_held(os.path.join(path, CLAIM))
        assert github.asked == []
        lease.release()
        world.steps(lambda: token(path), stride=1)


def test_a_second_daemon_waits_and_takes_over(world: World, place: Place, engine: FakeEngine, github: GitHub) -> None:
    with running(place, engine, "a") as path:
        world.steps(lambda: token(path))
        world.after(0)
        status = TokenStatus.load(path)
        assert status is not None
        dataclasses.replace(status, holder=Holder(1, "daemon")).store(path)  # as if the first were another process
        second = World(place, engine, github)
        for _ in range(5):
            second.after(5)
        assert second.kinds() == ["daemon.standby"]
        world.daemon.close()
        for _ in range(3):
            second.after(5)
        assert second.kinds() == ["daemon.standby", "daemon.alone"]
        assert second.daemon.watched["a"].renewer is not None
        assert second.daemon.watched["a"].renewer.writing
        assert github.asked == ["octo/a"]  # taken over with the existing token
        second.daemon.close()


def test_a_withdrawn_session_is_released(world: World, place: Place, engine: FakeEngine) -> None:
    with running(place, engine, "a") as path:
        world.steps(lambda: token(path))
        withdraw(path)
        world.after(2)
        assert not world.daemon.watched
        assert not is_held(os.path.join(path, LEASE))
        assert not is_held(os.path.join(path, CLAIM))


def test_a_directory_that_was_made_again_is_another_session(
    world: World, place: Place, engine: FakeEngine, github: GitHub
) -> None:
    with running(place, engine, "a") as path:
        world.steps(lambda: token(path))
    engine.remove("a")
    with running(place, engine, "a") as path:
        later = os.stat(grant_path(path)).st_mtime_ns + 10**9  # a quick machine makes both within one tick of its clock
        os.utime(grant_path(path), ns=(later, later))
        world.steps(lambda: token(path), stride=1)
        assert github.asked == ["octo/a", "octo/a"]


# --- named ----------------------------------------------------------------------------------------


def test_only_the_named_ones(place: Place, engine: FakeEngine, github: GitHub) -> None:
    with running(place, engine, "a") as a, running(place, engine, "b") as b:
        world = World(place, engine, github, ("b",))
        world.steps(lambda: token(b))
        assert (token(a), list(world.daemon.watched)) == (None, ["b"])
        world.daemon.close()


def test_a_part_of_a_name_is_enough(place: Place, engine: FakeEngine) -> None:
    for name in ("podbot-shop-1a2b3c", "podbot-api-1a2b3c", "podbot-api-9d8e7f"):
        killed(place, engine, name)
    assert list(find_named(place.runtime, ("shop",))) == ["podbot-shop-1a2b3c"]
    with pytest.raises(AmbiguousName, match="podbot-api-1a2b3c, podbot-api-9d8e7f"):
        find_named(place.runtime, ("api",))


@pytest.mark.parametrize("name", ["nobody", "../x", "", ".", "clone-less"])
def test_a_name_without_a_token_is_an_error(place: Place, engine: FakeEngine, name: str) -> None:
    killed(place, engine, "a")
    withdraw(killed(place, engine, "clone-less"))
    with pytest.raises(TokenSessionMissing) as caught:
        find_named(place.runtime, ("a", name))
    assert caught.value.session == name
    assert (caught.value.reason == "the session has none") == (name == "clone-less")


def test_other_names_are_not_found(place: Place, engine: FakeEngine) -> None:
    made(engine, "x")
    killed(place, engine, "a")
    os.makedirs(os.path.join(place.runtime, ".gone-x"))
    for name in (".gone-x", "plain"):
        os.makedirs(os.path.join(place.runtime, name), exist_ok=True)
    with open(os.path.join(place.runtime, ".gone-x", "token.json"), "w", encoding="utf-8"):
        pass
    with open(os.path.join(place.runtime, "file"), "w", encoding="utf-8"):
        pass
    assert list(find(place.runtime)) == ["a"]
    assert find("/nowhere/at/all") == {}


# --- words ----------------------------------------------------------------------------------------


def test_the_line_for_the_service_manager(world: World, place: Place, engine: FakeEngine, github: GitHub) -> None:
    assert world.daemon.summary == "starting"
    with running(place, engine, "a") as path:
        world.steps(lambda: token(path))
        world.after(5)
        assert world.daemon.summary.startswith("renewing 1 of 1 tokens; next renewal at ")


def test_every_session_s_grant_is_read_once(world: World, place: Place, engine: FakeEngine) -> None:
    with running(place, engine, "a") as path:
        world.steps(lambda: token(path))
        there = os.stat(grant_path(path))
        with open(grant_path(path), "r+b") as file:  # a process that reads it again gets an error
            file.write(b"no grant")
        os.utime(grant_path(path), ns=(there.st_atime_ns, there.st_mtime_ns))
        for _ in range(20):
            world.after(5)
        assert world.kinds() == []
        assert world.daemon.watched["a"].trouble == ""
        assert token(path)
        world.daemon.refresh()
        os.utime(grant_path(path), ns=(there.st_atime_ns, there.st_mtime_ns + 1))  # another version
        world.after(5)
        assert world.kinds() == ["daemon.trouble"]
