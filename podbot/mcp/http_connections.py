"""Connections over HTTP, which every local user can open without a token: bounded in number and in time."""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

CONNECTIONS = 256
REQUEST_SECONDS = 10.0  # for a whole request; it has at most 4 MiB, and comes from this machine


class BoundedConnection(H11Protocol):
    """A connection, which is ended when a request does not arrive completely within its time.

    One more than CONNECTIONS ends the one that has waited longest for a client's request. Those whose request is being
    answered are left: they have a token, since a request without one is answered at once.
    """

    most = CONNECTIONS
    seconds = REQUEST_SECONDS
    _timer: asyncio.TimerHandle | None = None
    heard_at = 0.0  # when the client last sent anything, on the loop's clock

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See asyncio."""
        super().connection_made(transport)
        self.heard_at = self.loop.time()
        self._begin()
        if len(self.connections) > self.most:
            waiting = [one for one in self.connections if isinstance(one, BoundedConnection) and one.is_waiting]
            min(waiting, key=lambda one: one.heard_at, default=self).abort()

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        self.heard_at = self.loop.time()
        super().data_received(data)
        if self.is_waiting and not self.transport.is_closing():
            self._begin()
        else:
            self._stop()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        self._stop()
        super().connection_lost(exc)

    @property
    def is_waiting(self) -> bool:
        """Whether it is the client's turn."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY)

    def abort(self) -> None:
        """End it."""
        self.transport.abort()

    def _begin(self) -> None:
        """Begin to wait for a whole request; a part of one begins no new time."""
        if self._timer is None:
            self._timer = self.loop.call_later(self.seconds, self.abort)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
