"""The GitHub tokens of sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from podbot.api.calls import woken
from podbot.api.engines import environment, reopen
from podbot.events import Emit, ignore
from podbot.streams.wake import Wake

if TYPE_CHECKING:
    from podbot.tokens.token_once import TokenRenewal
    from podbot.tokens.token_serve import ServiceNotifier

__all__ = ["token_daemon"]


def token_daemon(
    names: Sequence[str] = (),
    *,
    once: bool = False,
    notifier: ServiceNotifier | None = None,
    wake: Wake | None = None,
    environ: Mapping[str, str] | None = None,
    emit: Emit = ignore,
) -> list[TokenRenewal]:
    """Renew the GitHub tokens of the runtime directory's sessions, or of ``names``; ``once``: only those due now.

    Blocks until ``wake.post(Signal(SIGTERM))`` from another thread, and then returns an empty list (SIGHUP does not end
    it). With ``once`` it returns one entry for each session, including failures. ``notifier`` receives READY, WATCHDOG
    and STATUS. It reads no configuration, because each session's record has the data for its renewal. Raises
    TokenSessionMissing and UnsafeDirectory, and with ``once`` Interrupted.
    """
    environ = environment(environ)
    with woken(wake) as waker:
        if once:
            from podbot.tokens.token_once import renew_once

            return renew_once(environ, names, wake=waker, emit=emit, connect=reopen)
        from podbot.tokens.notify import Notifier
        from podbot.tokens.token_serve import serve

        serve(environ, names, wake=waker, notifier=notifier or Notifier({}), emit=emit, connect=reopen)
        return []
