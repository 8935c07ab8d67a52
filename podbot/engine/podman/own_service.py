"""The engine of podbot's own service, which a request starts again if it has ended."""

from __future__ import annotations

from collections.abc import Callable
from socket import socket

from podbot.deadline import Deadline
from podbot.engine.endpoint import Endpoint
from podbot.engine.http import Response, is_closed
from podbot.engine.podman.rest import RestEngine
from podbot.engine.transport import Dial, connect
from podbot.errors import ConnectionFailed, EngineGone, SocketNotFound

# A service that is killed closes the connection in use, and then one that it had not accepted yet.
_LOST = 2


class OwnService(RestEngine):
    """``restart`` starts the service, when nothing answers at ``endpoint`` any more.

    A question whose connection was closed is asked again; what changes something is not, because it may have been done.
    """

    def __init__(self, endpoint: Endpoint, restart: Callable[[], object]) -> None:
        super().__init__(endpoint, connect=self._reconnect)
        self._restart = restart

    def _reconnect(self, endpoint: Endpoint, dial: Dial, deadline: Deadline) -> socket:
        try:
            return connect(endpoint, dial, deadline)
        except (ConnectionFailed, SocketNotFound) as exc:
            if isinstance(exc.__cause__, TimeoutError):
                raise
            self._restart()
            self.restarts += 1
            return connect(endpoint, dial, deadline)

    def _once(
        self, method: str, path: str, data: bytes | None, headers: dict[str, str], patience: float | None
    ) -> Response:
        for _ in range(_LOST):
            try:
                return super()._once(method, path, data, headers, patience)
            except EngineGone as exc:
                if method != "GET" or not isinstance(exc.__cause__, Exception) or not is_closed(exc.__cause__):
                    raise
        return super()._once(method, path, data, headers, patience)
