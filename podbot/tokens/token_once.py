"""``token-daemon --once``: renew what is due now, and return an outcome for each session."""

from __future__ import annotations

import select
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from podbot.errors import PodbotError
from podbot.events import Emit
from podbot.github.grant import Grant
from podbot.github.mint import minter
from podbot.github.renewer import Renewer
from podbot.github.status import TokenStatus, short_error
from podbot.places import private_runtime_root
from podbot.session.flags import is_live
from podbot.streams.wake import Wake
from podbot.tokens.token_daemon import MOST, PER_LANE
from podbot.tokens.token_liveness import Connect, Engines
from podbot.tokens.token_watch import Found, MakeMinter, find_named, is_kept, phase_of
from podbot.tokens.worker_threads import Jobs

RenewalOutcome = Literal["renewed", "fresh", "held", "stopped", "ended", "failed"]


@dataclass(frozen=True)
class TokenRenewal:
    """The outcome for one session's token.

    ``fresh``: it is not due; ``held``: another process renews it; ``stopped``: its container is not running;
    ``ended``: the session ended meanwhile. ``expires_at``: seconds since the epoch; ``detail``: the process or reason.
    """

    session: str
    outcome: RenewalOutcome
    expires_at: float | None = None
    detail: str = ""


def renew_once(
    environ: Mapping[str, str],
    names: Collection[str],
    *,
    wake: Wake,
    emit: Emit,
    connect: Connect,
    make_minter: MakeMinter = minter,
) -> list[TokenRenewal]:
    """Renew the tokens that are due, of all sessions or of ``names``; returns outcomes sorted by name.

    A failure is an outcome. Raises TokenSessionMissing, UnsafeDirectory, and Interrupted when a signal arrived.
    """
    root = private_runtime_root(environ)
    found = find_named(root, names)
    jobs = Jobs(per_lane=PER_LANE, most=MOST)
    once = _Once(jobs, emit, make_minter)
    try:
        with wake.listening():
            orphans = once.start(found)
            engines = Engines(jobs, emit, connect=connect)
            for engine in {grant.engine_ref for grant in orphans.values()}:
                engines.look(engine, [grant.container for grant in orphans.values() if grant.engine_ref == engine])
            _wait(jobs, wake)
            for name, grant in orphans.items():
                verdict = engines.verdict(grant.engine_ref, grant.container)
                if verdict in ("stopped", "gone"):
                    once.results[name] = TokenRenewal(name, "stopped", detail="its container is not running")
                elif verdict != "runs" and is_kept(found[name].path):
                    detail = "it is kept and stopped, and its engine does not answer"
                    once.results[name] = TokenRenewal(name, "stopped", detail=detail)
                else:
                    once.renew(name, found[name], grant)
            _wait(jobs, wake)
    finally:
        once.close()
        jobs.close()
    return [once.results[name] for name in sorted(once.results)]


class _Once:
    def __init__(self, jobs: Jobs, emit: Emit, make_minter: MakeMinter) -> None:
        self.results: dict[str, TokenRenewal] = {}
        self._jobs, self._emit, self._make = jobs, emit, make_minter
        self._renewers: list[Renewer] = []

    def start(self, found: Mapping[str, Found]) -> dict[str, Grant]:
        """Renew the sessions that a podbot runs; return the others, whose containers must be checked first."""
        orphans = {}
        for name, where in found.items():
            try:
                grant = Grant.load(where.path)
            except PodbotError as exc:
                self.results[name] = TokenRenewal(name, "failed", detail=short_error(exc))
                continue
            if grant is None:
                self.results[name] = TokenRenewal(name, "ended")
            elif not grant.renewable:
                self.results[name] = TokenRenewal(name, "held", detail="only the session's own podbot has the variable")
            elif is_live(where.path):
                self.renew(name, where, grant)
            else:
                orphans[name] = grant
        return orphans

    def renew(self, name: str, where: Found, grant: Grant) -> None:
        """Renew in a worker thread when one is free."""
        phase = partial(phase_of, where.path)
        renewer = Renewer(where.path, grant, self._make(grant), kind="once", emit=self._emit, phase=phase)
        self._renewers.append(renewer)

        def work() -> Callable[[], None]:
            result = _renewed(name, renewer)
            return lambda: self.results.__setitem__(name, result)

        self._jobs.start(f"github {grant.api_url}", work)

    def close(self) -> None:
        """After this, renewals that a signal interrupted write nothing."""
        for renewer in self._renewers:
            renewer.close()


def _renewed(name: str, renewer: Renewer) -> TokenRenewal:
    try:
        outcome = renewer.once()
    except Exception as exc:  # noqa: BLE001 - the other sessions must still be renewed
        return TokenRenewal(name, "failed", detail=short_error(exc))
    if outcome == "held":
        status = TokenStatus.load(renewer.session_dir) or TokenStatus()
        return TokenRenewal(name, "held", status.expires_at, _holder(status))
    return TokenRenewal(name, outcome, renewer.status.expires_at, renewer.status.error or "")


def _holder(status: TokenStatus) -> str:
    if status.holder is None:
        return "another process renews it"
    kind = "the token-daemon" if status.holder.kind == "daemon" else f"podbot {status.holder.kind}"
    return f"{kind} (process {status.holder.pid}) renews it"


def _wait(jobs: Jobs, wake: Wake) -> None:
    poll = select.poll()
    for descriptor in (wake.fileno(), jobs.fileno()):
        poll.register(descriptor, select.POLLIN)
    while not jobs.idle:
        poll.poll(1000)
        wake.check()
        jobs.settle()
