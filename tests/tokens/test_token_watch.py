"""The phases of a session's life, as its renewer sees them."""

from __future__ import annotations

from pathlib import Path

import pytest

from podbot.session.flags import ENDING, STOPPING, flagged
from podbot.session.record import SessionRecord, State, write_record
from podbot.tokens.token_watch import phase_of


@pytest.mark.parametrize(("state", "phase"), [("running", "live"), ("detached", "live"), ("stopped", "kept")])
def test_a_session_lives_or_is_kept(tmp_path: Path, state: State, phase: str) -> None:
    write_record(str(tmp_path), SessionRecord(tmp_path.name, "unix:///engine", state))
    assert phase_of(str(tmp_path)) == phase


@pytest.mark.parametrize("flag", [ENDING, STOPPING])
def test_one_that_a_process_ends_or_stops_has_none(tmp_path: Path, flag: str) -> None:
    write_record(str(tmp_path), SessionRecord(tmp_path.name, "unix:///engine", "running"))
    with flagged(str(tmp_path), flag):
        assert phase_of(str(tmp_path)) is None
    assert phase_of(str(tmp_path)) == "live"
