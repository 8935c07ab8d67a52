"""The log of what an agent prints: two private files of limited size, with known secrets removed.

The agent controls every byte of it, and podbot only stores them: `podbot logs` makes them harmless when it prints them.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable

from podbot.atomic import opened_to_append
from podbot.errors import PodbotError
from podbot.events import Emit, Event
from podbot.places import private_dir
from podbot.protocol.redact import Redactor

CURRENT, EARLIER = "output", "output.1"
LIMIT = 8 << 20  # bytes of each of the two files
_HELD = 1 << 16  # bytes that wait for the end of a line, or of a key of several lines
_TAIL = 1 << 12  # bytes that stay when a longer line is cut, or more if a secret is longer
_BEGIN, _END = b"-----BEGIN ", b"-----END "
_NEWLINE = 0x0A


class OutputLog:
    """Called with pieces of output; it never raises. Nothing is created before the first one.

    ``secrets``: values that are removed wherever they occur, besides everything shaped like a secret. A secret between
    whose characters the agent prints something else is not recognized. ``token``: returns one that changes, or None.
    """

    def __init__(
        self,
        directory: str,
        secrets: Iterable[str],
        emit: Emit,
        *,
        token: Callable[[], str | None] = lambda: None,
        limit: int = LIMIT,
    ) -> None:
        self._directory, self._emit, self._limit = directory, emit, limit
        self._secrets, self._token = {*secrets}, token
        self._redactor = Redactor(self._secrets)
        self._held = bytearray()
        self._fd: int | None = None
        self._stopped = False

    def __call__(self, data: bytes | memoryview) -> None:
        if self._stopped:
            return
        self._held += data
        self._learn()
        ready = self._ready()
        if ready:
            self._write(bytes(self._held[:ready]))
            del self._held[:ready]

    def close(self) -> None:
        """Write what is left."""
        if self._held and not self._stopped:
            self._learn()
            self._write(bytes(self._held))
        self._held.clear()
        self._close()

    def _learn(self) -> None:
        """Hide the present token from now on, and those before it."""
        token = self._token()
        if token is not None and token not in self._secrets:
            self._secrets.add(token)
            self._redactor = Redactor(self._secrets)

    def _ready(self) -> int:
        """How many bytes can be written: whole lines, and no secret of several lines that has not ended."""
        held = self._held
        end = held.rfind(b"\n") + 1
        begun = held.rfind(_BEGIN, 0, end)
        if begun >= 0 and held.find(_END, begun, end) < 0:
            end = begun
        if end:
            # Lines that may begin a secret are held, so only the last ones count here.
            last = held[max(0, end - 4 * self._redactor.longest) : end]
            for _ in range(self._redactor.begun(_text(last)) if held[end - 1] == _NEWLINE else 0):
                end = held.rfind(b"\n", 0, end - 1) + 1
        if end or len(held) <= max(_HELD, 8 * self._redactor.longest):
            return end
        cut = len(held) - max(_TAIL, 4 * self._redactor.longest)
        blank = max(held.rfind(mark, 0, cut) for mark in (b" ", b"\x1b", b"\r"))
        text = _text(held)
        at = len(_text(held[: blank if blank > 0 else cut]))
        return len(_bytes(text[: self._redactor.spared(text, at)]))

    def _write(self, data: bytes) -> None:
        text = self._redactor.text(_text(data))
        try:
            self._append(_bytes(text))
        except (OSError, PodbotError) as exc:
            reason = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
            self._stopped = True
            self._close()
            text = f"cannot write the log of the session: {reason}; the session continues without it"
            self._emit(Event("warning", "session.log", text, {"path": self._directory, "reason": reason}))

    def _append(self, data: bytes) -> None:
        while data:
            if self._fd is None:
                # Not its parents: they are gone when another podbot has removed the session meanwhile.
                with contextlib.suppress(FileExistsError):
                    os.mkdir(self._directory, 0o700)
                path = os.path.join(private_dir(self._directory), CURRENT)
                self._fd = opened_to_append(path, "write the log of the session")
            room = self._limit - os.fstat(self._fd).st_size
            if room <= 0:
                self._close()
                earlier, current = (os.path.join(self._directory, name) for name in (EARLIER, CURRENT))
                os.replace(current, earlier)
                continue
            view = memoryview(data[:room])
            while view:
                view = view[os.write(self._fd, view) :]
            data = data[room:]

    def _close(self) -> None:
        if self._fd is not None:
            fd, self._fd = self._fd, None
            with contextlib.suppress(OSError):
                os.close(fd)


def _text(data: bytes | bytearray) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
