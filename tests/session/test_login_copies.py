"""A session's copy of a kept login: made before the container, followed while it runs, removed at its end."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from podbot.credentials.login_store import LoginStore
from podbot.events import Event
from podbot.frozen import replace
from podbot.hosting.ending import Job, remove_session
from podbot.launch.names import LABEL
from podbot.launch.resources.login import LoginPlan
from podbot.launch.types import Keep
from podbot.session.abandoned import remove_abandoned
from podbot.session.directory import SessionDirectory, left_session, session_directory
from podbot.session.login_copies import (
    end_host_copy,
    forget_copies,
    host_copy,
    login_store,
    sweep,
    sweep_host,
    withdraw_copies,
)
from podbot.session.orphans import report_orphans
from podbot.session.record import SessionRecord
from podbot.session.resources.login import Resource
from podbot.session.resources.resource import Opening
from podbot.session.restore import settle_stopped
from podbot.streams.wake import Wake
from podbot.testing import FakeEngine
from tests.credentials.logins import CODEX, changed, spec_of, value_at
from tests.session.plans import SESSION, Place, container, in_state, labels, nest
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


def test_a_kept_container_keeps_its_copy(bench: Bench) -> None:
    with claimed(bench) as directory, bench.resource(directory).opened():
        in_state(directory, "running")
        renew(bench, "r2")
    assert bench.store.names() == [NAME]
    assert bench.token() == "r2"


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
    forget_copies(environ, container.name, container.labels[f"{LABEL}.created"])
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


# --- a copy of the host's login (ADR 0048) ---


@pytest.fixture
def host(bench: Bench) -> Path:
    """The host's own login, of which the bench's session gets a copy."""
    file = Path(bench.place.base, "codex", "auth.json")
    file.parent.mkdir()
    file.write_text(json.dumps(CODEX))
    bench.root = os.path.join(bench.state, "logins", "codex.host", NAME)
    bench.store = host_copy(bench.root, "codex")
    bench.plan = LoginPlan("codex", bench.root, NAME, of_host=True, source=str(file))
    bench.file = Path(bench.plan.mounted, "auth.json")
    return file


def kept(bench: Bench, token: str = "") -> None:
    """A session that is kept, whose agent renewed the login to ``token``."""
    with claimed(bench) as directory, bench.resource(directory).opened():
        in_state(directory, "running")
        if token:
            renew(bench, token)


def test_a_copy_of_the_host_s_login_ends_with_its_session(bench: Bench, host: Path) -> None:
    with claimed(bench) as directory, bench.resource(directory).opened():
        assert value_at(bench.file.read_bytes(), REFRESH) == "r"
    assert os.listdir(os.path.dirname(bench.root)) == []
    assert json.loads(host.read_bytes()) == CODEX
    assert bench.place.events == []


def test_a_kept_session_has_no_copy_until_it_is_started(bench: Bench, host: Path) -> None:
    kept(bench)
    assert not bench.file.exists()
    assert not os.path.exists(bench.store.path)
    with claimed(bench) as directory, bench.resource(directory).opened():
        assert value_at(bench.file.read_bytes(), REFRESH) == "r"


def test_what_was_renewed_inside_is_not_replaced_by_the_host_s_older_login(bench: Bench, host: Path) -> None:
    kept(bench, "r2")
    with claimed(bench) as directory, bench.resource(directory).opened():
        assert value_at(bench.file.read_bytes(), REFRESH) == "r2"
    assert json.loads(host.read_bytes()) == CODEX, "a session changes nothing on the host"


def test_no_session_sees_what_another_renewed(bench: Bench, host: Path) -> None:
    kept(bench, "r2")
    other = "other-20260801T120000Z"
    plan = replace(bench.plan, name=other, store=os.path.join(os.path.dirname(bench.root), other))
    bench.plan, bench.file = plan, Path(plan.mounted, "auth.json")
    os.makedirs(os.path.join(bench.state, "kept", NAME))
    with claimed(bench) as directory, bench.resource(directory).opened():
        assert value_at(bench.file.read_bytes(), REFRESH) == "r"


def test_a_renewal_on_the_host_reaches_the_running_session(bench: Bench, host: Path) -> None:
    with claimed(bench) as directory, bench.resource(directory).opened():
        host.write_bytes(b"")  # as a program that does not replace the file leaves it for a moment
        host.write_bytes(changed(CODEX, REFRESH, "r2"))
        wait_until(lambda: value_at(bench.file.read_bytes(), REFRESH) == "r2")


def test_a_renewal_on_the_host_that_could_not_be_taken_is_taken_later(bench: Bench, host: Path) -> None:
    with claimed(bench) as directory, bench.resource(directory).opened():
        lock = Path(bench.root, "lock")
        lock.unlink()
        lock.mkdir()
        host.write_bytes(changed(CODEX, REFRESH, "r2"))
        wait_until(lambda: bench.place.kinds() == ["login.not_kept"])
        lock.rmdir()
        wait_until(lambda: value_at(bench.file.read_bytes(), REFRESH) == "r2")


def test_a_login_that_the_host_no_longer_has_does_not_come_back(bench: Bench, host: Path) -> None:
    kept(bench, "r2")
    host.unlink()
    with claimed(bench) as directory, bench.resource(directory).opened():
        assert not bench.file.exists()
    assert bench.place.kinds() == ["login.gone"]


@pytest.mark.parametrize("content", [b"{}", b"{", b'{"tokens": {}}'], ids=["empty", "cut", "blank"])
@pytest.mark.parametrize("token", ["", "r2"], ids=["as it was given", "renewed"])
def test_a_file_without_a_login_ends_only_one_that_was_not_renewed(
    bench: Bench, host: Path, content: bytes, token: str
) -> None:
    kept(bench, token)
    host.write_bytes(content)
    with claimed(bench) as directory, bench.resource(directory).opened():
        assert bench.file.exists() is bool(token)


@pytest.mark.parametrize("token", ["", "r2"], ids=["as it was given", "renewed"])
def test_a_host_whose_login_lies_elsewhere_says_nothing_about_it(bench: Bench, host: Path, token: str) -> None:
    """As `podbot start` without the CODEX_HOME with which the session was made."""
    kept(bench, token)
    bench.plan = replace(bench.plan, is_there=False)
    with claimed(bench) as directory, bench.resource(directory).opened():
        assert bench.file.exists() is bool(token)
    assert bench.place.kinds() == ([] if token else ["login.gone"])


def test_the_copy_can_be_without_the_token_that_renews_it(bench: Bench, host: Path) -> None:
    bench.plan = replace(bench.plan, renewable=False)
    with claimed(bench) as directory, bench.resource(directory).opened():
        assert value_at(bench.file.read_bytes(), REFRESH) == ""
        assert value_at(bench.file.read_bytes(), ("tokens", "access_token")) == "a"


def test_a_copy_that_cannot_be_removed_prevents_no_other_session(bench: Bench, host: Path) -> None:
    stores = os.path.dirname(bench.root)
    os.makedirs(stores, 0o700)
    os.symlink(bench.place.base, os.path.join(stores, "dead-20260101T000000Z"))
    Path(stores, "file").touch()
    with claimed(bench) as directory, bench.resource(directory).opened():
        assert bench.file.exists()


def test_copies_of_sessions_that_were_killed_are_removed(bench: Bench, host: Path) -> None:
    stores = os.path.dirname(bench.root)
    copy = host_copy(bench.root, "codex")
    copy.follow(json.dumps(CODEX).encode())
    copy.hand_out(NAME)
    os.makedirs(os.path.join(stores, ".gone-x", "deep"))
    for directory in (bench.place.directory(), os.path.join(bench.state, "kept", NAME)):
        os.makedirs(directory, 0o700)
        sweep_host(stores, "codex", bench.place.runtime, but="")
        assert os.listdir(stores) == [NAME]
        os.rmdir(directory)
    with copy.in_use(NAME):
        sweep_host(stores, "codex", bench.place.runtime, but="")
    sweep_host(stores, "codex", bench.place.runtime, but=NAME)
    assert os.listdir(stores) == [NAME]
    nest(str(bench.file.parent))
    sweep_host(stores, "codex", bench.place.runtime, but="")
    assert os.listdir(stores) == []


def test_a_stopped_and_a_removed_session_are_known_by_their_names(bench: Bench, host: Path) -> None:
    environ = {**bench.place.environ, "XDG_STATE_HOME": os.path.join(bench.place.base, "home")}
    moved = os.path.join(environ["XDG_STATE_HOME"], "podbot", "logins", "codex.host", NAME)
    os.makedirs(environ["XDG_STATE_HOME"])
    copy = host_copy(bench.root, "codex")
    copy.follow(json.dumps(CODEX).encode())
    copy.hand_out(NAME)
    os.rename(bench.state, os.path.join(environ["XDG_STATE_HOME"], "podbot"))
    withdraw_copies(environ, SESSION, "2026-07-31T00:00:00Z")
    assert os.path.exists(os.path.join(moved, "login")), "an earlier session of that name"
    withdraw_copies(environ, SESSION, "2026-08-01T12:00:00Z")
    assert not os.path.exists(os.path.join(moved, "login"))
    forget_copies(environ, SESSION, "2026-08-01T12:00:00Z")
    assert not os.path.exists(moved)
    end_host_copy(host_copy(moved, "codex"))


# --- every end of a session that has such a copy ---

CREATED = "2026-08-01T12:00:00Z"


@dataclass(frozen=True)
class Copied:
    """A session in state ``running`` with a copy of the host's login, whose podbot is gone."""

    place: Place
    engine: FakeEngine
    environ: dict[str, str]
    marks: dict[str, str]
    root: Path

    @property
    def is_logged_in(self) -> bool:
        return (self.root / "sessions" / NAME / "login" / "auth.json").exists() or (self.root / "login").exists()


