"""A session directory's status of its token, which any process may read and none trusts."""

from __future__ import annotations

import json
import math
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.errors import PathError
from podbot.github.schedule import Term
from podbot.github.status import Holder, TokenStatus, short_error, status_path
from tests.github.test_grant import json_values

numbers = st.none() | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
statuses = st.builds(
    TokenStatus,
    expires_at=numbers,
    minted_at=numbers,
    minted_uptime=numbers,
    next_renewal=numbers,
    failures=st.integers(0),
    error=st.none() | texts,
    grant=texts,
    holder=st.none() | st.builds(Holder, st.integers(1), texts),
)


@given(statuses)
def test_a_status_is_the_same_after_writing_and_reading(
    tmp_path_factory: pytest.TempPathFactory, status: TokenStatus
) -> None:
    path = str(tmp_path_factory.mktemp("s"))
    status.store(path)
    assert TokenStatus.load(path) == status


def test_its_file(tmp_path: Path) -> None:
    TokenStatus(expires_at=1.5, holder=Holder(7, "session")).store(str(tmp_path))
    assert stat.S_IMODE(os.stat(status_path(str(tmp_path))).st_mode) == 0o600
    record = json.loads((tmp_path / "token.status.json").read_text())
    assert record["holder"] == {"pid": 7, "kind": "session"}
    assert record["expires_at"] == 1.5


def test_without_one(tmp_path: Path) -> None:
    assert TokenStatus.load(str(tmp_path)) is None
    os.mkdir(status_path(str(tmp_path)))
    assert TokenStatus.load(str(tmp_path)) is None


@given(st.dictionaries(st.sampled_from(list(TokenStatus.__dataclass_fields__)), json_values))
def test_any_record_is_read_as_far_as_it_is_valid(
    tmp_path_factory: pytest.TempPathFactory, record: dict[str, Any]
) -> None:
    path = tmp_path_factory.mktemp("s")
    (path / "token.status.json").write_text(json.dumps(record))
    status = TokenStatus.load(str(path))
    if status is None:
        return
    for number in (status.expires_at, status.minted_at, status.minted_uptime, status.next_renewal):
        assert number is None or math.isfinite(number)
    assert status.failures >= 0
    assert status.error is None or len(status.error) <= 200
    assert status.holder is None or status.holder.pid > 0
    status.store(str(path))
    assert TokenStatus.load(str(path)) == status


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1" + "0" * 400, "true", '"1"'])
def test_an_invalid_time(tmp_path: Path, text: str) -> None:
    (tmp_path / "token.status.json").write_text(f'{{"expires_at": {text}, "minted_at": 1, "minted_uptime": 1}}')
    status = TokenStatus.load(str(tmp_path))
    assert status is not None
    assert status.expires_at is None
    assert status.term is None


def test_its_term() -> None:
    assert TokenStatus(expires_at=3.0, minted_at=2.0, minted_uptime=1.0).term == Term(3.0, 2.0, 1.0)


def test_an_errors_text_is_short_on_one_line_and_without_foreign_text() -> None:
    assert short_error(PathError(path="/x\n\x1b[2J", operation="read", reason="why")) == "cannot read /x  [2J: why"
    long = short_error(PathError(path="/" + "x" * 1000, operation="read", reason="why"))
    assert len(long) == 200
    assert long.endswith("…")
    assert short_error(RuntimeError("Authorization: Bearer ghs_secret")) == "unexpected RuntimeError"
