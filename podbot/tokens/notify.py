"""What a service tells its service manager: sd_notify's datagrams, without libsystemd."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Mapping, MutableMapping

VARIABLES = ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")
PATIENCE = 0.5  # seconds for a datagram; a manager that does not read must not stop the work


class Notifier:
    """The manager's socket; silent where no manager asked to be told.

    ``watchdog``: seconds between two signs of life, half of what the manager allows; None: it wants none.
    """

    def __init__(self, environ: Mapping[str, str], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._address = _address(environ.get("NOTIFY_SOCKET", ""))
        self._clock = clock
        self.watchdog = _interval(environ) if self._address else None
        self._beaten = float("-inf")
        self._status = ""

    def ready(self, status: str) -> None:
        """The service is up, or has reloaded."""
        self._status = status
        self._send("READY=1", _status(status))

    def status(self, text: str) -> None:
        """One line for ``systemctl status``; sent when it is another than before."""
        if text != self._status:
            self._status = text
            self._send(_status(text))

    def beat(self) -> None:
        """A sign of life, when one is due."""
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
            out.settimeout(PATIENCE)
            out.sendto("\n".join(lines).encode(), self._address)


def taken(environ: MutableMapping[str, str]) -> Notifier:
    """The notifier of this process, with its variables taken away: no child speaks in its name."""
    notifier = Notifier(environ)
    for name in VARIABLES:
        environ.pop(name, None)
    return notifier


def _address(text: str) -> str | bytes:
    """A path, or an abstract name (written with an @); anything else is not for us."""
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
