"""Containers as Podman's own service lists them, without podbot's client and without a ``podman`` for each look."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
from typing import Any
from urllib.parse import urlencode

LIMIT = 60.0  # seconds; a bound on a hang


class _Connection(http.client.HTTPConnection):
    """To the engine service at a unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("d", timeout=LIMIT)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(LIMIT)
        self.sock.connect(self._path)


def listed_by_service(path: str, key: str, value: str) -> list[dict[str, Any]] | None:
    """What ``podman ps -a --filter KEY=VALUE --format json`` lists, by the service at ``path``; None when none answers.

    Measured with Podman 4.3: 0.5 ms of processor time where ``podman ps`` takes 33.
    """
    query = urlencode({"all": "true", "filters": json.dumps({key: [value]})})
    found = asked_of_service(path, f"containers/json?{query}")
    return None if found is None else list(found)


def asked_of_service(path: str, request: str) -> Any:
    """What the service at ``path`` answers to ``GET /libpod/REQUEST``; None when it does not, or refuses."""
    try:
        with contextlib.closing(_Connection(path)) as connection:
            connection.request("GET", f"/v4.0.0/libpod/{request}")
            answer = connection.getresponse()
            return (json.loads(answer.read()) or []) if answer.status == 200 else None
    except (OSError, http.client.HTTPException):
        return None
