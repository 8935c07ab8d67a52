"""requests with a time limit for a whole request. Its own ``timeout`` is for each wait, so slow headers never end.

It uses public hooks of urllib3 (pool classes) and http.client (response classes), except for ``_new_conn``.
"""

from __future__ import annotations

import http.client
import io
import socket
import ssl
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

from podbot.deadline import Deadline, connected


class TimedAdapter(HTTPAdapter):
    """For one request, direct or through a proxy, until ``deadline``. ``context``: for TLS; None uses requests' own."""

    def __init__(self, deadline: Deadline, context: ssl.SSLContext | None) -> None:
        self._classes = _pool_classes(deadline)
        self._options: dict[str, Any] = {"ssl_context": context} if context is not None else {}
        super().__init__(max_retries=0)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """See HTTPAdapter."""
        super().init_poolmanager(*args, **{**kwargs, **self._options})
        self.poolmanager.pool_classes_by_scheme = self._classes

    def proxy_manager_for(self, proxy: Any, **kwargs: Any) -> Any:
        """See HTTPAdapter."""
        manager = super().proxy_manager_for(proxy, **kwargs, **self._options)
        manager.pool_classes_by_scheme = self._classes
        return manager


def _pool_classes(deadline: Deadline) -> dict[str, Any]:
    def response(sock: socket.socket, *args: Any, **kwargs: Any) -> _TimedResponse:
        return _TimedResponse(deadline, sock, *args, **kwargs)

    def new_connection(connection: HTTPConnection) -> socket.socket:
        return connected(connection.host.strip("[]"), connection.port or 0, deadline)

    # A proxy's response to CONNECT is read with the same response class.
    timed = {"response_class": staticmethod(response), "_new_conn": new_connection}
    plain, secure = (type("Timed", (base,), timed) for base in (HTTPConnection, HTTPSConnection))
    return {
        "http": type("TimedPool", (HTTPConnectionPool,), {"ConnectionCls": plain}),
        "https": type("TimedPool", (HTTPSConnectionPool,), {"ConnectionCls": secure}),
    }


class _TimedResponse(http.client.HTTPResponse):
    """Reads status, headers and body until ``deadline``."""

    def __init__(self, deadline: Deadline, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_TimedReader(deadline, sock, self.fp.detach()))


class _TimedReader(io.RawIOBase):
    def __init__(self, deadline: Deadline, sock: socket.socket, raw: io.RawIOBase) -> None:
        super().__init__()
        self._deadline, self._sock, self._raw = deadline, sock, raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._deadline.left())
        return self._raw.readinto(buffer)

    def close(self) -> None:
        self._raw.close()
        super().close()