@pytest.fixture
def copied(place: Place, engine: FakeEngine, tmp_path: Path) -> Copied:
    environ = {**place.environ, "XDG_STATE_HOME": str(tmp_path)}
    tmp_path.chmod(0o700)
    marks = labels(SESSION, keep="true") | {f"{LABEL}.created": CREATED}
    engine.start(engine.create(container(SESSION, marks=marks)))
    record = SessionRecord(SESSION, engine.endpoint, "claimed", created=CREATED)
    with session_directory(place.directory(), engine.endpoint, record=record) as directory:
        in_state(directory, "running")
    root = tmp_path / "podbot" / "logins" / "codex.host" / NAME
    copy = host_copy(str(root), "codex")
    copy.follow(json.dumps(CODEX).encode())
    assert copy.hand_out(NAME)
    return Copied(place, engine, environ, marks, root)


def test_a_copy_goes_with_a_container_that_the_engine_s_own_command_removed(copied: Copied) -> None:
    files = Path(copied.environ["XDG_STATE_HOME"], "podbot", "kept", NAME)
    files.mkdir(parents=True)
    copied.engine.remove(SESSION)
    report_orphans(copied.engine, copied.environ, copied.place.events.append)
    assert not copied.root.exists()
    assert not files.exists()


@pytest.mark.parametrize("keep", ["never", "always"])
def test_the_helper_of_a_hosted_session_ends_its_copy(copied: Copied, keep: Keep) -> None:
    with left_session(copied.place.directory()) as directory:
        assert directory is not None
        directory.handed_over = True
        job = Job(
            directory=directory.path, endpoint=copied.engine.endpoint, engine="fake", lock=directory.lock,
            container=SESSION, labels=copied.marks, keep=keep, clone=None, files=None, exec_id="", connection=-1,
            state={}, hurried=False,
        )  # fmt: skip
        remove_session(copied.engine, job, copied.environ)
    assert not copied.is_logged_in
    assert copied.root.exists() == (keep == "always")


def test_a_session_that_a_killed_podbot_left_is_kept_without_its_copy(copied: Copied) -> None:
    remove_abandoned(copied.engine, copied.environ, copied.engine.inspect(SESSION), copied.place.events.append)
    assert copied.place.kinds() == ["container.kept"]
    assert not copied.is_logged_in


@pytest.mark.parametrize("runs", [True, False])
def test_a_stopped_session_has_no_copy_unless_it_was_started_again_meanwhile(copied: Copied, runs: bool) -> None:
    settle_stopped(copied.environ, copied.place.directory(), runs=lambda: runs)
    assert copied.is_logged_in == runs
