"""The state of a token-daemon, and the steps in which it renews the tokens of its sessions.

Everything belongs to the thread that calls :meth:`TokenDaemon.step`, which never waits for a server: requests to
engines and GitHub run in worker threads (:mod:`podbot.tokens.worker_threads`).
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection
from functools import partial

from podbot.engine.endpoint import EngineRef
from podbot.errors import PodbotError
from podbot.events import Emit, Event, Level
from podbot.github.clock import SYSTEM, Clock
from podbot.github.grant import Grant
from podbot.github.keeper import clear_token
from podbot.github.lease import FileLock
from podbot.github.mint import minter
from podbot.github.renewer import Renewer
from podbot.github.status import short_error, status_path
from podbot.session.flags import LOCK, is_live
from podbot.tokens.token_liveness import Connect, Engines, Verdict
from podbot.tokens.token_watch import (
    MakeMinter,
    MustRunInWorker,
    Watched,
    find,
    give_back_memory,
    mint_in_worker,
    other_daemon,
    pace,
    phase_of,
)
from podbot.tokens.worker_threads import Jobs

SCAN = 2.0  # seconds between scans for new and ended sessions: one directory, one lstat for each session
LOOK = 5.0  # seconds between checks which sessions still run: one flock for each session
TOGETHER = 0.5  # seconds; ticks that are closer than this share a step
SLICE = 0.2  # seconds of ticks in a row, and so the longest delay for a signal or the watchdog
GUARD = 0.2  # seconds to wait for a process that writes a token, which takes milliseconds
RECENT = 60.0  # seconds; a token is minted only if the engine's answer is not older than this
TROUBLED = 30.0  # seconds before a session that failed unexpectedly is tried again
PER_LANE, MOST = 4, 16  # calls at a time: to one server, and in all
TRIM = 60.0  # seconds between returning freed memory: each costs 30 ms, and frees 10 MB after TLS in four threads


class TokenDaemon:
    """What the loop knows. ``step`` does what is due and says how long nothing will be.

    ``clock``: the loop's, monotonic; ``renewal_clock``: that by which tokens are due. ``trim``: gives memory back.
    ``slice_seconds``: how long one step may tick sessions.
    """

    def __init__(
        self,
        root: str,
        names: Collection[str] = (),
        *,
        emit: Emit,
        connect: Connect,
        make_minter: MakeMinter = minter,
        clock: Callable[[], float] = time.monotonic,
        renewal_clock: Clock = SYSTEM,
        trim: Callable[[], None] = give_back_memory,
        slice_seconds: float = SLICE,
    ) -> None:
        self._root, self._names, self._clock, self._make = root, tuple(names), clock, make_minter
        self._renewal_clock, self._trim, self._slice = renewal_clock, trim, slice_seconds
        self._loop = threading.get_ident()
        self._emitting = threading.Lock()
        self._emit_to = emit
        self.jobs = Jobs(per_lane=PER_LANE, most=MOST)
        self.engines = Engines(self.jobs, self._emit, connect=connect, clock=clock)
        self.watched: dict[str, Watched] = {}
        self._next_scan = self._next_look = float("-inf")
        self._next_trim = float("-inf")
        self._used = False  # GitHub was asked since the last trim
        self._standby = False
        self.summary = "starting"  # one line for the service manager

    # --- the loop's steps ---

    def step(self) -> float:
        """Settle jobs, scan, check and tick, each when it is due; returns the seconds until the next step."""
        self.jobs.settle()
        now = self._clock()
        if now >= self._next_scan:
            self._scan()
            self._next_scan = now + SCAN
        if now >= self._next_look:
            self._look_at(self.watched.values())
            self._next_look = now + LOOK
            self._say_standby()
            self.summary = self._summed_up()
        if self._used and self.jobs.idle and now >= self._next_trim:
            self._used, self._next_trim = False, now + TRIM
            self._trim()
        if not self._tick(now):
            return 0.0
        nexts = [watched.next for watched in self.watched.values() if not (watched.busy or watched.resting)]
        # Ticks at nearly the same time share a step.
        return max(TOGETHER, min([self._next_scan, self._next_look, *nexts]) - self._clock())

    def refresh(self) -> None:
        """Make the next step check everything again."""
        self._next_scan = self._next_look = float("-inf")
        self.engines.forget()
        for watched in self.watched.values():
            watched.next = 0.0

    def close(self) -> None:
        """Release every session. Calls in progress end by themselves and write nothing."""
        for watched in self.watched.values():
            watched.close()
        self.watched.clear()
        self.jobs.close()

    # --- which sessions there are ---

    def _scan(self) -> None:
        found = find(self._root, self._names)
        for name in [name for name, watched in self.watched.items() if found.get(name) != watched.found]:
            self.watched.pop(name).close()
            self._emit(Event("debug", "daemon.forgot", f"the session {name} has ended", {"session": name}))
        new = [Watched(name, found[name]) for name in sorted(found.keys() - self.watched.keys())]
        for watched in new:
            self.watched[watched.name] = watched
            if (grant := self._grant(watched)) is not None and self._verdict(watched) is not None:
                self.engines.forget([grant.container])  # the answer is about an earlier session of that name
            self._emit(Event("debug", "daemon.found", f"found the session {watched.name}", {"session": watched.name}))
        self._look_at(new)

    def _look_at(self, those: Collection[Watched]) -> None:
        """Check which of ``those`` are live, and ask engines about sessions that no podbot runs."""
        engines = set()
        for watched in those:
            before, watched.locked = watched.locked, is_live(watched.found.path)
            grant = self._grant(watched)
            if grant is None:
                continue
            if watched.locked:
                watched.resting, watched.verdict = False, None
                continue
            if before:
                self.engines.forget([grant.container])
            engines.add(grant.engine_ref)
        for engine in engines:  # with all of its orphans, so that one listing answers for all of them
            orphans = self._orphans(engine)
            self.engines.look(engine, orphans)
            for orphan in orphans.values():
                try:
                    self._judge(orphan)
                except Exception as exc:  # noqa: BLE001 - see _tick
                    self._troubled(orphan, exc)

    def _grant(self, watched: Watched) -> Grant | None:
        """The session's grant, read once; an unreadable one is reported once and skipped until it changes."""
        if watched.grant is None and not watched.trouble:
            try:
                watched.grant = Grant.load(watched.found.path)
            except PodbotError as exc:
                self._troubled(watched, exc)
            watched.resting = watched.grant is None
        if watched.grant is not None and not watched.grant.renewable:
            watched.resting = True
            return None
        return watched.grant

    def _judge(self, watched: Watched) -> None:
        """Act on the engine's answer about a session that no podbot runs."""
        verdict = self._verdict(watched)
        if verdict is None or verdict == watched.verdict:
            return
        if verdict == "unknown":
            if watched.verdict is None:  # an earlier answer stays valid while the engine does not answer
                watched.verdict, watched.resting = verdict, watched.kept  # a kept session was stopped by its podbot
            return
        if verdict in ("stopped", "gone") and is_live(watched.found.path):
            return
        watched.verdict = verdict
        watched.resting = verdict in ("stopped", "gone")
        watched.next = 0.0
        if watched.resting:
            self._rest(watched, gone=verdict == "gone")

    def _rest(self, watched: Watched, *, gone: bool) -> None:
        news: Level = "info" if gone or watched.renewer is not None else "debug"
        if watched.renewer is not None and watched.renewer.writing and not watched.busy:
            with contextlib.suppress(PodbotError, OSError):
                watched.renewer.file.remove()  # it is not needed, and would be valid for up to an hour
                os.unlink(status_path(watched.found.path))
        watched.close()
        why = "is gone" if gone else "is not running"
        text = f"the container of {watched.name} {why}, so its token is no longer renewed"
        self._emit(Event(news, "daemon.dropped", text, {"session": watched.name}))
        if gone:
            # The directory stays: the next command, or the process that ends the session, reports what the agent left.
            with FileLock(os.path.join(watched.found.path, LOCK)) as lock:  # another podbot may have taken the name
                if lock.try_acquire():
                    clear_token(watched.found.path, self._emit, guard_wait=GUARD)

    # --- their tokens ---

    def _tick(self, now: float) -> bool:
        """Tick the sessions that are due; returns false if the slice ended before all were ticked."""
        end = time.monotonic() + self._slice
        for watched in list(self.watched.values()):
            if watched.busy or watched.resting or watched.next > now:
                continue
            if time.monotonic() > end:
                return False
            try:
                watched.next = now + self._ticked(watched)
            except Exception as exc:  # noqa: BLE001 - one session's error must not stop the others' renewals
                self._troubled(watched, exc)
                watched.next = now + TROUBLED
        return True

    def _ticked(self, watched: Watched) -> float:
        """Tick one session; returns the seconds until its next tick."""
        if not watched.locked:
            self._judge(watched)
            if self._verdict(watched) is None or watched.resting:
                return SCAN
        renewer = watched.renewer or self._renewer(watched)
        if renewer is None or (not renewer.writing and watched.contended()):
            return SCAN
        try:
            return pace(renewer, renewer.tick())
        except MustRunInWorker:
            pass
        if not watched.locked and not self._asked_lately(watched):
            return 0.5  # the answer may be that its container has ended
        watched.busy = self._used = True
        self.jobs.start(f"github {renewer.grant.api_url}", lambda: self._renewal(watched, renewer))
        return 0.0

    def _verdict(self, watched: Watched) -> Verdict | None:
        """Its engine's answer. An engine that does not answer proves nothing, so its sessions continue."""
        grant = watched.grant
        return self.engines.verdict(grant.engine_ref, grant.container) if grant is not None else None

    def _asked_lately(self, watched: Watched) -> bool:
        """Whether there is a recent answer about an orphan; if not, the engine is asked."""
        engine = watched.grant.engine_ref if watched.grant is not None else EngineRef("")
        return self.engines.look(engine, self._orphans(engine), within=RECENT)

    def _orphans(self, engine: EngineRef) -> dict[str, Watched]:
        """Sessions at an engine that no podbot runs, by their container's name."""
        return {
            watched.grant.container: watched
            for watched in self.watched.values()
            if watched.grant is not None and watched.grant.engine_ref == engine and not watched.locked
        }

    def _renewer(self, watched: Watched) -> Renewer | None:
        if (grant := watched.grant) is None:
            return None
        mint = mint_in_worker(grant, self._loop, self._make)
        path = watched.found.path
        watched.renewer = Renewer(
            path, grant, mint, kind="daemon", clock=self._renewal_clock, emit=self._emit, phase=partial(phase_of, path)
        )
        return watched.renewer

    def _renewal(self, watched: Watched, renewer: Renewer) -> Callable[[], None]:
        """The tick that sends a request to GitHub, in a worker thread."""
        failure: Exception | None = None
        delay = TROUBLED
        try:
            delay = renewer.tick()
        except Exception as exc:  # noqa: BLE001 - reported in ``settled``
            failure = exc

        def settled() -> None:
            watched.busy = False
            watched.next = self._clock() + pace(renewer, delay)
            if failure is not None:
                self._troubled(watched, failure)

        return settled

    # --- reporting ---

    def _summed_up(self) -> str:
        keeping = [watched.renewer for watched in self.watched.values() if watched.renewer and watched.renewer.writing]
        failing = sum(1 for renewer in keeping if renewer.status.failures)
        nexts = [renewer.status.next_renewal for renewer in keeping if renewer.status.next_renewal is not None]
        live = sum(1 for watched in self.watched.values() if not watched.resting)
        text = f"renewing {len(keeping)} of {live} tokens"
        if failing:
            text += f", {failing} cannot be renewed now"
        return f"{text}; next renewal at {time.strftime('%H:%M', time.localtime(min(nexts)))}" if nexts else text

    def say_started(self) -> None:
        """Report that the daemon has started."""
        text = f"renewing the GitHub tokens of sessions in {self._root} ({len(self.watched)} now)"
        self._emit(Event("info", "daemon.started", text, {"sessions": len(self.watched)}))

    def _say_standby(self) -> None:
        """Report once when another daemon renews sessions here, and once when none does any more."""
        others = {holder for watched in self.watched.values() if (holder := other_daemon(watched))}
        if bool(others) == self._standby:
            return
        self._standby = bool(others)
        if others:
            text = f"another token-daemon (process {min(others)}) renews sessions here; standing by for them"
            self._emit(Event("notice", "daemon.standby", text, {"pid": min(others)}))
        else:
            self._emit(Event("notice", "daemon.alone", "no other token-daemon has sessions here any more"))

    def _troubled(self, watched: Watched, exc: Exception) -> None:
        text = short_error(exc)
        if text != watched.trouble:
            watched.trouble = text
            self._emit(Event("warning", "daemon.trouble", f"{watched.name}: {text}", {"session": watched.name}))

    def _emit(self, event: Event) -> None:
        """Emit one event at a time, because renewals emit from their own threads."""
        with self._emitting:
            self._emit_to(event)
