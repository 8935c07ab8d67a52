"""The log of a sandbox's connections: a file of JSON lines, limited in size, and events for podbot on a pipe.

It contains hosts, ports, counts and reasons, and never a header or a body.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections import Counter
from typing import Any

from podbot.gateway.hosts import Target

LIMIT = 1 << 20  # bytes of the file; one older file is kept
_PERIOD = 1.0  # seconds within which equal refusals are one entry
_PENDING = 128  # different refusals in one period; further ones are counted together


class NetworkLog:
    """``events``: the descriptor for podbot, which must not block; -1: nobody reads it."""

    def __init__(self, path: str, events: int = -1) -> None:
        self._path, self._events = path, events
        self._pending: dict[tuple[str, ...], dict[str, Any]] = {}
        self._file, self._size = -1, 0
        self.counts: Counter[str] = Counter()

    def refused(self, host: str, port: int, how: str, reason: str) -> None:
        """``how``: connect, http, tls or direct. Written after a moment, with the number of equal refusals."""
        self.counts["refused"] += 1
        key: tuple[str, ...] = (host, str(port), how, reason)
        if key not in self._pending and len(self._pending) >= _PENDING:
            key, host, port, reason = ("",), "", 0, "more hosts than one entry each would show"
        entry = self._pending.setdefault(key, {})
        if not entry:
            entry |= {"what": "refused", "host": host, "port": port, "how": how, "reason": reason, "count": 0}
            self._tell({"event": "refused", "host": host, "port": port, "reason": reason})
            asyncio.get_running_loop().call_later(_PERIOD, self._write_pending, key)
        entry["count"] += 1

    def failed(self, target: Target, how: str, reason: str) -> None:
        """An allowed connection could not be made, or broke."""
        self.counts["failed"] += 1
        self._write({"what": "failed", "host": target.host.text, "port": target.port, "how": how, "reason": reason})

    def closed(self, target: Target, how: str, *, sent: int, received: int, since: float) -> None:
        """A connection has ended. ``sent``, ``received``: bytes, from the sandbox's side. ``since``: monotonic time."""
        self.counts["closed"] += 1
        about = {"host": target.host.text, "port": target.port, "how": how, "sent": sent, "received": received}
        self._write({"what": "closed", **about, "seconds": round(time.monotonic() - since, 3)})

    def changed(self, policy: dict[str, list[str]]) -> None:
        """The policy was replaced."""
        self._write({"what": "policy", **policy})

    def close(self) -> None:
        """Write what is pending, and close the file."""
        for key in list(self._pending):
            self._write_pending(key)
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def ready(self) -> None:
        """Tell podbot that connections are accepted."""
        self._tell({"event": "ready"})

    def _write_pending(self, key: tuple[str, ...]) -> None:
        entry = self._pending.pop(key, None)
        if entry is not None:
            self._write(entry)

    def _write(self, entry: dict[str, Any]) -> None:
        line = json.dumps({"t": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **entry}).encode() + b"\n"
        try:
            if self._file < 0 or self._size + len(line) > LIMIT:
                self._open(fresh=self._file >= 0)
            self._size += os.write(self._file, line)
        except OSError:  # a full disk: connections are more important than their log
            self.counts["lost"] += 1

    def _open(self, *, fresh: bool) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        if fresh:
            os.replace(self._path, f"{self._path}.1")
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        self._file = os.open(self._path, flags, 0o600)
        self._size = os.fstat(self._file).st_size

    def _tell(self, event: dict[str, Any]) -> None:
        if self._events < 0:
            return
        try:
            os.write(self._events, json.dumps(event).encode() + b"\n")
        except BlockingIOError:  # podbot is stopped or slow; the log has it
            pass
        except OSError:
            self._events = -1
