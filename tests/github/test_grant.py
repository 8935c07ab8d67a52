"""The session's record of the purpose of its token."""

from __future__ import annotations

import dataclasses
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import PathError
from podbot.github.grant import Grant, grant_path, withdraw
from tests.github.simulated import GRANT

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
grants = st.builds(
    Grant,
    repo=texts,
    server_url=texts,
    api_url=texts,
    app_id=st.integers(1),
    installation_id=st.integers(1),
    private_key_path=texts.map("/{}".format),
    permissions=st.dictionaries(texts, texts, max_size=4),
    container=texts,
    endpoint=texts,
    engine=texts,
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@given(grants)
def test_a_grant_is_the_same_after_writing_and_reading(tmp_path_factory: pytest.TempPathFactory, grant: Grant) -> None:
    path = str(tmp_path_factory.mktemp("s"))
    grant.store(path)
    assert Grant.load(path) == grant


def test_a_grant_of_an_older_podbot_does_not_name_the_kind_of_engine(tmp_path: Path) -> None:
    older = dataclasses.replace(GRANT, engine="")
    older.store(str(tmp_path))
    path = tmp_path / "token.json"
    record = json.loads(path.read_text())
    del record["engine"]
    path.write_text(json.dumps(record))
    path.chmod(0o600)
    assert Grant.load(str(tmp_path)) == older


@pytest.mark.parametrize("auth", ["gh", "env:MINE"])
def test_a_grant_of_a_borrowed_token(tmp_path: Path, auth: str) -> None:
    borrowed = dataclasses.replace(GRANT, auth=auth, app_id=0, installation_id=0, private_key_path="")
    borrowed.store(str(tmp_path))
    assert Grant.load(str(tmp_path)) == borrowed
    assert (borrowed.expires, borrowed.renewable) == (False, auth == "gh")
    assert borrowed.digest != GRANT.digest


@pytest.mark.parametrize("auth", ["", "env:", "app", "ghp"])
def test_a_grant_without_an_app_and_without_another_source_is_refused(tmp_path: Path, auth: str) -> None:
    dataclasses.replace(GRANT, auth=auth, app_id=0, installation_id=0, private_key_path="").store(str(tmp_path))
    with pytest.raises(PathError, match="not a grant"):
        Grant.load(str(tmp_path))


def test_its_file(tmp_path: Path) -> None:
    GRANT.store(str(tmp_path))
    assert stat.S_IMODE(os.stat(grant_path(str(tmp_path))).st_mode) == 0o600
    record = json.loads((tmp_path / "token.json").read_text())
    assert record == {"version": 1, **dataclasses.asdict(GRANT)}
    withdraw(str(tmp_path))
    withdraw(str(tmp_path))
    assert os.listdir(tmp_path) == []
    assert Grant.load(str(tmp_path)) is None


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2}, {"version": None}, {"repo": 1}, {"repo": None}, {"app_id": "1"}, {"app_id": True},
        {"app_id": 0}, {"installation_id": 1.0}, {"private_key_path": "relative.pem"}, {"permissions": ["contents"]},
        {"permissions": {"contents": 1}}, {"endpoint": []},
    ],
)  # fmt: skip
def test_a_field_that_is_wrong(tmp_path: Path, change: dict[str, Any]) -> None:
    (tmp_path / "token.json").write_text(json.dumps({"version": 1, **dataclasses.asdict(GRANT), **change}))
    with pytest.raises(PathError, match="not a grant"):
        Grant.load(str(tmp_path))


@given(st.dictionaries(st.sampled_from(["version", *(f.name for f in dataclasses.fields(Grant))]), json_values))
def test_any_other_record_is_refused(tmp_path_factory: pytest.TempPathFactory, changes: dict[str, Any]) -> None:
    path = tmp_path_factory.mktemp("s")
    (path / "token.json").write_text(json.dumps({"version": 1, **dataclasses.asdict(GRANT), **changes}))
    try:
        grant = Grant.load(str(path))
    except PathError:
        return
    assert grant is not None
    assert isinstance(grant.permissions, dict)
    assert all(type(n) is int and n > 0 for n in (grant.app_id, grant.installation_id))
    assert os.path.isabs(grant.private_key_path)


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b"[" * 100_000, b'{"version": 1}' + b" " * 70_000])
def test_bytes_that_are_not_a_record(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "token.json").write_bytes(data)
    with pytest.raises(PathError, match="not a grant"):
        Grant.load(str(tmp_path))


def test_a_path_that_is_not_a_file(tmp_path: Path) -> None:
    path = tmp_path / "token.json"
    (tmp_path / "real").write_text(json.dumps({"version": 1, **dataclasses.asdict(GRANT)}))
    path.symlink_to(tmp_path / "real")
    with pytest.raises(PathError):
        Grant.load(str(tmp_path))
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(PathError, match="not a grant"):
        Grant.load(str(tmp_path))


@pytest.mark.parametrize("name", ["repo", "server_url", "api_url", "app_id", "installation_id", "permissions"])
def test_tokens_that_may_do_other_things_have_other_digests(name: str) -> None:
    other = {"permissions": {"contents": "read"}}.get(name, 7 if "id" in name else "https://else.where")
    changes: dict[str, Any] = {name: other}
    assert dataclasses.replace(GRANT, **changes).digest != GRANT.digest


def test_the_digest_is_about_the_token_alone() -> None:
    same = dataclasses.replace(
        GRANT, private_key_path="/new.pem", permissions=dict(reversed(list(GRANT.permissions.items())))
    )
    assert same.digest == GRANT.digest
