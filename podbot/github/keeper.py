"""A context manager that keeps a session's token: present on entry, renewed in a thread, removed at the end."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from podbot.errors import FilesystemError, PathError, PodbotError
from podbot.events import Emit, Event
from podbot.github.clock import SYSTEM, Clock
from podbot.github.grant import Grant, withdraw
from podbot.github.lease import GUARD, LEASE, FileLock
from podbot.github.renewer import LONGEST_PAUSE, Mint, Renewer
from podbot.github.status import TokenStatus, status_path
from podbot.github.token_file import SECRETS, TokenFile
from podbot.streams.wake import signals_blocked

GUARD_WAIT = 2.0  # seconds


class Waits(NamedTuple):
    """Time limits, in seconds. ``join``: how long the end waits for a request to GitHub in progress.

    ``lease``: how long a start waits until the previous session of the same name has released its lease. ``guard``:
    how long the end waits for another process that writes the token at that moment.
    """

    pause: float = LONGEST_PAUSE
    join: float = 1.0
    lease: float = 15.0
    guard: float = GUARD_WAIT


DEFAULT_WAITS = Waits()


@contextlib.contextmanager
def token_kept(
    session_dir: str,
    grant: Grant,
    mint: Mint,
    emit: Emit,
    *,
    clock: Clock = SYSTEM,
    handed_over: Callable[[], bool] = lambda: False,
    waits: Waits = DEFAULT_WAITS,
) -> Iterator[TokenStatus]:
    """``secrets/ghapp_token`` in ``session_dir``, present on entry and renewed until the block ends.

    Yields the first token's status. ``emit`` is called from another thread, too. A token-daemon may take the
    renewal over and give it back. At the end the grant and the token are removed without waiting for a request in
    progress, unless ``handed_over()``: then another process ends the session. Raises what
    ``mint`` raises when the first token cannot be made, and DiskFull, PathError, UnsafeDirectory.
    """
    renewer = Renewer(session_dir, grant, mint, kind="session", clock=clock, emit=emit, longest_pause=waits.pause)
    stop = threading.Event()
    args = (stop, renewer, clock, waits.pause)
    thread = threading.Thread(target=_renew_until, args=args, name="podbot-token", daemon=True)
    renewer.file.prepare()
    try:
        _take_lease(renewer, waits.lease)
        try:
            grant.store(session_dir)
            status = renewer.ensure()
            with signals_blocked():
                thread.start()
            yield status
        finally:
            stop.set()
            if not handed_over():
                if thread.ident is not None:
                    thread.join(waits.join)
                renewer.close()
                clear_token(session_dir, emit, guard_wait=waits.guard)
    finally:
        renewer.close()


def _renew_until(stop: threading.Event, renewer: Renewer, clock: Clock, longest_pause: float) -> None:
    pause = 0.0
    while not renewer.ended and not clock.wait(stop, pause):
        try:
            pause = renewer.tick()
        except Exception:  # noqa: BLE001 - only `emit` raises here, and a failing reporter must not stop the renewal
            pause = longest_pause


def _take_lease(renewer: Renewer, seconds: float) -> None:
    """A daemon may still renew an earlier session of this name: it releases the lease once the grant is removed."""
    end = time.monotonic() + seconds
    while not renewer.take_lease():
        withdraw(renewer.session_dir)
        if time.monotonic() > end:
            holder = (TokenStatus.load(renewer.session_dir) or TokenStatus()).holder
            reason = f"process {holder.pid} ({holder.kind}) holds it" if holder else "another process holds it"
            raise PathError(path=os.path.join(renewer.session_dir, LEASE), operation="lock", reason=reason)
        time.sleep(0.05)


def remove_token(session_dir: str) -> None:
    """Remove the token of a session that may be started again: its grant stays. No token is being written meanwhile.

    Raises PathError, UnsafeDirectory.
    """
    with FileLock(os.path.join(session_dir, GUARD)) as guard:
        guard.acquire(GUARD_WAIT)
        TokenFile(os.path.join(session_dir, SECRETS)).remove()


def clear_token(session_dir: str, emit: Emit, *, guard_wait: float = GUARD_WAIT) -> None:
    """Remove the grant, then the token: every writer checks the grant first, so none writes a token in between."""
    file, guard = TokenFile(os.path.join(session_dir, SECRETS)), FileLock(os.path.join(session_dir, GUARD))
    try:
        withdraw(session_dir)
        with guard:
            guard.acquire(guard_wait)
            file.remove()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(status_path(session_dir))
    except (PodbotError, OSError) as exc:
        reason = exc.message if isinstance(exc, FilesystemError) else str(exc)
        text = f"the GitHub token in {file.path} could not be removed ({reason}); an App's token expires within an hour"
        emit(Event("warning", "token.left", text, {"path": file.path}))
