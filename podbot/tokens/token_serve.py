"""``token-daemon``: renew the tokens of all live sessions of a runtime directory until a signal ends it.

One thread does the work, handles signals and pings the watchdog, so that the watchdog notices a hang.
"""

from __future__ import annotations

import contextlib
import select
import signal
from collections.abc import Collection, Mapping
from typing import Protocol

from podbot.events import Emit
from podbot.places import private_runtime_root
from podbot.streams.wake import Signal, Wake
from podbot.tokens.token_daemon import SCAN, TokenDaemon
from podbot.tokens.token_liveness import Connect
from podbot.tokens.token_watch import find_named


class ServiceNotifier(Protocol):
    """Receives the daemon's state; see :class:`podbot.tokens.notify.Notifier`."""

    @property
    def watchdog(self) -> float | None: ...
    def ready(self, status: str) -> None: ...
    def status(self, text: str) -> None: ...
    def beat(self) -> None: ...
    def reloading(self) -> None: ...
    def stopping(self) -> None: ...


def serve(
    environ: Mapping[str, str],
    names: Collection[str],
    *,
    wake: Wake,
    notifier: ServiceNotifier,
    emit: Emit,
    connect: Connect,
) -> None:
    """Renew tokens until a signal other than HUP arrives through ``wake``; HUP re-reads everything.

    Raises TokenSessionMissing if one of ``names`` is not a session with a token, and AmbiguousName; later errors do
    not end it.
    """
    root = private_runtime_root(environ)
    names = list(find_named(root, names)) if names else names
    with wake.listening(), contextlib.closing(TokenDaemon(root, names, emit=emit, connect=connect)) as daemon:
        try:
            _run(daemon, wake, notifier)
        finally:
            notifier.stopping()


def _run(daemon: TokenDaemon, wake: Wake, notifier: ServiceNotifier) -> None:
    delay = daemon.step()
    daemon.say_started()
    notifier.ready(daemon.summary)
    poll = select.poll()  # not select(), which cannot use descriptors above 1023, as 500 sessions need
    for descriptor in (wake.fileno(), daemon.jobs.fileno()):
        poll.register(descriptor, select.POLLIN)
    longest = min(SCAN, notifier.watchdog or SCAN)
    while True:
        notifier.beat()
        notifier.status(daemon.summary)
        poll.poll(max(0.0, min(delay, longest)) * 1000)
        signals = [message.number for message in wake.take() if isinstance(message, Signal)]
        if any(number != signal.SIGHUP for number in signals):
            return
        if signals:
            notifier.reloading()
            daemon.refresh()
        delay = daemon.step()
        if signals:
            notifier.ready(daemon.summary)
