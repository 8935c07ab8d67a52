"""Renews one session's token, in one process: decides whether it is due, and replaces it.

It starts no thread and never sleeps: the caller calls :meth:`Renewer.tick`, waits for the seconds that it returns, and
calls again. ``close`` may be called from another thread, also while a tick waits for GitHub.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Protocol

from podbot.errors import FilesystemError, PathError
from podbot.events import Emit, Event, ignore
from podbot.github import schedule
from podbot.github.clock import SYSTEM, Clock
from podbot.github.grant import Grant, grant_path
from podbot.github.schedule import Term
from podbot.github.status import Holder, Kind, TokenStatus, short_error
from podbot.github.token_file import SECRETS, TokenFile
from podbot.github.writer_lease import TokenWriterLease

LONGEST_PAUSE = 2.0  # seconds; no wait is longer, so that a changed clock or a claim is noticed soon
DAEMON_LONGEST_PAUSE = 5.0  # a daemon has many sessions and never gives up its lease
CONTENTION_PAUSE = 0.5  # while the holder of a lease is about to release it

Outcome = Literal["renewed", "fresh", "held", "failed", "ended"]


class Minted(Protocol):
    """What a minter returns; ``expires_at`` is epoch seconds of this machine's clock."""

    @property
    def token(self) -> str: ...
    @property
    def expires_at(self) -> float: ...


Mint = Callable[[], Minted]


class _Pending(NamedTuple):
    """A token that was minted and not yet written: after a full disk the same one is written, not a new one."""

    minted: Minted
    term: Term

    def __repr__(self) -> str:
        return f"_Pending({self.term!r})"


