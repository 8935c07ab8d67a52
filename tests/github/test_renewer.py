"""The writer lease, due renewals, the kept token, and the reports, on the test's own clock."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from podbot.errors import DiskFull, GitHubBusy, GitHubRefused, PathError, UnsafeDirectory
from podbot.events import Event
from podbot.github.grant import Grant, withdraw
from podbot.github.lease import FileLock
from podbot.github.renewer import Renewer
from podbot.github.status import TokenStatus
from podbot.locks import is_held
from tests.faults import full_disk
from tests.github.simulated import BUSY, EPOCH, GRANT, HOUR, Session, started

REFUSED = GitHubRefused(step="get a token", status=401, reason="who are you")


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(tmp_path)


def writers(*renewers: Renewer) -> list[bool]:
    return [renewer.writing for renewer in renewers]


def run_for(session: Session, renewer: Renewer, seconds: float) -> None:
    """Tick and wait as a caller does."""
    end = session.clock.now + seconds
    while session.clock.now < end:
        session.clock.pass_(min(renewer.tick(), end - session.clock.now) or 0.001)


# --- one process ----------------------------------------------------------------------------------


def test_the_first_token(session: Session) -> None:
    renewer = started(session)
    status = renewer.status
    assert session.token == next(iter(session.github.ends))
    assert status == TokenStatus.load(session.path)
    assert (status.expires_at, status.minted_at) == (EPOCH + HOUR, EPOCH)
    assert status.failures == 0
    assert status.error is None
    assert status.next_renewal is not None
    assert HOUR - 330 <= status.next_renewal - EPOCH <= HOUR - 300
    assert status.holder == (os.getpid(), "session")
    assert writers(renewer) == [True]
    assert [e.kind for e in session.events] == ["token.renewed"]
    renewer.ensure()
    assert session.github.asked == 1


def test_half_a_day_needs_as_many_tokens_as_are_due(session: Session) -> None:
    renewer = started(session)
    run_for(session, renewer, 12 * HOUR)
    assert 12 * HOUR // (HOUR - 300) <= session.github.minted - 1 <= 12 * HOUR // (HOUR - 330)
    assert session.kinds() == []


def test_ticks_are_close_enough_to_notice_a_changed_clock(session: Session) -> None:
    renewer = started(session)
    assert renewer.tick() == 2
    session.github.error = REFUSED
    session.clock.pass_(HOUR)
    assert 0 < renewer.tick() <= 2
    renewer.close()
    assert session.renewer("daemon").tick() <= 5


def test_each_renewal_is_at_its_time_and_not_earlier(session: Session) -> None:
    renewer = started(session)
    for _ in range(5):
        due = renewer.status.next_renewal
        assert due is not None
        count = session.github.minted
        session.clock.pass_(due - session.clock.time() - 0.01)
        renewer.tick()
        assert session.github.minted == count
        session.clock.pass_(0.02)
        renewer.tick()
        assert session.github.minted == count + 1


def test_a_token_that_disappears_is_replaced(session: Session) -> None:
    renewer = started(session)
    os.unlink(os.path.join(session.secrets, "ghapp_token"))
    renewer.tick()
    assert session.github.minted == 2
    assert session.token


def test_without_the_lease_nothing_is_written(session: Session) -> None:
    with pytest.raises(PathError, match="the session has ended"):
        session.renewer().ensure()
    assert session.token is None


@pytest.mark.parametrize("life", [10.0, 60.0, 299.0, 300.0])
def test_a_lifetime_within_the_buffer_causes_no_storm_of_requests(session: Session, life: float) -> None:
    session.github.life = life
    renewer = started(session)
    run_for(session, renewer, 600)
    assert 600 / 60 <= session.github.minted <= 600 / 5 + 1
    assert session.kinds() == []


# --- failures -------------------------------------------------------------------------------------


def test_a_failure_keeps_the_token_and_is_reported_once(session: Session) -> None:
    renewer = started(session)
    first = session.token
    session.github.error = BUSY
    run_for(session, renewer, HOUR - 1)
    assert session.token == first
    assert session.kinds() == ["token.renewal_failed"]
    assert renewer.status.failures > 5
    assert renewer.status.error == BUSY.message
    assert renewer.status == TokenStatus.load(session.path)
    assert renewer.status.expires_at == EPOCH + HOUR
    session.github.error = None
    run_for(session, renewer, 61)
    assert session.token != first
    assert session.kinds() == ["token.renewal_failed", "token.renewed_again"]
    assert renewer.status.failures == 0
    assert renewer.status.error is None


def test_each_change_is_reported(session: Session) -> None:
    renewer = started(session)
    for _ in range(3):
        session.github.error = BUSY
        run_for(session, renewer, HOUR - 60)
        session.github.error = None
        run_for(session, renewer, 61)
    assert session.kinds() == ["token.renewal_failed", "token.renewed_again"] * 3


def test_an_expiry_is_reported_once_and_renewal_is_still_tried(session: Session) -> None:
    renewer = started(session)
    session.github.error = BUSY
    run_for(session, renewer, 3 * HOUR)
    assert session.kinds() == ["token.renewal_failed", "token.expired"]
    session.github.error = None
    run_for(session, renewer, 61)
    assert session.kinds() == ["token.renewal_failed", "token.expired", "token.renewed_again"]


def test_attempts_back_off(session: Session) -> None:
    renewer = started(session)
    run_for(session, renewer, HOUR - 331)
    session.github.error = BUSY
    count = session.github.asked
    run_for(session, renewer, 31 + 62)  # it is due within the first 31
    assert 5 <= session.github.asked - count <= 9
    count = session.github.asked
    run_for(session, renewer, 600)
    assert 10 <= session.github.asked - count <= 20


def test_a_failure_that_only_a_person_can_fix_is_retried_rarely(session: Session) -> None:
    session.github.error = REFUSED
    renewer = session.renewer()
    run_for(session, renewer, 600)
    assert 10 <= session.github.asked <= 20
    assert renewer.tick() <= 2, "and the clock is still checked"


def test_retry_after_is_heeded(session: Session) -> None:
    session.github.error = GitHubBusy(step="get a token", status=429, reason="slow down", retry_after=300)
    renewer = session.renewer()
    run_for(session, renewer, 299)
    assert session.github.asked == 1
    run_for(session, renewer, 5)
    assert session.github.asked == 2


def test_ensure_raises_the_minters_error(session: Session) -> None:
    renewer = session.renewer()
    renewer.take_lease()
    session.github.error = REFUSED
    with pytest.raises(GitHubRefused):
        renewer.ensure()
    assert session.token is None


def test_a_stranger_s_error_is_not_quoted(session: Session) -> None:
    session.github.error = RuntimeError("Authorization: Bearer ghs_secret")
    renewer = session.renewer()
    renewer.tick()
    said = repr(session.events) + repr(renewer.status) + Path(session.path, "token.status.json").read_text()
    assert "RuntimeError" in said
    assert "ghs_secret" not in said


def test_no_report_or_record_contains_a_token(session: Session) -> None:
    renewer = started(session)
    run_for(session, renewer, 2 * HOUR)
    with full_disk():
        run_for(session, renewer, HOUR)
    renewer.close()
    texts = [repr(session.events), repr(renewer.status), repr(vars(renewer))]
    texts += [p.read_text() for p in Path(session.path).iterdir() if p.is_file()]
    for token in session.github.ends:
        assert not any(token in text for text in texts)


def test_a_full_disk_keeps_the_old_token_and_costs_one_new_one(session: Session) -> None:
    renewer = started(session)
    first = session.token
    with full_disk():
        run_for(session, renewer, HOUR + 61)
        assert session.token == first
        assert session.github.minted == 2, "one that could not be written is kept for when it can"
        assert session.kinds() == ["token.renewal_failed", "token.expired"]
        assert "no space left" in session.events[-2].message
        assert renewer.status.failures > 0
    run_for(session, renewer, 61)
    assert session.github.minted == 2
    assert session.token == list(session.github.ends)[1]
    assert session.kinds()[-1] == "token.renewed_again"
    assert TokenStatus.load(session.path) == renewer.status


def test_a_full_disk_at_the_start(session: Session) -> None:
    renewer = session.renewer()
    renewer.take_lease()
    with full_disk(), pytest.raises(DiskFull):
        renewer.ensure()


def test_a_status_that_could_not_be_written_is_written_later(session: Session) -> None:
    renewer = started(session)
    os.unlink(os.path.join(session.path, "token.status.json"))
    os.mkdir(os.path.join(session.path, "token.status.json"))
    run_for(session, renewer, HOUR)
    assert session.github.minted == 2
    assert session.kinds() == []
    os.rmdir(os.path.join(session.path, "token.status.json"))
    renewer.tick()
    assert TokenStatus.load(session.path) == renewer.status


def test_a_directory_that_is_open_to_others_gets_no_token(session: Session) -> None:
    renewer = started(session)
    os.chmod(session.secrets, 0o755)
    run_for(session, renewer, HOUR)
    assert session.github.minted == 2
    assert "open to other users" in session.events[1].message
    fresh = session.renewer("once")
    renewer.close()
    assert fresh.once() == "failed"
    with pytest.raises(UnsafeDirectory):
        fresh.file.write("ghs_x")


def test_an_invalid_lock_is_reported(session: Session) -> None:
    os.mkdir(os.path.join(session.path, "token.lock"))
    renewer = session.renewer("daemon")
    run_for(session, renewer, 30)
    assert session.kinds() == ["token.renewal_failed", "token.expired"]
    assert session.renewer("once").once() == "failed"


# --- hand-over ------------------------------------------------------------------------------------


def test_a_token_with_more_time_than_the_buffer_is_reused(session: Session) -> None:
    started(session).close()
    session.clock.pass_(HOUR - 331)
    renewer = started(session)
    assert session.github.minted == 1
    assert renewer.status.expires_at == EPOCH + HOUR
    session.clock.pass_(31)
    renewer.close()
    started(session)
    assert session.github.minted == 2


def test_the_due_time_is_the_same_for_every_process(session: Session) -> None:
    first = started(session)
    due = first.status.next_renewal
    first.close()
    daemon = session.renewer("daemon")
    daemon.tick()
    assert daemon.status.next_renewal == pytest.approx(due)


@pytest.mark.parametrize("change", [{"repo": "octo/other"}, {"permissions": {"contents": "read"}}, {"app_id": 9}])
def test_a_token_for_another_purpose_is_not_reused(session: Session, change: dict[str, Any]) -> None:
    started(session).close()
    other = dataclasses.replace(GRANT, **change)
    other.store(session.path)
    renewer = session.renewer(grant=other)
    assert renewer.take_lease()
    renewer.ensure()
    assert session.github.minted == 2


@pytest.mark.parametrize("gone", ["token.status.json", "secrets/ghapp_token"])
def test_a_new_token_is_issued_when_a_part_of_the_record_is_missing(session: Session, gone: str) -> None:
    started(session).close()
    os.unlink(os.path.join(session.path, gone))
    started(session)
    assert session.github.minted == 2


def test_an_empty_token_does_not_count(session: Session) -> None:
    started(session).close()
    os.truncate(os.path.join(session.secrets, "ghapp_token"), 0)
    started(session)
    assert session.github.minted == 2


def test_after_a_reboot_the_token_is_not_trusted(session: Session) -> None:
    started(session).close()
    path = Path(session.path, "token.status.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"minted_uptime": 1e9}))
    started(session)
    assert session.github.minted == 2


def test_leavings_of_a_killed_writer_are_swept_by_the_next(session: Session) -> None:
    started(session).close()
    leaving = Path(session.secrets, ".ghapp_token.0123456789abcdef.tmp")
    leaving.write_text("ghs_half")
    holder = FileLock(os.path.join(session.path, "token.lock"))
    assert holder.try_acquire()
    waiting = session.renewer("daemon")
    waiting.tick()
    assert leaving.exists(), "not without the lease: it may be a live writer's"
    holder.release()
    waiting.tick()
    assert writers(waiting) == [True]
    assert not leaving.exists()


def test_a_daemon_takes_over_and_gives_back_without_an_extra_token(session: Session) -> None:
    run = started(session)
    daemon = session.renewer("daemon")
    daemon.tick()
    assert writers(run, daemon) == [True, False]
    run.tick()
    assert writers(run) == [False]
    daemon.tick()
    assert writers(daemon) == [True]
    loaded = TokenStatus.load(session.path)
    assert loaded is not None
    assert loaded.holder == (os.getpid(), "daemon")
    run_for(session, daemon, HOUR)
    run.tick()
    assert session.github.minted == 2
    daemon.close()
    run.tick()
    assert writers(run) == [True]
    assert session.github.minted == 2
    assert session.kinds("debug") == [
        "token.renewed", "token.handed_over", "token.taken_over", "token.renewed", "token.taken_over",
    ]  # fmt: skip


def test_two_daemons(session: Session) -> None:
    run = started(session)
    one, other = session.renewer("daemon"), session.renewer("daemon")
    one.tick()
    other.tick()
    run.tick()
    other.tick()
    one.tick()
    assert writers(run, one, other) == [False, True, False]
    one.close()
    other.tick()
    assert writers(other) == [True]
    run.tick()
    assert writers(run) == [False]


def test_once(session: Session) -> None:
    once = session.renewer("once")
    assert once.once() == "renewed"
    assert once.once() == "fresh"
    assert not is_held(os.path.join(session.path, "token.lock"))
    assert not os.path.exists(os.path.join(session.path, "token.claim"))
    run = started(session)
    assert once.once() == "held"
    session.clock.pass_(HOUR)
    run.close()
    session.github.error = BUSY
    assert once.once() == "failed"
    withdraw(session.path)
    assert once.once() == "ended"
    assert session.github.minted == 1


# --- the end --------------------------------------------------------------------------------------


def test_a_withdrawn_grant_ends_renewal(session: Session) -> None:
    daemon = session.renewer("daemon")
    daemon.tick()
    assert writers(daemon) == [True]
    withdraw(session.path)
    daemon.tick()
    assert daemon.ended
    assert writers(daemon) == [False]
    assert not is_held(os.path.join(session.path, "token.claim"))


def test_another_grant_ends_renewal(session: Session) -> None:
    daemon = session.renewer("daemon")
    daemon.tick()
    dataclasses.replace(GRANT, repo="octo/other").store(session.path)
    session.clock.pass_(HOUR)
    daemon.tick()
    assert daemon.ended
    assert session.github.minted == 1


def test_a_grant_that_cannot_be_read_ends_renewal(session: Session) -> None:
    daemon = session.renewer("daemon")
    daemon.tick()
    Path(session.path, "token.json").write_text("{")
    daemon.tick()
    assert daemon.ended


def test_the_same_grant_written_again_does_not(session: Session) -> None:
    daemon = session.renewer("daemon")
    daemon.tick()
    GRANT.store(session.path)
    daemon.tick()
    assert writers(daemon) == [True]


def test_a_grant_withdrawn_while_the_daemon_waited_for_the_lease(session: Session) -> None:
    run = session.renewer()
    run.take_lease()
    daemon = session.renewer("daemon")
    daemon.tick()
    withdraw(session.path)
    run.close()
    daemon.tick()
    assert daemon.ended
    assert session.github.asked == 0


@pytest.mark.parametrize("end", ["withdrawn", "closed", "directory gone", "directory another"])
def test_a_session_that_ends_during_the_request_gets_no_token(session: Session, end: str, tmp_path: Path) -> None:
    renewer = started(session)
    first = session.token
    session.clock.pass_(HOUR)

    def happens() -> None:
        if end == "withdrawn":
            withdraw(session.path)
        elif end == "closed":
            renewer.close()
        else:
            os.rename(session.path, tmp_path / "aside")
            if end == "directory another":
                os.makedirs(session.secrets, 0o700)
                GRANT.store(session.path)

    session.github.during = happens
    renewer.tick()
    assert session.github.minted == 2
    assert session.token == (None if "directory" in end else first)
    assert session.kinds() == []


@pytest.mark.parametrize("after", ["kept", None])
def test_a_session_that_is_kept_during_the_request_gets_no_token(session: Session, after: str | None) -> None:
    """Its grant stays for its next start. ``None``: another process still ends it."""
    phases: list[str | None] = ["live"]
    daemon = session.renewer("daemon", phase=lambda: phases[-1])
    daemon.tick()
    session.clock.pass_(HOUR)

    def happens() -> None:
        os.unlink(os.path.join(session.secrets, "ghapp_token"))
        phases.append(after)

    session.github.during = happens
    daemon.tick()
    assert (session.github.minted, session.token) == (2, None)


def test_no_token_is_requested_while_another_process_ends_the_session(session: Session) -> None:
    phases: list[str | None] = [None]
    daemon = session.renewer("daemon", phase=lambda: phases[-1])
    assert daemon.tick() > 0
    assert session.github.asked == 0
    phases.append("kept")  # and started by its operator with the engine's own program
    daemon.tick()
    assert session.token is not None


@pytest.mark.parametrize("end", ["withdrawn", "directory gone"])
def test_a_failure_because_of_the_end_is_not_reported(session: Session, end: str, tmp_path: Path) -> None:
    daemon = session.renewer("daemon")
    daemon.tick()
    session.clock.pass_(HOUR)
    session.github.error = BUSY
    session.github.during = lambda: (
        withdraw(session.path) if end == "withdrawn" else os.rename(session.path, tmp_path / "aside")
    )
    daemon.tick()
    assert session.kinds() == []
    daemon.tick()
    assert daemon.ended


def test_a_failure_after_the_end_is_not_reported(session: Session) -> None:
    renewer = started(session)
    session.clock.pass_(HOUR)
    session.github.during, session.github.error = renewer.close, BUSY
    renewer.tick()
    assert session.kinds() == []
    assert renewer.tick() == 2
    assert renewer.once() == "ended"
    assert not renewer.take_lease()


def test_events_are_reported_without_holding_a_lock(session: Session) -> None:
    """An emit that blocks, as on a pipe without a reader, must not delay the end of the session."""
    closed: list[bool] = []

    def emit(event: Event) -> None:
        thread = threading.Thread(target=renewer.close)
        thread.start()
        thread.join(60)  # seconds; only a hang takes longer
        closed.append(not thread.is_alive())

    renewer = Renewer(session.path, GRANT, session.github.mint, kind="session", clock=session.clock, emit=emit)
    renewer.tick()
    assert closed
    assert all(closed)


def test_a_grant_is_read_from_its_directory(session: Session) -> None:
    assert Grant.load(session.path) == GRANT
