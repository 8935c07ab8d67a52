"""Information about a session's token: its age, the process that renews it, its last error. Never the token itself."""

from __future__ import annotations

import os
from collections.abc import Mapping

from podbot.frozen import Frozen
from podbot.places import runtime_root

STATUS = "token.status.json"  # as in github.status, which `podbot ps` imports only if there is a clone


class TokenHolder(Frozen):
    """The process that renews a token now. ``kind``: session (its own podbot), daemon or once."""

    pid: int
    kind: str


class TokenInfo(Frozen):
    """The GitHub token of a session. Times are in seconds since the epoch, None if there was no token yet.

    ``failures``: attempts in a row that failed, ``error`` the last one's text. ``holder`` is None when no process
    renews it.
    """

    expires_at: float | None
    minted_at: float | None
    next_renewal: float | None
    failures: int
    error: str | None
    holder: TokenHolder | None


def token_info(session_dir: str) -> TokenInfo | None:
    """Information about a session's token; None if it has none, which costs one lstat."""
    if not os.path.lexists(os.path.join(session_dir, STATUS)):
        return None
    from podbot.github.lease import LEASE
    from podbot.github.status import TokenStatus
    from podbot.locks import is_held

    status = TokenStatus.load(session_dir)
    if status is None or (status.expires_at is None and not status.failures):
        return None
    held = status.holder is not None and is_held(os.path.join(session_dir, LEASE))
    return TokenInfo(
        expires_at=status.expires_at,
        minted_at=status.minted_at,
        next_renewal=status.next_renewal,
        failures=status.failures,
        error=status.error,
        holder=TokenHolder(status.holder.pid, status.holder.kind) if status.holder is not None and held else None,
    )


def token_sessions(environ: Mapping[str, str]) -> dict[str, TokenInfo | None]:
    """Every session with a token to renew, by name; None for one that has no token yet."""
    from podbot.tokens.token_watch import find

    found = find(runtime_root(environ))
    return {name: token_info(found[name].path) for name in sorted(found)}
