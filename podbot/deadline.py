"""One time limit for a whole request: resolving, connecting, TLS, sending, head and body.

A socket's own timeout restarts with each byte, so a peer that sends one byte a second could hold its client for ever.
Therefore the remaining time is set before each wait.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from typing import Any

Resolve = Callable[[str, int], list[Any]]
"""The TCP addresses of a host and a port, as ``socket.getaddrinfo`` gives them; may block for long."""
Sooner = Callable[[], float | None]
"""How many seconds are left from now on; None if nothing has changed."""

_LOOK = 0.1  # seconds between two looks at whether a point in time comes sooner


class Deadline:
    """A point in time, ``seconds`` from now; or sooner.

    ``sooner``: asked while something waits; from the first time that it returns a number, so many seconds are left.
    """

    def __init__(self, seconds: float, sooner: Sooner | None = None) -> None:
        self.seconds = seconds
        self._begin = time.monotonic()
        self._sooner = sooner

    @property
    def _end(self) -> float:
        return self._begin + self.seconds

    def left(self) -> float:
        """The remaining seconds. Raises TimeoutError if there are none."""
        now = time.monotonic()
        if self._sooner is not None and (seconds := self._sooner()) is not None:
            self._sooner = None
            self.seconds = min(self.seconds, now - self._begin + seconds)
        if self._end <= now:
            raise TimeoutError
        return self._end - now

    def next_wait(self) -> float:
        """The seconds to wait until this is asked again. Raises TimeoutError if none are left."""
        left = self.left()
        return left if self._sooner is None else min(left, _LOOK)

    def within(self, seconds: float) -> Deadline:
        """The earlier of this point in time and that in ``seconds`` from now."""
        return self if self._end < time.monotonic() + seconds else Deadline(seconds)


def addresses(host: str, port: int) -> list[Any]:
    """What the system's resolver says."""
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


def connected(host: str, port: int, deadline: Deadline, *, resolve: Resolve = addresses) -> socket.socket:
    """A TCP connection to the first address of ``host`` that answers; each has its share of the time that is left.

    Its timeout is the time then remaining. Raises OSError, including TimeoutError; UnicodeError for an invalid host.
    """
    found = _resolved(host, port, deadline, resolve)
    failure = OSError(f"{host} has no address")
    for number, (family, kind, protocol, _, address) in enumerate(found):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.settimeout(deadline.left() / (len(found) - number))
            sock.connect(address)
            sock.settimeout(deadline.left())
        except OSError as exc:
            sock.close()
            failure = exc
        except BaseException:
            sock.close()
            raise
        else:
            return sock
    raise failure


def _resolved(host: str, port: int, deadline: Deadline, resolve: Resolve) -> list[Any]:
    """The resolver takes no limit: in a thread, which is left behind when its name servers do not answer."""
    import threading

    found: list[Any] = []

    def run() -> None:
        try:
            found.append(resolve(host, port))
        except (OSError, UnicodeError) as exc:
            found.append(exc)

    thread = threading.Thread(target=run, name="podbot-resolver", daemon=True)
    thread.start()
    thread.join(deadline.left())
    if not found:
        raise TimeoutError
    if isinstance(found[0], Exception):
        raise found[0]
    return list(found[0])
