"""A session's token for as long as a block runs: there from the first line, renewed beside it, gone at the end."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

from podbot.errors import FilesystemError, PathError, PodbotError
from podbot.events import Emit, Event
from podbot.github.clock import SYSTEM, Clock
from podbot.github.grant import Grant, withdraw
from podbot.github.lease import GUARD, LEASE, FileLock
from podbot.github.renewer import STRETCH, Mint, Renewer
from podbot.github.status import TokenStatus, status_path
from podbot.github.token_file import SECRETS, TokenFile

JOIN = 1.0  # seconds that the end waits for a request to GitHub that is under way
LEASE_WAIT = 15.0  # for whoever still holds the lease of a session whose name is used again
GUARD_WAIT = 2.0


@contextlib.contextmanager
def token_kept(
    session_dir: str,
    grant: Grant,
    mint: Mint,
    emit: Emit,
    *,
    clock: Clock = SYSTEM,
    handed_over: Callable[[], bool] = lambda: False,
) -> Iterator[TokenStatus]:
    """``secrets/ghapp_token`` in ``session_dir``, present on entry and renewed until the block ends.

    Yields the first token's status. ``emit`` is called from another thread, too. A token-daemon may take the
    renewal over meanwhile, and give it back. At the end the grant and the token are removed; a request under way
    does not hold that up. They stay when ``handed_over`` says that another process ends the session. Raises what
    ``mint`` raises when there is no first token, and DiskFull, PathError, UnsafeDirectory.
    """
    renewer = Renewer(session_dir, grant, mint, kind="session", clock=clock, emit=emit)
    stop = threading.Event()
    thread = threading.Thread(target=_renew_until, args=(stop, renewer, clock), name="podbot-token", daemon=True)
    renewer.file.prepare()
    try:
        _take_lease(renewer)
        try:
            grant.store(session_dir)
            status = renewer.ensure()
            _start(thread)
            yield status
        finally:
            stop.set()
            if not handed_over():
                if thread.ident is not None:
                    thread.join(JOIN)
                renewer.close()
                clear_token(session_dir, emit)
    finally:
        renewer.close()


def _renew_until(stop: threading.Event, renewer: Renewer, clock: Clock) -> None:
    pause = 0.0
    while not renewer.ended and not clock.wait(stop, pause):
        try:
            pause = renewer.tick()
        except Exception:  # noqa: BLE001 - only `emit` raises here, and a reporter that fails must not cost the token
            pause = STRETCH


def _start(thread: threading.Thread) -> None:
    """Signals stay the main thread's: one that the kernel gave to this thread would not wake what that waits in."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        thread.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _take_lease(renewer: Renewer) -> None:
    """The name may have been another session's, which a daemon still renews: without its grant it lets go."""
    end = time.monotonic() + LEASE_WAIT
    while not renewer.take_lease():
        withdraw(renewer.session_dir)
        if time.monotonic() > end:
            holder = (TokenStatus.load(renewer.session_dir) or TokenStatus()).holder
            reason = f"process {holder.pid} ({holder.kind}) holds it" if holder else "another process holds it"
            raise PathError(path=os.path.join(renewer.session_dir, LEASE), operation="lock", reason=reason)
        time.sleep(0.05)


def clear_token(session_dir: str, emit: Emit) -> None:
    """Withdraw the grant, then remove the token: in between nobody can write one, for all look at the grant first."""
    file, guard = TokenFile(os.path.join(session_dir, SECRETS)), FileLock(os.path.join(session_dir, GUARD))
    try:
        withdraw(session_dir)
        with guard:
            guard.acquire(GUARD_WAIT)
            file.remove()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(status_path(session_dir))
    except (PodbotError, OSError) as exc:
        reason = exc.message if isinstance(exc, FilesystemError) else str(exc)
        text = f"the GitHub token in {file.path} could not be removed ({reason}); it lasts for an hour at most"
        emit(Event("warning", "token.left", text, {"path": file.path}))
