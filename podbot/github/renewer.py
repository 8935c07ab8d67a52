"""One process's part in keeping one session's token: whether it is due, and its renewal.

No threads and no waiting of its own: the caller calls :meth:`Renewer.tick`, waits for as long as it says, and
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
from podbot.github.turn import Turn

STRETCH = 2.0  # seconds; no wait is longer, so that a clock that was set, or a claim, is seen soon
DAEMON_STRETCH = 5.0  # a daemon has many sessions, and nobody to make way for
CONTEND = 0.5  # between looks at a lease that its holder is about to let go

Outcome = Literal["renewed", "fresh", "held", "failed", "ended"]


class Minted(Protocol):
    """What a minter returns; ``expires_at`` is epoch seconds of this machine's clock."""

    @property
    def token(self) -> str: ...
    @property
    def expires_at(self) -> float: ...


Mint = Callable[[], Minted]


class _Pending(NamedTuple):
    """A token that was minted and is not in the file yet: a full disk must not cost another one."""

    minted: Minted
    term: Term

    def __repr__(self) -> str:
        return f"_Pending({self.term!r})"


class Renewer:
    """Keeps the token of the session in ``session_dir`` whenever it is this process's turn to.

    ``kind``: see :class:`Turn`. ``mint`` may raise anything. ``emit`` is called from whatever thread calls ``tick``,
    never with a lock held. ``ended``: the grant is gone or another one, and nothing is held; a new Renewer goes on.
    """

    def __init__(
        self, session_dir: str, grant: Grant, mint: Mint, *, kind: Kind, clock: Clock = SYSTEM, emit: Emit = ignore
    ) -> None:
        self.session_dir = session_dir
        self.session = os.path.basename(session_dir)
        self.grant = grant
        self.file = TokenFile(os.path.join(session_dir, SECRETS))
        self.status = TokenStatus(grant=grant.digest)  # as far as this process knows
        self.ended = False
        self._mint, self._kind, self._clock, self._emit = mint, kind, clock, emit
        self._turn = Turn(session_dir, grant, kind)
        self._stretch = DAEMON_STRETCH if kind == "daemon" else STRETCH
        self._mutex = threading.RLock()  # over everything but waiting for GitHub, and telling
        self._closed = False
        self._term: Term | None = None  # of the token in the file
        self._pending: _Pending | None = None
        self._failures = 0  # in a row, of this process
        self._expired = False  # and said so
        self._not_before = 0.0  # uptime of the next attempt at the earliest
        self._unsaved = False  # the status could not be written
        self._news: list[Event] = []

    @property
    def writing(self) -> bool:
        """This process is the session's one writer."""
        with self._mutex:
            return self._turn.held

    def take_lease(self) -> bool:
        """Become the session's one writer, if nobody is, whoever claims it. For the session's own ``run``, at first."""
        with self._mutex:
            if self._closed or not self._turn.take():
                return False
            self._learn()
            return True

    def ensure(self) -> TokenStatus:
        """With the lease: see to a token that is not due, the one that is there or else a new one.

        Raises what ``mint`` raises, DiskFull, PathError, UnsafeDirectory; a token that was there stays.
        """
        try:
            if self._due() and not self._renew():
                path = grant_path(self.session_dir)
                raise PathError(path=path, operation="renew the token of", reason="the session has ended")
        finally:
            self._flush()
        return self.status

    def tick(self) -> float:
        """Do what is to be done now; seconds until the next tick, 5 at most. Errors are told, not raised."""
        try:
            with self._mutex:
                if self._closed:
                    return self._stretch
                answer = self._looked()
                if answer not in ("ours", "taken"):
                    return CONTEND if answer == "waiting" else self._stretch
                trying = self._due() and self._clock.monotonic() >= self._not_before
            if trying:
                self._try()
            with self._mutex:
                if self._unsaved:
                    self._save()
                return self._pause()
        finally:
            self._flush()

    def once(self) -> Outcome:
        """Renew when it is due and the lease is free, and let go again."""
        try:
            with self._mutex:
                answer = "over" if self._closed else self._looked()
                if answer not in ("ours", "taken"):
                    return "ended" if answer == "over" else "held" if answer == "theirs" else "failed"
                due = self._due()
            return "fresh" if not due else "renewed" if self._try() else "failed"
        finally:
            with self._mutex:
                self._turn.release()
            self._flush()

    def close(self) -> None:
        """Let go of everything; a renewal under way in another thread writes nothing after this."""
        with self._mutex:
            self._closed = True
            self._turn.release()

    # --- taking a session over ---

    def _looked(self) -> str:
        held = self._turn.held
        try:
            answer = self._turn.look()
        except FilesystemError as exc:
            self._failed(exc)
            return "broken"
        self.ended = answer == "over"
        if answer == "taken":
            self._learn()
            self._tell(Event("debug", "token.taken_over", f"renewing the token of {self.session} from here on"))
        elif held and answer == "theirs":
            self._tell(
                Event("debug", "token.handed_over", f"a token-daemon renews the token of {self.session} from here on")
            )
        return answer

    def _learn(self) -> None:
        """What the writer before us left, now that nobody else writes."""
        self.file.sweep()
        found = TokenStatus.load(self.session_dir)
        # A token for something else is none, and a status without its token says nothing.
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
        """Seconds until the token is due; whoever asks, for this token the answer is the same."""
        left = schedule.remaining(term, self._clock.time(), self._clock.monotonic())
        return schedule.next_delay(left, 0.0, jitter=schedule.jitter_of(self.session, term.expires_at), life=term.life)

    def _pause(self) -> float:
        wait = self._not_before - self._clock.monotonic()
        if not self._failures and self._term is not None:
            wait = max(wait, self._left(self._term))
        return max(0.0, min(wait, self._stretch))

    def _try(self) -> bool:
        try:
            return self._renew()
        except Exception as exc:  # noqa: BLE001 - whatever it is: the token that is there stays, and it is tried again
            with self._mutex:
                if self._turn.stands():  # otherwise the session ended meanwhile, and that is why
                    self._failed(exc)
            return False

    def _renew(self) -> bool:
        """False when the session has ended meanwhile, or is another's: then nothing was written."""
        pending = self._pending
        if pending is None or self._left(pending.term) <= 0:
            minted = self._mint()  # takes as long as GitHub does; no lock is held
            pending = _Pending(minted, Term(minted.expires_at, self._clock.time(), self._clock.monotonic()))
        with self._mutex:
            if self._closed or not self._turn.held:
                return False
            try:
                with self._turn.guarded():
                    if not self._turn.stands():
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
            self._tell(Event("notice", "token.renewed_again", f"the GitHub token of {self.session} is renewed again"))
        else:
            self._tell(Event("debug", "token.renewed", f"renewed the GitHub token of {self.session}"))

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
            text = f"cannot renew the GitHub token of {self.session}, and keep trying: {error}"
            self._tell(Event("warning", "token.renewal_failed", text), error=error)
        term = self._term
        over = term is None or schedule.remaining(term, self._clock.time(), self._clock.monotonic()) <= 0
        if over and not self._expired:
            self._expired = True
            text = f"the GitHub token of {self.session} has expired; git in the sandbox cannot reach the server"
            self._tell(Event("warning", "token.expired", text), error=error)

    # --- saying ---

    def _note(self, **changes: Any) -> None:
        self.status = replace(self.status, **changes, holder=Holder(os.getpid(), self._kind))
        self._save()

    def _save(self) -> None:
        """The status is for others to look at: that it cannot be written is no reason to fail, nor to say so."""
        if not self._turn.held:
            return
        try:
            self.status.store(self.session_dir)
        except FilesystemError:
            self._unsaved = True
        else:
            self._unsaved = False

    def _tell(self, event: Event, **more: str) -> None:
        """Kept until no lock is held: whoever is told may take its time."""
        fields = {"session": self.session, "expires_at": self.status.expires_at, **more}
        self._news.append(event._replace(fields=fields))

    def _flush(self) -> None:
        with self._mutex:
            news, self._news = self._news, []
        for event in news:
            self._emit(event)