class Renewer:
    """Renews the token of the session in ``session_dir`` while this process holds the writer lease.

    ``kind``: see :class:`TokenWriterLease`. ``mint`` may raise anything. ``emit`` is called from the thread that calls
    ``tick``, never with a lock held. ``ended``: the grant was removed or replaced, and nothing is held; a new grant
    needs a new Renewer. ``longest_pause``: seconds that :meth:`tick` returns at most; None is the default of ``kind``.
    ``phase``: of the session's life; None while another process ends it. Nothing is written then, nor a token that was
    requested in another phase.
    """

    def __init__(
        self,
        session_dir: str,
        grant: Grant,
        mint: Mint,
        *,
        kind: Kind,
        clock: Clock = SYSTEM,
        emit: Emit = ignore,
        longest_pause: float | None = None,
        phase: Callable[[], str | None] = lambda: "",
    ) -> None:
        self.session_dir = session_dir
        self.session = os.path.basename(session_dir)
        self.grant = grant
        self.file = TokenFile(os.path.join(session_dir, SECRETS))
        self.status = TokenStatus(grant=grant.digest)  # as far as this process knows
        self.ended = False
        self._mint, self._kind, self._clock, self._emit, self._phase = mint, kind, clock, emit, phase
        self._lease = TokenWriterLease(session_dir, grant, kind)
        default = DAEMON_LONGEST_PAUSE if kind == "daemon" else LONGEST_PAUSE
        self._longest_pause = default if longest_pause is None else longest_pause
        self._mutex = threading.RLock()  # held for everything but requests to GitHub and calls of emit
        self._closed = False
        self._term: Term | None = None  # of the token in the file
        self._pending: _Pending | None = None
        self._failures = 0  # in a row, of this process
        self._expired = False  # and reported
        self._not_before = 0.0  # uptime of the next attempt at the earliest
        self._unsaved = False  # the status could not be written
        self._events: list[Event] = []

    @property
    def writing(self) -> bool:
        """This process holds the session's writer lease."""
        with self._mutex:
            return self._lease.held

    def take_lease(self) -> bool:
        """Take the writer lease if it is free, regardless of claims: for the first token of a session."""
        with self._mutex:
            if self._closed or not self._lease.acquire():
                return False
            self._adopt()
            return True

    def ensure(self) -> TokenStatus:
        """With the lease held: make sure that there is a token that is not due, and return its status.

        Raises what ``mint`` raises, DiskFull, PathError, UnsafeDirectory; an existing token is then left in place.
        """
        try:
            if self._due() and not self._renew():
                path = grant_path(self.session_dir)
                raise PathError(path=path, operation="renew the token of", reason="the session has ended")
        finally:
            self._flush()
        return self.status

    def tick(self) -> float:
        """Renew if due; return the seconds until the next tick, 5 at most. Errors become events."""
        try:
            with self._mutex:
                if self._closed:
                    return self._longest_pause
                state = self._update()
                if state not in ("held", "acquired"):
                    return CONTENTION_PAUSE if state == "waiting" else self._longest_pause
                trying = self._due() and self._clock.monotonic() >= self._not_before
            if trying and self._phase() is None:
                return CONTENTION_PAUSE
            if trying:
                self._try()
            with self._mutex:
                if self._unsaved:
                    self._save()
                return self._pause()
        finally:
            self._flush()

    def once(self) -> Outcome:
        """Renew when it is due and the lease is free, then release the lease."""
        try:
            with self._mutex:
                state = "withdrawn" if self._closed else self._update()
                if state not in ("held", "acquired"):
                    return "ended" if state == "withdrawn" else "held" if state == "other" else "failed"
                due = self._due()
            return "fresh" if not due else "renewed" if self._try() else "failed"
        finally:
            with self._mutex:
                self._lease.release()
            self._flush()

    def close(self) -> None:
        """Release every lock; a renewal in progress in another thread writes nothing after this."""
        with self._mutex:
            self._closed = True
            self._lease.release()

    # --- taking a session over ---

    def _update(self) -> str:
        held = self._lease.held
        try:
            state = self._lease.update()
        except FilesystemError as exc:
            self._failed(exc)
            return "broken"
        self.ended = state == "withdrawn"
        if state == "acquired":
            self._adopt()
            self._queue(Event("debug", "token.taken_over", f"this process now renews the token of {self.session}"))
        elif held and state == "other":
            self._queue(Event("debug", "token.handed_over", f"a token-daemon now renews the token of {self.session}"))
        return state

    def _adopt(self) -> None:
        """Continue from the token and status that the previous writer left."""
        self.file.sweep()
        found = TokenStatus.load(self.session_dir)
        # A token for another grant is not used, and a status without its token means nothing.
        known = found is not None and found.grant == self.grant.digest and self.file.exists()
        self.status = (
            replace(found, failures=0, error=None) if found and known else TokenStatus(grant=self.grant.digest)
        )
        self._term, self._pending = self.status.term, None
        self._failures, self._expired, self._not_before = 0, False, 0.0
        if self._term is not None:
            self._note(next_renewal=self._clock.time() + self._left(self._term), failures=0, error=None)

    # --- renewing ---

    def _due(self) -> bool:
        return self._term is None or self._left(self._term) <= 0 or not self.file.exists()

    def _left(self, term: Term) -> float:
        """Seconds until the token is due; every process computes the same for one token."""
        left = schedule.remaining(term, self._clock.time(), self._clock.monotonic())
        return schedule.next_delay(left, 0.0, jitter=schedule.jitter_of(self.session, term.expires_at), life=term.life)

    def _pause(self) -> float:
        wait = self._not_before - self._clock.monotonic()
        if not self._failures and self._term is not None:
            wait = max(wait, self._left(self._term))
        return max(0.0, min(wait, self._longest_pause))

    def _try(self) -> bool:
        try:
            return self._renew()
        except Exception as exc:  # noqa: BLE001 - after any error the current token stays and the renewal is tried again
            with self._mutex:
                if self._lease.grant_is_current():  # otherwise it failed because the session ended
                    self._failed(exc)
            return False

    def _renew(self) -> bool:
        """False when the session has ended or another process took over meanwhile: then nothing was written."""
        phase = self._phase()
        if phase is None:
            return False
        pending = self._pending
        if pending is None or self._left(pending.term) <= 0:
            minted = self._mint()  # no lock is held while GitHub is asked
            pending = _Pending(minted, Term(minted.expires_at, self._clock.time(), self._clock.monotonic()))
        with self._mutex:
            if self._closed or not self._lease.held:
                return False
            try:
                with self._lease.guarded():
                    if self._phase() != phase or not self._lease.grant_is_current():
                        return False
                    self.file.write(pending.minted.token)
            except FilesystemError:
                self._pending = pending
                raise
            self._renewed(pending.term)
        return True

    def _renewed(self, term: Term) -> None:
        again, self._failures, self._expired, self._pending, self._term = self._failures > 0, 0, False, None, term
        left = self._left(term)
        if left <= 0:
            left = schedule.born_due_delay(term.life)
            self._not_before = self._clock.monotonic() + left
        self._note(
            expires_at=term.expires_at,
            minted_at=term.minted_at,
            minted_uptime=term.minted_uptime,
            next_renewal=self._clock.time() + left,
            failures=0,
            error=None,
        )
        if again:
            self._queue(
                Event("notice", "token.renewed_again", f"the GitHub token of {self.session} is being renewed again")
            )
        else:
            self._queue(Event("debug", "token.renewed", f"renewed the GitHub token of {self.session}"))

    def _failed(self, exc: Exception) -> None:
        if self._closed:
            return
        self._failures += 1
        transient = getattr(exc, "transient", True) is not False
        asked = getattr(exc, "retry_after", None)
        jitter = schedule.jitter_of(self.session, self._failures)
        delay = schedule.retry_delay(
            self._failures,
            jitter=jitter,
            transient=transient,
            retry_after=asked if isinstance(asked, int | float) else None,
        )
        self._not_before = self._clock.monotonic() + delay
        error = short_error(exc)
        self._note(next_renewal=self._clock.time() + delay, failures=self._failures, error=error)
        if self._failures == 1:
            text = f"cannot renew the GitHub token of {self.session}, will keep trying: {error}"
            self._queue(Event("warning", "token.renewal_failed", text), error=error)
        term = self._term
        over = term is None or schedule.remaining(term, self._clock.time(), self._clock.monotonic()) <= 0
        if over and self.grant.expires and not self._expired:
            self._expired = True
            text = f"the GitHub token of {self.session} has expired; git in the sandbox cannot reach the server"
            self._queue(Event("warning", "token.expired", text), error=error)

    # --- reporting ---

    def _note(self, **changes: Any) -> None:
        self.status = replace(self.status, **changes, holder=Holder(os.getpid(), self._kind))
        self._save()

    def _save(self) -> None:
        """The status is for other commands to read: if it cannot be written, nothing fails and nothing is reported."""
        if not self._lease.held:
            return
        try:
            self.status.store(self.session_dir)
        except FilesystemError:
            self._unsaved = True
        else:
            self._unsaved = False

    def _queue(self, event: Event, **more: str) -> None:
        """Queue an event until no lock is held: the receiver may be slow."""
        fields = {"session": self.session, "expires_at": self.status.expires_at, **more}
        self._events.append(event._replace(fields=fields))

    def _flush(self) -> None:
        with self._mutex:
            events, self._events = self._events, []
        for event in events:
            self._emit(event)
