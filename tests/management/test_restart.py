"""Restarts: what is refused before anything is stopped, and the stop."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator

import pytest

from podbot.errors import (
    AlreadyStarted,
    ContainerNotFound,
    MountRefused,
    SandboxPaused,
    SessionNotRestorable,
    SessionRecordUnknown,
)
from podbot.frozen import replace
from podbot.launch.types import HostFacts, LaunchRequest
from podbot.management.restart import restartable, stop_for_restart
from podbot.session.directory import session_directory
from podbot.session.record import RECORD
from podbot.testing import FakeEngine, FakeGitHub
from tests.session.kept_host import NAME, Host, kept_host
from tests.session.plans import Place, container, in_state, labels, made


@pytest.fixture(scope="module")
def github() -> Iterator[FakeGitHub]:
    with FakeGitHub() as served:
        yield served


@pytest.fixture
def host(tmp_path: os.PathLike[str], github: FakeGitHub) -> Host:
    """A kept session that runs without a podbot, as after ``podbot start``."""
    host = kept_host(os.fspath(tmp_path), github)
    host.start()
    host.engine.calls.clear()
    return host


def names(host: Host, *asked: str) -> list[str]:
    return [found.name for found in restartable(host.engine, host.environ, asked, facts=host.facts)]


def untouched(host: Host) -> bool:
    return host.state() == ("detached", "running") and not {"stop", "kill"} & {name for name, _ in host.engine.calls}


def nothing_known(request: LaunchRequest) -> HostFacts:
    """For a session that is refused before any fact is asked for."""
    raise AssertionError(request)


def test_a_kept_session_is_stopped_and_nothing_is_removed(host: Host) -> None:
    (found,) = restartable(host.engine, host.environ, [NAME], facts=host.facts)
    assert untouched(host)
    stop_for_restart(host.engine, host.environ, found, seconds=3, release_seconds=0)
    assert host.state() == ("stopped", "exited")
    assert not {"remove", "exec_create"} & {name for name, _ in host.engine.calls}
    host.start()


def test_a_stopped_session_is_only_started(host: Host) -> None:
    host.stop()
    assert names(host, NAME) == [NAME]


def test_a_session_that_is_named_twice_is_restarted_once(host: Host) -> None:
    assert names(host, NAME, NAME[:-1]) == [NAME]


def test_what_its_end_removes_is_refused(engine: FakeEngine, place: Place) -> None:
    def refused(name: str) -> str:
        with pytest.raises(SessionNotRestorable) as caught:
            restartable(engine, place.environ, [name], facts=nothing_known)
        return str(caught.value)

    made(engine, "brief")
    engine.start(engine.create(container("clone", marks=labels("clone", keep="when_unsaved"))))
    with session_directory(place.directory("clone"), engine.endpoint) as directory:  # its podbot runs
        in_state(directory, "running")
        assert "a podbot runs it, and would remove the clone" in refused("clone")
    assert "it is not kept, and its end would remove it" in refused("brief")
    assert "stop" not in {name for name, _ in engine.calls}


def test_a_session_on_a_remote_engine_is_refused(host: Host) -> None:
    host.engine.local = False
    with pytest.raises(SessionNotRestorable, match="its engine is on another host"):
        names(host, NAME)
    assert untouched(host)


def test_a_workspace_that_is_gone_or_a_link_is_refused(host: Host) -> None:
    shutil.move(host.place.workspace, host.place.workspace + ".old")
    with pytest.raises(MountRefused):
        names(host, NAME)
    os.symlink(host.place.workspace + ".old", host.place.workspace)
    with pytest.raises(MountRefused, match="a part of its path became a link"):
        names(host, NAME)
    assert untouched(host)


def test_another_container_with_its_name_is_refused(host: Host) -> None:
    there = host.engine.by_name[NAME]
    there.info = replace(there.info, labels={**there.info.labels, "io.podbot.resources": "none"})
    with pytest.raises(SessionNotRestorable, match="its container is not the one of its record"):
        names(host, NAME)
    assert untouched(host)


def test_a_record_without_a_plan_is_refused(host: Host) -> None:
    with open(os.path.join(host.directory, RECORD), "w", encoding="utf-8") as file:  # as an older podbot wrote it
        json.dump({"session": NAME, "endpoint": host.engine.endpoint, "kept": True}, file)
    with pytest.raises(SessionNotRestorable, match="its record has no plan"):
        names(host, NAME)
    assert host.engine.inspect(NAME).state == "running"


def test_a_session_that_is_being_started_is_refused(engine: FakeEngine, place: Place) -> None:
    engine.create(container("shop", marks=labels("shop", keep="true")))
    with session_directory(place.directory("shop"), engine.endpoint) as directory:
        in_state(directory, "creating")
        with pytest.raises(AlreadyStarted, match="being started or stopped by another podbot"):
            restartable(engine, place.environ, ["shop"], facts=nothing_known)


def test_a_record_that_cannot_be_read_is_not_replaced_by_its_copy(host: Host) -> None:
    with open(os.path.join(host.directory, RECORD), "w", encoding="utf-8") as file:
        file.write("{}")
    with pytest.raises(SessionRecordUnknown):
        names(host, NAME)
    assert "stop" not in {name for name, _ in host.engine.calls}


def test_a_paused_session_is_refused(host: Host) -> None:
    there = host.engine.by_name[NAME]
    there.info = replace(there.info, state="paused")
    with pytest.raises(SandboxPaused):
        names(host, NAME)


def test_an_unknown_name_among_others_stops_nothing(host: Host) -> None:
    with pytest.raises(ContainerNotFound):
        names(host, NAME, "nothing")
    assert untouched(host)
