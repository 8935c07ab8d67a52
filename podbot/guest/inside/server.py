"""The guest's socket in a sandbox. Only podbot may use it."""

from __future__ import annotations

import _socket as raw_socket  # the module `socket` costs 1 MB
import struct

from podbot.guest import frames
from podbot.guest.inside import socket_handover
from podbot.guest.inside.connection import Connection
from podbot.guest.inside.guest import Guest
from podbot.guest.inside.loop import READABLE

_REFUSED = 16  # connections over the limit that get an error reply at the same time; further ones are closed
_GREETING = 10.0  # seconds within which such a connection must send its first request
_PAUSE = 0.1  # seconds without accepting connections, while there are no descriptors for them
_CREDENTIALS = struct.Struct("iII")


class Server:
    """Accepts connections from podbot, and rejects those from processes in the sandbox."""

    def __init__(self, guest: Guest) -> None:
        self.guest = guest
        self.connections: list[Connection] = []
        self.refused: list[Connection] = []
        self.owner, self.listener = socket_handover.taken
        if socket_handover.said == [frames.LEASED]:
            guest.loop.watch(self.owner.fileno(), READABLE, lambda _: self._from_owner(), guest)
        else:
            self.owner.close()
        self.listener.setblocking(False)
        self._listen()

    def _listen(self) -> None:
        self.guest.loop.watch(self.listener.fileno(), READABLE, lambda _: self._accept(), self)

    def fail(self) -> None:
        """Called after an unexpected error: accept no connections for a moment."""
        self.guest.loop.forget(self.listener.fileno())
        self.guest.loop.after(_PAUSE, self, self._listen)

    def _from_owner(self) -> None:
        """End the sandbox when the podbot that owns it has ended: the kernel then closes its connection."""
        try:
            if self.owner.recv(1):
                return
        except OSError:  # podbot ended without reading everything
            pass
        self.guest.loop.forget(self.owner.fileno())
        self.guest.leave()

    def _accept(self) -> None:
        while True:
            try:
                number, _ = self.listener._accept()  # type: ignore[attr-defined]  # noqa: SLF001 - what socket.accept calls
            except BlockingIOError:
                return
            except OSError:  # no descriptors are left; the socket would stay readable
                self.fail()
                return
            connection = raw_socket.socket(fileno=number)
            full = len(self.connections) >= frames.CHANNEL_LIMIT
            if not self._is_podbot(connection) or (full and len(self.refused) >= _REFUSED):
                connection.close()
                continue
            held = self.refused if full else self.connections
            fd = connection.detach()
            held.append(Connection(self.guest, fd, fd, held.remove))
            if full:
                held[-1].refuse_all(_GREETING)

    @staticmethod
    def _is_podbot(connection: raw_socket.socket) -> bool:
        """Whether the peer is outside the sandbox's pid namespace, as podbot is: such a process has no pid here."""
        found = connection.getsockopt(raw_socket.SOL_SOCKET, raw_socket.SO_PEERCRED, _CREDENTIALS.size)
        return bool(_CREDENTIALS.unpack(found)[0] == 0)
