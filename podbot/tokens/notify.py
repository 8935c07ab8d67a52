"""Notifies the service manager: sd_notify's datagrams, without libsystemd."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Mapping, MutableMapping

VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
SEND_TIMEOUT = 0.5  # seconds for a datagram; a manager that does not read must not block the daemon


class Notifier:
    """The manager's socket; sends nothing when the environment names none.

    ``watchdog``: seconds between two pings, half of what the manager allows; None when it wants none.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        clock: Callable[[], float] = time.monotonic,
        send_timeout: float = SEND_TIMEOUT,
    ) -> None:
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        self._clock, self._send_timeout = clock, send_timeout
        self.watchdog = _interval(environ) if self._address else None
        self._beaten = float("-inf")
        self._status = ""

    def ready(self, status: str) -> None:
        """The service is up, or has reloaded."""
        self._status = status
        self._send("READY=1", _status(status))

    def status(self, text: str) -> None:
        """One line for ``systemctl status``; sent when it has changed."""
        if text != self._status:
            self._status = text
            self._send(_status(text))

    def beat(self) -> None:
        """A watchdog ping, when one is due."""
        now = self._clock()
        if self.watchdog is not None and now - self._beaten >= self.watchdog:
            self._beaten = now
            self._send("WATCHDOG=1")

    def reloading(self) -> None:
        """A reload begins; :meth:`ready` ends it."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        """The service ends."""
        self._send("STOPPING=1", _status("ending"))

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        # One socket a message: it is a few a minute, and the manager may have been restarted in between.
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
            out.settimeout(self._send_timeout)
            out.sendto("\n".join(lines).encode(), self._address)


def taken(environ: MutableMapping[str, str]) -> Notifier:
    """The notifier of this process; its variables are removed, so that no child process can use them."""
    notifier = Notifier(environ)
    for name in VARIABLES:
        environ.pop(name, None)
    return notifier


def _address(text: str) -> str | bytes:
    """A path, or an abstract name (written with an @); anything else is ignored."""
    if text.startswith("@"):
        return b"\0" + os.fsencode(text[1:])
    return text if text.startswith("/") else ""


def _interval(environ: Mapping[str, str]) -> float | None:
    """Half of the manager's limit, in seconds; None when it set none for this process."""
    text = environ.get("WATCHDOG_USEC", "")
    if environ.get("WATCHDOG_PID") not in (None, "", str(os.getpid())):
        return None
    if not (text.isascii() and text.isdigit()) or int(text) == 0:
        return None
    return int(text) / 2e6


def _status(text: str) -> str:
    return "STATUS=" + " ".join(text.split())
