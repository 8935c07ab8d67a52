"""One limit for a whole request: resolving, connecting, TLS, sending, head and body, however slowly bytes come.

A socket's own timeout begins anew with each byte: a peer that sends one a second holds its client for as long as it
likes. So the time that is left is set before each wait.
"""

from __future__ import annotations

import socket
import time
from typing import Any


class Deadline:
    """A point in time, ``seconds`` from now."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def left(self) -> float:
        """Seconds that are left. Raises TimeoutError when there are none."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def connected(host: str, port: int, deadline: Deadline) -> socket.socket:
    """A TCP connection to the first address of ``host`` that answers; each has its share of the time that is left.

    Its timeout is what is then left. Raises OSError, TimeoutError included, and UnicodeError for what is no host.
    """
    found = _resolved(host, port, deadline)
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
        else:
            return sock
    raise failure


def _resolved(host: str, port: int, deadline: Deadline) -> list[Any]:
    """The resolver takes no limit: in a thread, which is left behind when its name servers do not answer."""
    import threading

    found: list[Any] = []

    def resolve() -> None:
        try:
            found.append(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as exc:
            found.append(exc)

    thread = threading.Thread(target=resolve, name="podbot-resolver", daemon=True)
    thread.start()
    thread.join(deadline.left())
    if not found:
        raise TimeoutError
    if isinstance(found[0], Exception):
        raise found[0]
    return list(found[0])
