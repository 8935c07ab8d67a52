"""One round of renewals: an outcome for each session, whatever happens."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
from collections.abc import Callable, Iterator

import pytest

from podbot.errors import EngineGone, TokenSessionMissing
from podbot.github.grant import Grant, grant_path
from podbot.github.lease import CLAIM, LEASE, FileLock
from podbot.github.status import Holder, TokenStatus
from podbot.github.token_file import TokenFile
from podbot.locks import is_held
from podbot.streams.wake import Interrupted, Signal, Wake
from podbot.testing import FakeEngine
from podbot.tokens.token_once import TokenRenewal, renew_once
from tests.session.granted import GitHub, granted, killed, running
from tests.session.plans import Place, kept
from tests.waiting import HANG


@pytest.fixture
def github() -> Iterator[GitHub]:
    made = GitHub()
    yield made
    made.gate.set()


Once = Callable[..., list[TokenRenewal]]


@pytest.fixture
def once(place: Place, engine: FakeEngine, github: GitHub) -> Iterator[Once]:
    wake = Wake()

    def call(*names: str, wake: Wake = wake) -> list[TokenRenewal]:
        return renew_once(
            place.environ,
            names,
            wake=wake,
            emit=place.events.append,
            connect=lambda _endpoint: engine,
            make_minter=github.minter,
        )

    yield call
    wake.close()


def outcomes(results: list[TokenRenewal]) -> dict[str, str]:
    return {result.session: result.outcome for result in results}


def test_without_sessions_there_is_no_result(once: Once) -> None:
    assert once() == []


def test_due_then_fresh(once: Once, place: Place, engine: FakeEngine, github: GitHub) -> None:
    with running(place, engine, "b"):
        killed(place, engine, "a")
        assert outcomes(once()) == {"a": "renewed", "b": "renewed"}
        (a, b) = once()
        assert (a.outcome, b.outcome, len(github.asked)) == ("fresh", "fresh", 2)
        assert a.expires_at
        for path in (place.directory("a"), place.directory("b")):
            assert not is_held(os.path.join(path, LEASE))
            assert not is_held(os.path.join(path, CLAIM))


def test_a_token_of_a_variable_is_left_to_its_own_podbot(
    once: Once, place: Place, engine: FakeEngine, github: GitHub
) -> None:
    with running(place, engine, "a") as path:
        grant = Grant.load(path)
        assert grant is not None
        borrowed = dataclasses.replace(grant, auth="env:MINE", app_id=0, installation_id=0, private_key_path="")
        borrowed.store(path)
        assert outcomes(once()) == {"a": "held"}
    assert github.asked == []


def test_a_token_that_another_process_renews_is_skipped(
    once: Once, place: Place, engine: FakeEngine, github: GitHub
) -> None:
    with running(place, engine, "a") as path:
        TokenStatus(expires_at=5.0, minted_at=1.0, minted_uptime=1.0, holder=Holder(77, "daemon")).store(path)
        with FileLock(os.path.join(path, LEASE)) as lease:
            assert lease.try_acquire()
            (only,) = once()
    assert (only.outcome, only.detail) == ("held", "the token-daemon (process 77) renews it")
    assert github.asked == []


def test_failures_are_outcomes(once: Once, place: Place, engine: FakeEngine, github: GitHub) -> None:
    path = killed(place, engine, "a")
    with open(grant_path(killed(place, engine, "b")), "w", encoding="utf-8") as file:
        file.write("no JSON")
    github.down = True
    a, b = once()
    assert (a.outcome, "cannot reach GitHub" in a.detail) == ("failed", True)
    assert (b.outcome, "not a grant" in b.detail) == ("failed", True)
    assert TokenFile(os.path.join(path, "secrets")).read() is None


def test_containers_that_do_not_run_get_nothing(once: Once, place: Place, engine: FakeEngine, github: GitHub) -> None:
    for name in ("gone", "stopped", "runs"):
        killed(place, engine, name)
    kept(engine, place, "kept")
    granted(place, engine, "kept")
    engine.die("kept")
    engine.remove("gone")
    engine.die("stopped")
    found = outcomes(once())
    assert found == {"gone": "stopped", "stopped": "stopped", "kept": "stopped", "runs": "renewed"}
    assert os.path.exists(place.directory("gone"))  # a check, not a clean-up


def test_an_engine_that_is_away(once: Once, place: Place, engine: FakeEngine, github: GitHub) -> None:
    killed(place, engine, "runs")
    kept(engine, place, "kept")
    granted(place, engine, "kept")
    engine.fail("containers", EngineGone(endpoint=engine.endpoint, reason="connection refused"))
    assert outcomes(once()) == {"kept": "stopped", "runs": "renewed"}
    assert place.kinds().count("daemon.engine_away") == 1


def test_names(once: Once, place: Place, engine: FakeEngine, github: GitHub) -> None:
    killed(place, engine, "a")
    killed(place, engine, "b")
    assert outcomes(once("b")) == {"b": "renewed"}
    with pytest.raises(TokenSessionMissing):
        once("a", "nobody")
    assert github.asked == ["octo/b"]


def test_a_signal_breaks_it_off_and_nothing_is_written(
    once: Once, place: Place, engine: FakeEngine, github: GitHub
) -> None:
    path = killed(place, engine, "a")
    github.gate.clear()
    wake = Wake()

    def interrupt() -> None:
        assert github.asking.wait(HANG)
        wake.post(Signal(signal.SIGTERM))

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    with pytest.raises(Interrupted):
        once(wake=wake)
    interrupting.join()
    assert github.answered == [], "the end waits for no answer"
    github.gate.set()
    for thread in threading.enumerate():
        if thread.name.startswith("podbot-github"):
            thread.join(HANG)
    assert TokenFile(os.path.join(path, "secrets")).read() is None
    assert not is_held(os.path.join(path, LEASE))
    wake.close()
