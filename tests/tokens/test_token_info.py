from __future__ import annotations

import os

from podbot.github.lease import LEASE, FileLock
from podbot.github.status import NAME, Holder, TokenStatus
from podbot.management.manage import list_sessions
from podbot.testing import FakeEngine
from podbot.tokens.token_info import STATUS, TokenHolder, TokenInfo, token_info, token_sessions
from tests.faults import GiveAway
from tests.session.granted import killed, running
from tests.session.plans import Place, made, orphaned

FRESH = TokenStatus(
    expires_at=5000.0, minted_at=1400.0, minted_uptime=1.0, next_renewal=4690.0, holder=Holder(77, "daemon")
)


def test_the_file_s_name_is_the_writer_s() -> None:
    assert STATUS == NAME


def test_sessions_of_another_user_are_not_shown(place: Place, engine: FakeEngine, give_away: GiveAway) -> None:
    killed(place, engine, "a")
    assert list(token_sessions(place.environ)) == ["a"]
    give_away(place.runtime)
    assert token_sessions(place.environ) == {}


def test_nothing_without_a_status(place: Place, engine: FakeEngine) -> None:
    path = killed(place, engine, "a")
    assert token_info(path) is None
    TokenStatus().store(path)
    assert token_info(path) is None
    with open(os.path.join(path, STATUS), "wb") as file:
        file.write(b"\xff{")
    assert token_info(path) is None


def test_a_holder_is_only_shown_while_it_holds_the_lock(place: Place, engine: FakeEngine) -> None:
    path = killed(place, engine, "a")
    FRESH.store(path)
    with FileLock(os.path.join(path, LEASE)) as lease:
        assert lease.try_acquire()
        assert token_info(path) == TokenInfo(5000.0, 1400.0, 4690.0, 0, None, TokenHolder(77, "daemon"))
    found = token_info(path)
    assert found is not None
    assert found.holder is None


def test_a_missing_first_token_is_reported(place: Place, engine: FakeEngine) -> None:
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
