"""Output that is too long for a tool's result and is kept for clients, which read it as a resource."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass

PIECE_BYTES = 1 << 20  # of one stream of a command
ALL_BYTES = 8 << 20  # of one sandbox


@dataclass(frozen=True, slots=True)
class KeptText:
    """``name``: what it is, such as "stdout of make". ``data``: its first bytes; ``total``: how many there were."""

    number: int
    name: str
    data: bytes
    total: int

    @property
    def text(self) -> str:
        """As text; bytes that are not UTF-8 are replacement characters."""
        return self.data.decode("utf-8", "replace")


class KeptOutputs:
    """The kept output of one sandbox: at most 8 MiB, of which the oldest is dropped first. Any thread may use it."""

    def __init__(self, *, most: int = ALL_BYTES) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._kept: dict[int, KeptText] = {}

    def add(self, name: str, data: bytes, total: int) -> KeptText:
        """Keep ``data``, whole unless it is more than is kept at all."""
        with self._lock:
            made = KeptText(next(self._numbers), name, data[: self._most], total)
            self._kept[made.number] = made
            while sum(len(kept.data) for kept in self._kept.values()) > self._most:
                del self._kept[min(self._kept)]
            return made

    def get(self, number: int) -> KeptText | None:
        """None for one that was dropped, or never was."""
        with self._lock:
            return self._kept.get(number)

    def listed(self) -> tuple[KeptText, ...]:
        """All that are kept, the oldest first."""
        with self._lock:
            return tuple(self._kept.values())
