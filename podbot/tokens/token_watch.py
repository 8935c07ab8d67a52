"""Finds the sessions with a token to renew in the runtime directory, and tracks each with its renewer."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import NamedTuple

from podbot.errors import AmbiguousName, PodbotError, TokenSessionMissing
from podbot.github.grant import Grant, grant_path
from podbot.github.lease import CLAIM, LEASE
from podbot.github.mint import Minter, minter
from podbot.github.renewer import Minted, Renewer
from podbot.github.status import TokenStatus
from podbot.launch.names import names_meant
from podbot.locks import is_held
from podbot.places import is_own_directory
from podbot.session.flags import ENDING, STOPPING, is_live
from podbot.session.record import read_record
from podbot.tokens.token_liveness import Verdict

RELAXED_PAUSE = (
    10.0  # seconds between ticks of a token not due for FAR; a tick costs 0.1 ms, 100 sessions 0.1 % of a core
)
FAR = 60.0
MakeMinter = Callable[[Grant], Minter]


class MustRunInWorker(BaseException):
    """GitHub would be asked in the loop's thread; a worker does that. Not an Exception, because nothing failed."""


class Found(NamedTuple):
    """A session directory with a grant. ``version`` changes with the grant, and with the directory."""

    path: str
    version: tuple[int, int]


def find(root: str, names: Collection[str] = ()) -> dict[str, Found]:
    """Sessions with a grant below the runtime directory ``root``; only those in ``names`` if it is not empty."""
    found: dict[str, Found] = {}
    if not is_own_directory(root):
        return found
    try:
        with os.scandir(root) as entries:
            for entry in entries:
                if entry.name.startswith(".") or (names and entry.name not in names):
                    continue
                version = _version(entry.path)
                if version is not None:
                    found[entry.name] = Found(entry.path, version)
    except OSError:
        pass
    return found


def find_named(root: str, names: Collection[str]) -> dict[str, Found]:
    """Like :func:`find`, also for a part of a name that means only one. Raises TokenSessionMissing when one of
    ``names`` is not found, and AmbiguousName.
    """
    names = [_whole(root, name) for name in names]
    found = find(root, names)
    for name in names:
        if name not in found:
            there = os.path.basename(name) == name.strip(".") != "" and os.path.isdir(os.path.join(root, name))
            reason = TokenSessionMissing.NONE if there else "no session of that name has one"
            raise TokenSessionMissing(session=name, reason=reason)
    return found


def _whole(root: str, name: str) -> str:
    """The only session with a token that ``name`` can mean; ``name`` itself if there is none."""
    if not name or os.path.lexists(os.path.join(root, name)):
        return name
    meant = names_meant(name, find(root))
    if len(meant) > 1:
        raise AmbiguousName.among(name, meant)
    return meant[0] if meant else name


def is_kept(path: str) -> bool:
    """Whether podbot ended the session and kept its stopped container."""
    try:
        record = read_record(path)
    except PodbotError:
        return False
    return record is not None and record.state == "stopped"


def phase_of(path: str) -> str | None:
    """The phase of the session in directory ``path`` for its renewer; None while a process ends or stops it."""
    if is_live(path, ENDING) or is_live(path, STOPPING):
        return None
    return "kept" if is_kept(path) else "live"


def _version(path: str) -> tuple[int, int] | None:
    try:
        there = os.lstat(grant_path(path))
    except OSError:
        return None
    return there.st_ino, there.st_mtime_ns


@dataclass(eq=False)
class Watched:
    """One session that a daemon renews. ``next``: monotonic time of the next tick.

    ``locked``: a podbot runs it. ``busy``: a worker thread renews it now. ``resting``: nothing is renewed,
    because its container does not run or its grant is unusable.
    """

    name: str
    found: Found
    grant: Grant | None = None
    renewer: Renewer | None = None
    locked: bool = False
    busy: bool = False
    resting: bool = False
    verdict: Verdict | None = None  # the engine's answer that was acted on
    trouble: str = ""
    next: float = 0.0

    @property
    def kept(self) -> bool:
        """Whether its podbot ended it and kept its stopped container."""
        return is_kept(self.found.path)

    def contended(self) -> bool:
        """Whether other processes hold both the session's claim and its lease; cheap enough for every tick."""
        return is_held(os.path.join(self.found.path, LEASE)) and is_held(os.path.join(self.found.path, CLAIM))

    def close(self) -> None:
        """Release the session."""
        if self.renewer is not None:
            self.renewer.close()
            self.renewer = None


def mint_in_worker(grant: Grant, loop: int, make: MakeMinter = minter) -> Callable[[], Minted]:
    """A session's mint; in the thread ``loop`` it raises MustRunInWorker instead of waiting for a server."""
    mint = make(grant)

    def call() -> Minted:
        if threading.get_ident() == loop:
            raise MustRunInWorker
        return mint()

    return call


def pace(renewer: Renewer, delay: float) -> float:
    """``delay``, or longer while the token is far from due."""
    due = renewer.status.next_renewal
    relaxed = renewer.writing and not renewer.status.failures and due is not None and due - time.time() > FAR
    return RELAXED_PAUSE if relaxed else delay


def other_daemon(watched: Watched) -> int:
    """Process id of another daemon that renews the session; 0 when none does."""
    if watched.resting or (watched.renewer is not None and watched.renewer.writing):
        return 0
    status = TokenStatus.load(watched.found.path)
    holder = status.holder if status is not None else None
    theirs = holder is not None and holder.kind == "daemon" and holder.pid != os.getpid()
    return holder.pid if holder is not None and theirs and watched.contended() else 0


def give_back_memory() -> None:
    """Return memory that threads and TLS freed to the system, where the C library can (glibc)."""
    import ctypes  # PyGithub's libraries have it loaded already
    import gc

    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
