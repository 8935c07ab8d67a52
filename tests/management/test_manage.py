from __future__ import annotations

import os
from pathlib import Path

import pytest

from podbot.engine.port import ContainerInfo
from podbot.errors import ContainerNotFound, NotOurs, RemoveFailed, SessionExists, SessionRuns
from podbot.guard.child import Child
from podbot.launch.names import LABEL
from podbot.launch.own_file import kept_directory
from podbot.management.manage import StopResult, list_sessions, stop_sessions
from podbot.places import private_dir, state_dir
from podbot.session.directory import session_directory, sessions
from podbot.session.flags import LOCK
from podbot.session.guarding import RECORD, Scanner
from podbot.session.record import SessionRecord, write_record
from podbot.testing import FakeEngine
from tests.session.plans import Place, container, kept, labels, made, orphaned


def stopped(engine: FakeEngine, place: Place, *names: str, remove_kept: bool = False) -> list[StopResult]:
    return list(stop_sessions(engine, place.environ, names, seconds=3, remove_kept=remove_kept))


def operations(engine: FakeEngine, *wanted: str) -> list[tuple[str, str]]:
    """The calls that changed something, with names for ids."""
    return [(name, subject) for name, subject in engine.calls if name in wanted]


# --- ps -------------------------------------------------------------------------------------------


def test_newest_first_with_the_labels_values(engine: FakeEngine, place: Place) -> None:
    made(engine, "old")
    made(engine, "new", started=False)
    running = list_sessions(engine, place.environ, include_stopped=False)
    assert [info.session for info in running] == ["old"]
    new, old = list_sessions(engine, place.environ, include_stopped=True)
    assert (new.session, old.session) == ("new", "old")
    assert (old.agent, old.mode, old.workspace, old.path) == ("claude", "podbot", "host_mount", "/home/ann/proj")
    assert (old.state, new.state) == ("running", "created")
    assert old.id == engine.by_name["old"].info.id
    assert old.image == engine.images[0]
    assert old.created == engine.by_name["old"].info.created


def test_only_podbots_own_containers(engine: FakeEngine, place: Place) -> None:
    engine.create(container("stranger", marks={}))
    engine.create(container("inherits", marks=labels("the-image-s-word")))
    engine.create(container("unmanaged", marks=labels("unmanaged", managed="false")))
    made(engine, "ours")
    assert [info.session for info in list_sessions(engine, place.environ, include_stopped=True)] == ["ours"]


def test_missing_labels_are_empty(engine: FakeEngine, place: Place) -> None:
    bare = {"io.podbot.managed": "true", "io.podbot.session": "bare"}
    engine.create(container("bare", marks=bare))
    (info,) = list_sessions(engine, place.environ, include_stopped=True)
    assert (info.agent, info.mode, info.workspace, info.path) == ("", "", "", "")


def test_an_orphan_is_neither_run_nor_kept(engine: FakeEngine, place: Place) -> None:
    kept(engine, place, "kept")
    orphaned(engine, place, "orphan")
    made(engine, "live", "unrecorded")
    with session_directory(place.directory("live"), engine.endpoint):
        found = {info.session: info.orphan for info in list_sessions(engine, place.environ, include_stopped=True)}
    assert found == {"kept": False, "orphan": True, "live": False, "unrecorded": False}


# --- stop -----------------------------------------------------------------------------------------


def test_stopped_and_removed_in_the_requested_order(engine: FakeEngine, place: Place) -> None:
    orphaned(engine, place, "a")
    made(engine, "b", "c")
    assert stopped(engine, place, "b", "a") == [StopResult("b", removed=True), StopResult("a", removed=True)]
    assert list(engine.by_name) == ["c"]
    assert sessions(place.environ) == []


@pytest.mark.parametrize("wrong", ["nobody", "stranger", "inherits"])
def test_one_wrong_name_and_nothing_is_stopped(engine: FakeEngine, place: Place, wrong: str) -> None:
    made(engine, "a", "b")
    engine.start(engine.create(container("stranger", marks={})))
    engine.start(engine.create(container("inherits", marks=labels("the-image-s-word"))))
    with pytest.raises((ContainerNotFound, NotOurs)) as caught:
        stopped(engine, place, "a", wrong, "b")
    assert caught.value.fields["container"] == wrong
    assert operations(engine, "stop", "remove") == []
    assert all(entry.info.state == "running" for entry in engine.by_name.values())


