"""A session's copy of a kept login: made before the container, followed while it runs, removed at its end."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.credentials.login_store import LoginStore
from podbot.events import Event
from podbot.frozen import replace
from podbot.launch.labels import LABEL
from podbot.launch.resources.login import LoginPlan
from podbot.session.login_copies import forget_copies, login_store, sweep, withdraw_copies
from podbot.session.resources.login import Resource
from podbot.session.resources.resource import Opening
from podbot.session.sessions import SessionDirectory, session_directory
from podbot.streams.wake import Wake
from podbot.testing import FakeEngine
from tests.credentials.logins import CODEX, changed, spec_of, value_at
from tests.session.plans import SESSION, Place, in_state, nest
from tests.waiting import wait_until

REFRESH = ("tokens", "refresh_token")
NAME = f"{SESSION}-20260801T120000Z"


class Bench:
    def __init__(self, place: Place, wake: Wake) -> None:
        self.place, self.wake = place, wake
        self.state = os.path.join(place.base, "state")
        os.mkdir(self.state, 0o700)
        self.root = os.path.join(self.state, "logins", "codex")
        self.store = login_store(self.root, "codex")
        self.store.save(json.dumps(CODEX).encode())
        self.plan = LoginPlan("codex", self.root, NAME)
        self.file = Path(self.plan.mounted, "auth.json")

    def resource(self, directory: SessionDirectory) -> Resource:
        engine = FakeEngine()
        session = Opening(engine, self.place.sandbox(), directory, self.wake, self.place.events.append)
        return Resource(self.plan, session, pause=0.01)

    def token(self) -> str:
        return str(value_at(Path(self.store.path).read_bytes(), REFRESH))


@pytest.fixture
def bench(place: Place) -> Iterator[Bench]:
    wake = Wake()
    yield Bench(place, wake)
    wake.close()


def renew(bench: Bench, token: str) -> None:
    write(bench, changed(CODEX, REFRESH, token))


def write(bench: Bench, data: bytes) -> None:
    """By a rename, so that the thread that follows the file sees no part of it."""
    new = bench.file.with_name("new")
    new.write_bytes(data)
    new.replace(bench.file)


def claimed(bench: Bench):  # type: ignore[no-untyped-def]
    return session_directory(bench.place.directory(), "unix:///fake")


def test_it_is_there_before_the_container_and_gone_after_it(bench: Bench) -> None:
    with claimed(bench) as directory, bench.resource(directory).opened():
        assert value_at(bench.file.read_bytes(), REFRESH) == "r"
    assert bench.store.names() == []
    assert bench.place.events == []


def test_a_renewal_is_kept_while_the_session_runs_and_at_its_end(bench: Bench) -> None:
    with claimed(bench) as directory, bench.resource(directory).opened():
        renew(bench, "r2")
        wait_until(lambda: bench.token() == "r2")
        renew(bench, "r3")
    assert bench.token() == "r3"


def test_a_renewal_by_another_session_arrives(bench: Bench) -> None:
    with claimed(bench) as directory, bench.resource(directory).opened():
        bench.store.hand_out("other")
        other = Path(bench.root, "sessions", "other", "login", "auth.json")
        other.write_bytes(changed(CODEX, REFRESH, "r2"))
        wait_until(lambda: value_at(bench.file.read_bytes(), REFRESH) == "r2")


def test_what_is_refused_is_reported_once_and_not_shown(bench: Bench) -> None:
    with claimed(bench) as directory, bench.resource(directory).opened():
        write(bench, changed(CODEX, ("tokens", "account_id"), "evil"))
        wait_until(lambda: bool(bench.place.events))
    assert bench.place.kinds() == ["login.refused"]
    assert "evil" not in repr(bench.place.events)
    assert bench.token() == "r"


def test_a_kept_container_has_no_login_until_it_is_started(bench: Bench) -> None:
    with claimed(bench) as directory, bench.resource(directory).opened():
        in_state(directory, "running")
        renew(bench, "r2")
    assert bench.store.names() == [NAME]
    assert not bench.file.exists()
    assert bench.token() == "r2"
    assert bench.store.hand_out(NAME)
    assert value_at(bench.file.read_bytes(), REFRESH) == "r2"


@pytest.fixture
def host(bench: Bench) -> Path:
    """The host's own login, which the bench's sessions follow."""
    file = Path(bench.place.base, "codex", "auth.json")
    file.parent.mkdir()
    file.write_text(json.dumps(CODEX))
    bench.root = os.path.join(bench.state, "logins", "codex.host")
    bench.store = login_store(bench.root, "codex")
    bench.plan = LoginPlan("codex", bench.root, NAME, of_host=True, source=str(file))
    bench.file = Path(bench.plan.mounted, "auth.json")
    return file


def test_a_copy_of_the_host_s_login_ends_with_its_session(bench: Bench, host: Path) -> None:
    with claimed(bench) as directory, bench.resource(directory).opened():
        assert value_at(bench.file.read_bytes(), REFRESH) == "r"
    assert sorted(os.listdir(bench.root)) == ["lock", "sessions"]
    assert json.loads(host.read_bytes()) == CODEX


def test_what_was_renewed_inside_is_not_replaced_by_the_host_s_older_login(bench: Bench, host: Path) -> None:
    with claimed(bench) as directory, bench.resource(directory).opened():
        renew(bench, "r2")
    with claimed(bench) as directory, bench.resource(directory).opened():
        assert value_at(bench.file.read_bytes(), REFRESH) == "r2"
    assert json.loads(host.read_bytes()) == CODEX, "a session changes nothing on the host"


@pytest.mark.parametrize("content", [None, b"{}", b"{", b'{"tokens": {}}'], ids=["removed", "empty", "cut", "blank"])
def test_a_login_that_the_host_no_longer_has_does_not_come_back(
    bench: Bench, host: Path, content: bytes | None
) -> None:
    with claimed(bench) as directory, bench.resource(directory).opened():
        in_state(directory, "running")
    host.unlink() if content is None else host.write_bytes(content)
    with claimed(bench) as directory, bench.resource(directory).opened():
        assert not bench.file.exists()
    assert bench.place.kinds() == ["login.gone"]
    assert not os.path.exists(bench.store.path)


def test_the_copy_can_be_without_the_token_that_renews_it(bench: Bench, host: Path) -> None:
    bench.plan = replace(bench.plan, renewable=False)
    with claimed(bench) as directory, bench.resource(directory).opened():
        assert value_at(bench.file.read_bytes(), REFRESH) == ""
        assert value_at(bench.file.read_bytes(), ("tokens", "access_token")) == "a"


def test_a_login_that_is_gone_is_a_warning(bench: Bench) -> None:
    bench.store.remove()
    with claimed(bench) as directory, bench.resource(directory).opened():
        assert not bench.file.exists()
    assert bench.place.kinds() == ["login.gone"]


def test_a_killed_session_s_renewal_is_taken_before_its_copy_is_removed(bench: Bench) -> None:
    bench.store.hand_out(NAME)
    renew(bench, "r2")
    os.makedirs(bench.place.directory(), 0o700)
    sweep(bench.store, bench.place.runtime)
    assert bench.store.names() == [NAME], "its session has a directory"
    os.rmdir(bench.place.directory())
    kept = os.path.join(bench.state, "kept", NAME)
    os.makedirs(kept)
    sweep(bench.store, bench.place.runtime)
    assert bench.store.names() == [NAME], "its container is kept"
    os.rmdir(kept)
    sweep(bench.store, bench.place.runtime)
    assert (bench.store.names(), bench.token()) == ([], "r2")


def test_a_live_session_with_another_runtime_directory_keeps_its_copy(bench: Bench, tmp_path: Path) -> None:
    with claimed(bench) as directory, bench.resource(directory).opened():
        sweep(bench.store, str(tmp_path))
        assert bench.store.names() == [NAME]
        renew(bench, "r2")
        wait_until(lambda: bench.token() == "r2")
    assert bench.store.names() == []


def test_a_removed_container_s_copy_is_removed_with_it(bench: Bench, engine: FakeEngine) -> None:
    bench.store.hand_out(NAME)
    renew(bench, "r2")
    found = engine.create(bench.place.sandbox().container)
    container = engine.inspect(found)
    assert container.labels[f"{LABEL}.created"] == "2026-08-01T12:00:00Z"
    environ = {**bench.place.environ, "XDG_STATE_HOME": os.path.join(bench.place.base, "home")}
    os.makedirs(environ["XDG_STATE_HOME"])
    os.rename(bench.state, os.path.join(environ["XDG_STATE_HOME"], "podbot"))
    withdraw_copies(environ, container)
    assert not Path(
        environ["XDG_STATE_HOME"], "podbot", "logins", "codex", "sessions", NAME, "login/auth.json"
    ).exists()
    forget_copies(environ, container)
    moved = LoginStore(os.path.join(environ["XDG_STATE_HOME"], "podbot", "logins", "codex"), spec_of("codex"))
    assert moved.names() == []
    assert value_at(Path(moved.path).read_bytes(), REFRESH) == "r2"


def test_a_tree_of_any_depth_in_a_copy_is_removed(bench: Bench) -> None:
    for end in ("session", "sweep"):
        if end == "session":
            with claimed(bench) as directory, bench.resource(directory).opened():
                nest(str(bench.file.parent))
        else:
            bench.store.hand_out(NAME)
            nest(str(bench.file.parent))
            sweep(bench.store, bench.place.runtime)
        assert bench.store.names() == []
        assert sorted(os.listdir(bench.root)) == ["lock", "login", "sessions"]


def test_events_name_no_token(bench: Bench) -> None:
    with claimed(bench) as directory, bench.resource(directory).opened():
        write(bench, b"not JSON")
        wait_until(lambda: bool(bench.place.events))
    (event,) = bench.place.events
    assert isinstance(event, Event)
    assert event.message.endswith("it is not JSON")
