from __future__ import annotations

import os

import pytest

from podbot.github.lease import LEASE, FileLock
from podbot.github.status import NAME, Holder, TokenStatus
from podbot.management.manage import list_sessions
from podbot.testing import FakeEngine
from podbot.tokens.token_info import STATUS, TokenHolder, TokenInfo, token_info, token_sessions
from tests.session.granted import killed, running
from tests.session.plans import Place, made, orphaned

FRESH = TokenStatus(
    expires_at=5000.0, minted_at=1400.0, minted_uptime=1.0, next_renewal=4690.0, holder=Holder(77, "daemon")
)


@pytest.fixture
def place(tmp_path: os.PathLike[str]) -> Place:
    return Place(os.fspath(tmp_path))


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


def test_the_file_s_name_is_the_writer_s() -> None:
    assert STATUS == NAME


def test_somebody_else_s_sessions_are_not_told(
    place: Place, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed(place, engine, "a")
    assert list(token_sessions(place.environ)) == ["a"]
    owner = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    assert token_sessions(place.environ) == {}


def test_nothing_without_a_status(place: Place, engine: FakeEngine) -> None:
    path = killed(place, engine, "a")
    assert token_info(path) is None
    TokenStatus().store(path)
    assert token_info(path) is None
    with open(os.path.join(path, STATUS), "wb") as file:
        file.write(b"\xff{")
    assert token_info(path) is None


def test_a_holder_is_one_that_holds(place: Place, engine: FakeEngine) -> None:
    path = killed(place, engine, "a")
    FRESH.store(path)
    with FileLock(os.path.join(path, LEASE)) as lease:
        assert lease.try_acquire()
        assert token_info(path) == TokenInfo(5000.0, 1400.0, 4690.0, 0, None, TokenHolder(77, "daemon"))
    found = token_info(path)
    assert found is not None
    assert found.holder is None


def test_a_first_token_that_never_came_is_told(place: Place, engine: FakeEngine) -> None:
    path = killed(place, engine, "a")
    TokenStatus(failures=2, error="connection refused").store(path)
    assert token_info(path) == TokenInfo(None, None, None, 2, "connection refused", None)


def test_ps_has_it_for_clones_only(place: Place, engine: FakeEngine) -> None:
    FRESH.store(killed(place, engine, "clone"))
    orphaned(engine, place, "mounted")
    made(engine, "elsewhere")
    found = {info.session: info.token for info in list_sessions(engine, place.environ, include_stopped=True)}
    assert found["clone"] is not None
    assert (found["mounted"], found["elsewhere"]) == (None, None)


def test_all_sessions_with_a_token_to_renew(place: Place, engine: FakeEngine) -> None:
    orphaned(engine, place, "mounted")
    with running(place, engine, "b"):
        FRESH.store(killed(place, engine, "a"))
        found = token_sessions(place.environ)
    assert list(found) == ["a", "b"]
    assert found["a"] is not None
    assert found["b"] is None
