"""What podbot inspect shows."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace

import pytest

from podbot.container_spec import Limits, Security
from podbot.engine.port import Unmet
from podbot.errors import NotOurs
from podbot.launch.types import OwnFile
from podbot.management.inspection import inspect_session
from podbot.session.directory import session_directory
from podbot.session.plan_json import public_part
from podbot.session.record import RECORD
from podbot.testing import FakeEngine
from tests.session.plans import Place, container, kept, labels


def opened(engine: FakeEngine, place: Place) -> None:
    spec = replace(
        container("shop", marks=labels("shop", keep="true")),
        security=Security(no_new_privileges=True, devices=("/dev/fuse",), user="1000:1000"),
        limits=Limits(memory=1 << 30, pids=512),
        network="none",
    )
    plan = place.sandbox("shop", container=spec, keep="always", files=(OwnFile("/etc/gitconfig", "name = Ada"),))
    made = engine.create(spec)
    with session_directory(place.directory("shop"), engine.endpoint) as directory:
        directory.move("creating")
        directory.move("running", container=made, plan=public_part(plan))
        engine.start(made)
        directory.move("stopped")


def test_state_record_plan_and_confinement(engine: FakeEngine, place: Place) -> None:
    opened(engine, place)
    engine.ignored = (Unmet("sandbox.memory", "1073741824", "0"),)
    found = inspect_session(engine, place.environ, "sh")
    assert (found.session.session, found.session.state, found.session.orphan) == ("shop", "running", False)
    assert found.record is not None
    assert (found.record["state"], found.record["keep"]) == ("stopped", "always")
    assert found.record["container"] == found.session.id
    assert found.plan is not None
    assert found.plan["container"]["limits"]["pids"] == 512
    assert found.plan["files"] == [{"target": "/etc/gitconfig", "text": 10, "executable": False}]
    confinement = found.confinement
    assert (confinement["no_new_privileges"], confinement["user"], confinement["network"]) == (
        True,
        "1000:1000",
        "none",
    )
    assert (confinement["memory_limit"], confinement["pids_limit"], confinement["cpus_limit"]) == (1 << 30, 512, None)
    assert confinement["unmet"] == [{"key": "sandbox.memory", "wanted": "1073741824", "got": "0"}]
    assert confinement["seccomp"] is None, "the engine's pid is not a process of this machine"
    assert json.dumps(asdict(found))


def test_a_record_without_a_plan(engine: FakeEngine, place: Place) -> None:
    kept(engine, place, "old")
    found = inspect_session(engine, place.environ, "old")
    assert found.plan is None
    assert found.confinement["unmet"] is None


def test_a_record_that_cannot_be_read(engine: FakeEngine, place: Place) -> None:
    kept(engine, place, "shop")
    with open(os.path.join(place.directory("shop"), RECORD), "w", encoding="utf-8") as file:
        file.write("{}")
    found = inspect_session(engine, place.environ, "shop")
    assert found.record is not None
    assert "cannot be read" in found.record["unreadable"]


def test_other_programs_containers_are_refused(engine: FakeEngine, place: Place) -> None:
    engine.create(container("database", marks={}))
    with pytest.raises(NotOurs):
        inspect_session(engine, place.environ, "database")
