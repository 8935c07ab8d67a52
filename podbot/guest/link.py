"""A connection to a guest, independent of its transport, and the time limits of waiting on it."""

from __future__ import annotations

import array
import contextlib
import errno
import os
import socket
from collections.abc import Iterable
from typing import Protocol

from podbot.frozen import Frozen


class Link(Protocol):
    """A non-blocking byte stream in both directions. ``where``: the sandbox's name in messages."""

    where: str

    def fileno(self) -> int:
        """The descriptor to poll for reading and for writing."""
        ...

    def receive(self, limit: int) -> bytes:
        """The received bytes; empty at the end of the stream. Raises BlockingIOError and OSError."""
        ...

    def send(self, data: memoryview) -> int:
        """Send bytes; returns how many were accepted. Raises BlockingIOError and OSError."""
        ...

    def close(self) -> None:
        """Close the connection. Called exactly once."""
        ...


class Patience(Frozen):
    """Time limits in seconds.

    ``greeting``: for the connection and the handshake. ``silence``: while a caller waits, how long the guest may send
    nothing before podbot sends a ping. ``answer``: for the guest to answer a ping, and to accept or answer a request.
    """

    greeting: float = 10.0
    silence: float = 10.0
    answer: float = 20.0


PATIENCE = Patience()
_SO_PASSRIGHTS = 83
_MOST_PASSED = socket.CMSG_SPACE(253 * 4)  # the kernel's limit for descriptors in one message


def refuse_descriptors(sock: socket.socket) -> bool:
    """Have the kernel refuse descriptors that are passed to ``sock``; false where it cannot, before Linux 6.16.

    Best before a peer has it. To close a socket is to close the descriptors that it has received, too.
    """
    try:
        sock.setsockopt(socket.SOL_SOCKET, _SO_PASSRIGHTS, 0)
    except OSError:
        return False
    return True


class SocketLink:
    """A link over a connected unix socket, which it owns."""

    def __init__(self, connected: socket.socket, where: str) -> None:
        self._closes_at_once = refuse_descriptors(connected)
        connected.setblocking(False)
        with contextlib.suppress(OSError):
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._socket, self.where = connected, where

    def fileno(self) -> int:
        """See Link."""
        return self._socket.fileno()

    def receive(self, limit: int) -> bytes:
        """See Link. A message that carries file descriptors is an attack and ends the channel.

        Closing the last descriptor of a TCP socket with SO_LINGER blocks until its peer answers, also when the kernel
        drops a descriptor that was not received. So another thread closes them.
        """
        data, passed, _, _ = self._socket.recvmsg(limit, _MOST_PASSED)
        if passed:
            _close_in_thread(_numbers([found for _, _, found in passed]))
            raise OSError(errno.EPROTO, "")
        return data

    def send(self, data: memoryview) -> int:
        """See Link."""
        return self._socket.send(data, socket.MSG_NOSIGNAL)

    def close(self) -> None:
        """See Link. Descriptors that were not received are closed with it, which may block as for ``receive``."""
        if self._closes_at_once:
            self._socket.close()
        else:
            _close_in_thread([self._socket.detach()])


def _numbers(passed: list[bytes]) -> array.array[int]:
    numbers = array.array("i")
    for found in passed:
        numbers.frombytes(found[: len(found) // numbers.itemsize * numbers.itemsize])
    return numbers


def _close_in_thread(numbers: Iterable[int]) -> None:
    """Close descriptors in a daemon thread, which may block; podbot does not wait for it, even at its exit."""
    import threading  # imported here: only an attack needs it, or an old kernel

    with contextlib.suppress(RuntimeError):  # no thread can be started: the end of the process closes them
        threading.Thread(target=_close_all, args=(numbers,), daemon=True).start()


def _close_all(numbers: Iterable[int]) -> None:
    for number in numbers:
        with contextlib.suppress(OSError):
            os.close(number)


def as_text(exc: OSError) -> str:
    """The operating system's error message, without a path."""
    return os.strerror(exc.errno) if exc.errno else type(exc).__name__