def test_a_kept_one_is_stopped_only(engine: FakeEngine, place: Place) -> None:
    kept(engine, place, "kept")
    assert stopped(engine, place, "kept") == [StopResult("kept", removed=False)]
    assert engine.inspect("kept").state == "exited"
    assert [record.session for record in sessions(place.environ)] == ["kept"]
    assert stopped(engine, place, "kept", remove_kept=True) == [StopResult("kept", removed=True)]
    assert engine.by_name == {}
    assert sessions(place.environ) == []


def test_one_that_was_to_be_kept_and_had_not_begun_is_removed(engine: FakeEngine, place: Place) -> None:
    """Its podbot was killed. It could not be started: its record has no plan yet."""
    engine.create(container("kept", marks=labels("kept", keep="true")))
    path = private_dir(place.directory("kept"))
    with open(os.path.join(path, LOCK), "wb"):
        pass
    write_record(path, SessionRecord("kept", engine.endpoint, "creating"))
    assert stopped(engine, place, "kept") == [StopResult("kept", removed=True)]
    assert (engine.by_name, sessions(place.environ)) == ({}, [])


@pytest.mark.parametrize("ran", [False, True])
def test_a_container_that_was_created_after_the_clean_up_is_removed(
    engine: FakeEngine, place: Place, ran: bool
) -> None:
    """Of a killed session that was to be kept. One that ran has its files, also where the engine calls it created."""
    engine.create(container("kept", marks=labels("kept", keep="true")))
    if ran:
        created = engine.inspect("kept").labels.get(f"{LABEL}.created", "")
        os.makedirs(kept_directory(state_dir(place.environ), "kept", created))
    assert stopped(engine, place, "kept") == [StopResult("kept", removed=not ran)]


def test_a_container_that_does_not_run_is_removed_without_a_stop(engine: FakeEngine, place: Place) -> None:
    made(engine, "a", started=False)
    assert stopped(engine, place, "a") == [StopResult("a", removed=True)]
    assert operations(engine, "stop") == []


def test_one_named_twice_is_stopped_once(engine: FakeEngine, place: Place) -> None:
    made(engine, "a")
    ident = engine.by_name["a"].info.id
    assert stopped(engine, place, "a", "a", ident) == [StopResult("a", removed=True)]


def test_a_live_session_s_directory_is_its_podbot_s_to_remove(engine: FakeEngine, place: Place) -> None:
    made(engine, "a")
    with session_directory(place.directory("a"), engine.endpoint):
        assert list(stop_sessions(engine, place.environ, ["a"], seconds=3, release_seconds=0.05))
        assert os.path.exists(place.directory("a"))
    assert not os.path.exists(place.directory("a"))


def test_a_session_that_ends_during_the_stop_counts_as_stopped(engine: FakeEngine, place: Place) -> None:
    made(engine, "a", "b")
    engine.fail("stop", ContainerNotFound(container="a"))
    assert [result.session for result in stopped(engine, place, "a", "b")] == ["a", "b"]
    assert engine.by_name == {}


def test_a_kept_one_is_known_by_its_label_when_a_reboot_took_the_record(engine: FakeEngine, place: Place) -> None:
    engine.start(engine.create(container("kept", marks=labels("kept", keep="true"))))
    assert sessions(place.environ) == []
    assert stopped(engine, place, "kept") == [StopResult("kept", removed=False)]
    assert engine.inspect("kept").state == "exited"


def test_files_of_a_kept_container_go_with_it(engine: FakeEngine, place: Place) -> None:
    kept(engine, place, "a")
    kept(engine, place, "b")
    created = engine.inspect("a").labels.get(f"{LABEL}.created", "")
    directories = [kept_directory(state_dir(place.environ), name, created) for name in ("a", "b")]
    for directory in directories:
        os.makedirs(directory)
    assert [result.removed for result in stop_sessions(engine, place.environ, ["a"], seconds=0)] == [False]
    assert [os.path.exists(directory) for directory in directories] == [True, True]
    done = list(stop_sessions(engine, place.environ, ["a"], seconds=0, remove_kept=True))
    assert [result.removed for result in done] == [True]
    assert [os.path.exists(directory) for directory in directories] == [False, True]


