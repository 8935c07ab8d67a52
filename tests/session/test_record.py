"""A record is read as it was written, by this version alone, and has no secret in it."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import PathError, SessionRecordUnknown
from podbot.events import Event
from podbot.session.record import RECORD, STATES, VERSION, SessionRecord, as_json, from_json, read_record, write_record
from podbot.testing import FakeEngine

TEXTS = st.text(max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
EVENTS = st.builds(
    Event, st.sampled_from(["debug", "info", "notice", "warning"]), TEXTS, TEXTS, st.dictionaries(TEXTS, JSON)
)
RECORDS = st.builds(
    SessionRecord,
    session=TEXTS,
    endpoint=TEXTS,
    state=st.sampled_from(STATES),
    container=TEXTS,
    created=TEXTS,
    subcommand=TEXTS,
    secrets=st.lists(TEXTS, max_size=3).map(tuple),
    plan=st.none() | st.dictionaries(TEXTS, JSON, max_size=3),
    untold=st.lists(EVENTS, max_size=2).map(tuple),
)


@given(RECORDS)
def test_it_is_read_as_it_was_written(record: SessionRecord) -> None:
    assert from_json(json.loads(json.dumps(as_json(record))), record.session) == record


@given(RECORDS, st.data())
def test_a_document_of_another_shape_is_refused(record: SessionRecord, data: st.DataObject) -> None:
    document = json.loads(json.dumps(as_json(record)))
    name = data.draw(st.sampled_from([*document, "more"]))
    if data.draw(st.booleans()) and name in document:
        del document[name]
        if name == "version":
            return  # it is then one of version 1, which has its own test
    else:
        document[name] = data.draw(JSON)
    try:
        found = from_json(document, record.session)
    except ValueError:
        return
    assert as_json(found) == document


@pytest.mark.parametrize(
    ("plan", "directory"),
    [
        ({"workspace": {"source": "/src", "target": "/src", "read_only": False}}, "/src"),
        ({"workspace": {"source": "/src", "target": "/src", "read_only": True}}, ""),
        ({"workspace": {"source": 3, "read_only": False}}, ""),
        ({"workspace": {}}, ""),
        ({"workspace": None}, ""),
        ({}, ""),
        (None, ""),
    ],
)
def test_the_directory_that_commands_can_write_to(plan: dict[str, Any] | None, directory: str) -> None:
    assert SessionRecord("shop", "unix:///e", "running", plan=plan).workspace == directory


@given(JSON)
def test_an_invalid_record_is_refused(document: Any) -> None:
    with pytest.raises(ValueError, match=r"^its? "):
        from_json(document, "shop")


@pytest.mark.parametrize("version", [0, -1, VERSION + 1, 99, "2", 2.0, True, None, []])
def test_another_version_is_refused_by_its_number(version: object) -> None:
    document = as_json(SessionRecord("shop", "e", "running")) | {"version": version}
    with pytest.raises(ValueError, match=r"it has version .* this podbot knows 1 to 3"):
        from_json(document, "shop")


@pytest.mark.parametrize(("kept", "state"), [(True, "stopped"), (False, "running")])
def test_version_1_is_migrated_without_a_plan(kept: bool, state: str) -> None:
    event = {"level": "notice", "kind": "container.kept", "message": "kept", "fields": {"session": "shop"}}
    found = from_json({"session": "shop", "endpoint": "e", "kept": kept, "untold": [event]}, "shop")
    assert (found.session, found.endpoint, found.state, found.plan) == ("shop", "e", state, None)
    assert found.untold == (Event("notice", "container.kept", "kept", {"session": "shop"}),)


def test_version_2_did_not_name_the_kind_of_engine() -> None:
    document = as_json(SessionRecord("shop", "unix:///e.sock", "stopped", engine="other"))
    del document["engine"]
    with pytest.raises(ValueError, match="not shaped like a record"):
        from_json(document, "shop")
    found = from_json(document | {"version": 2}, "shop")
    assert found == SessionRecord("shop", "unix:///e.sock", "stopped")
    assert found.is_on(FakeEngine(endpoint="unix:///e.sock"))


def test_a_session_is_on_the_engine_of_its_address_and_kind() -> None:
    engine = FakeEngine()
    own = SessionRecord("shop", engine.endpoint, "stopped", engine=engine.words.kind)
    assert own.is_on(engine)
    assert not dataclasses.replace(own, engine="other").is_on(engine)
    assert not dataclasses.replace(own, endpoint="unix:///other.sock").is_on(engine)


@pytest.mark.parametrize(
    "document",
    [
        {"session": "shop", "endpoint": "e"},
        {"session": "shop", "endpoint": 1, "kept": True},
        {"session": "shop", "endpoint": "e", "kept": 1},
        {"session": "shop", "endpoint": "e", "kept": True, "state": "running"},
        {"session": "shop", "endpoint": "e", "kept": True, "untold": [{"kind": "x"}]},
        {"session": "other", "endpoint": "e", "kept": True},
    ],
)
def test_a_document_that_only_resembles_version_1_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"^its? "):
        from_json(document, "shop")


# --- the file -------------------------------------------------------------------------------------


def test_the_file_is_private_and_replaced_as_a_whole(tmp_path: Path) -> None:
    directory = tmp_path / "shop"
    directory.mkdir()
    assert read_record(str(directory)) is None
    for state in ("claimed", "running"):
        record = SessionRecord("shop", "e", state)
        write_record(str(directory), record)
        assert read_record(str(directory)) == record
    assert os.listdir(directory) == [RECORD]
    assert (directory / RECORD).stat().st_mode & 0o777 == 0o600


def test_one_in_a_directory_of_another_name_is_read_for_its_session(tmp_path: Path) -> None:
    record = SessionRecord("shop", "e", "stopped")
    write_record(str(tmp_path), record)
    assert read_record(str(tmp_path), "shop") == record
    with pytest.raises(SessionRecordUnknown) as caught:
        read_record(str(tmp_path))
    assert caught.value.reason == "it belongs to another session"


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"[" * 99_999, b"null", b"1"])
def test_a_file_that_is_not_a_record_is_named(tmp_path: Path, data: bytes) -> None:
    (tmp_path / RECORD).write_bytes(data)
    with pytest.raises(SessionRecordUnknown) as caught:
        read_record(str(tmp_path), "shop")
    assert (caught.value.session, caught.value.path) == ("shop", str(tmp_path / RECORD))
    assert "Use the podbot that wrote it" in caught.value.remedy


def test_a_link_a_pipe_and_a_directory_are_not_read(tmp_path: Path) -> None:
    write_record(str(tmp_path), SessionRecord("shop", "e", "stopped"))
    (tmp_path / RECORD).rename(tmp_path / "real")
    (tmp_path / RECORD).symlink_to(tmp_path / "real")
    with pytest.raises(PathError):
        read_record(str(tmp_path), "shop")
    (tmp_path / RECORD).unlink()
    os.mkfifo(tmp_path / RECORD)
    with pytest.raises(SessionRecordUnknown):
        read_record(str(tmp_path), "shop")
