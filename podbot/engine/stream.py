"""A hijacked exec connection, non-blocking, plain or TLS."""

from __future__ import annotations

import contextlib
import socket
import sys


class SocketStream:
    """See :class:`podbot.engine.port.ExecStream`."""

    def __init__(self, sock: socket.socket, leftover: bytes) -> None:
        self.leftover = leftover
        self._sock = sock
        sock.setblocking(False)

    def fileno(self) -> int:
        return self._sock.fileno()

    def recv(self, limit: int) -> bytes:
        """See the port. A TLS socket reports "would block" with its own exceptions."""
        try:
            return self._sock.recv(limit)
        except OSError as exc:
            raise _would_block(exc) from exc

    def send(self, data: bytes | memoryview) -> int:
        try:
            return self._sock.send(data)
        except OSError as exc:
            raise _would_block(exc) from exc

    def shut_write(self) -> None:
        with contextlib.suppress(OSError):  # the peer is gone already, which reading reports
            # Not the TLS socket's own method, which drops the session, so that later data would be read undecrypted.
            socket.socket.shutdown(self._sock, socket.SHUT_WR)

    def close(self) -> None:
        self._sock.close()


def _would_block(exc: OSError) -> OSError:
    ssl = sys.modules.get("ssl")
    if ssl is not None and isinstance(exc, (ssl.SSLWantReadError, ssl.SSLWantWriteError)):
        return BlockingIOError()
    return exc