# --- rm ---------------------------------------------------------------------------------------------


class Restarting(FakeEngine):
    """Another podbot starts a session again at the moment of a call: ``when``."""

    def __init__(self, when: str) -> None:
        super().__init__()
        self.when = when

    def inspect(self, container: str) -> ContainerInfo:
        if self.when == "before it is inspected":
            self.start(container)
        return super().inspect(container)

    def remove(self, container: str, *, kill: bool = True) -> None:
        if self.when == "before it is removed":
            self.start(container)
        super().remove(container, kill=kill)


def removed(engine: FakeEngine, place: Place, *names: str) -> list[str]:
    """The sessions that `podbot rm` removes: those named, or all."""
    found = stop_sessions(
        engine, place.environ, names, seconds=0, remove_kept=True, only_ended=True, all_sessions=not names
    )
    return [result.session for result in found]


@pytest.mark.parametrize("when", ["before it is inspected", "before it is removed"])
def test_a_session_that_is_restarted_meanwhile_is_not_removed(place: Place, when: str) -> None:
    engine = Restarting(when)
    kept(engine, place, "a")
    engine.die("a")
    assert removed(engine, place) == []
    assert engine.by_name["a"].info.state == "running"
    engine.die("a")
    with pytest.raises(SessionRuns, match="the session a is running"):
        removed(engine, place, "a")
    assert engine.by_name["a"].info.state == "running"
    engine.when = ""
    engine.die("a")
    assert removed(engine, place, "a") == ["a"]


def test_a_session_that_is_being_started_is_not_removed(engine: FakeEngine, place: Place) -> None:
    """Its container was created, and its podbot has not started it yet."""
    made(engine, "new", "killed", started=False)
    with session_directory(place.directory("new"), engine.endpoint) as directory:
        directory.move("creating")
        assert removed(engine, place) == ["killed"]
        with pytest.raises(SessionRuns, match="being started"):
            removed(engine, place, "new")
        assert list(engine.by_name) == ["new"]


def test_a_failed_removal_of_an_ended_session_is_reported(engine: FakeEngine, place: Place) -> None:
    made(engine, "a", started=False)
    engine.fail("remove", RemoveFailed(container="a", reason="busy"))
    with pytest.raises(RemoveFailed):
        removed(engine, place)


@pytest.mark.parametrize("has_record", [True, False])
def test_the_name_is_held_until_what_an_agent_left_is_reported(
    engine: FakeEngine, place: Place, has_record: bool
) -> None:
    """Otherwise the end of the removal would remove the directory of a session that takes the name meanwhile."""
    orphaned(engine, place, "shop")
    path = place.directory("shop")
    if not has_record:
        os.unlink(os.path.join(path, "session.json"))
    Path(path, RECORD).write_bytes(b"the first scan")
    tried = []

    class Claiming(Scanner):
        def compare(self, record: str, *, ended: int | None = None) -> Child:
            with pytest.raises(SessionExists), session_directory(path, engine.endpoint):
                pass
            tried.append(record)
            os.unlink(record)
            raise OSError("no process")

    list(stop_sessions(engine, place.environ, ["shop"], seconds=1, scanner=Claiming()))
    assert tried == [os.path.join(path, RECORD)]
    assert not os.path.exists(path)


def test_a_record_of_another_version_does_not_keep_further_sessions_from_being_stopped(
    engine: FakeEngine, place: Place
) -> None:
    for name in ("a", "b"):
        orphaned(engine, place, name)
    Path(place.directory("a"), "session.json").write_text('{"version": 99}')
    stopped = list(stop_sessions(engine, place.environ, ["a", "b"], seconds=1))
    assert [found.session for found in stopped] == ["a", "b"]
    assert engine.by_name == {}
    assert not os.path.exists(place.directory("a"))
