"""Connections to an engine for several threads; each connection serves one thread at a time."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

from podbot.engine.port import Engine
from podbot.errors import ContainerError


class EnginePool:
    """Engines opened by ``connect``, as many as are in use at the same time. Any thread may call it."""

    def __init__(self, connect: Callable[[], Engine]) -> None:
        self._connect = connect
        self._idle: list[Engine] = []
        self._closed = False
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def engine(self) -> Iterator[Engine]:
        """An engine for the ``with`` block; after an error it is not used again. Raises ContainerError subclasses."""
        with self._lock:
            engine = self._idle.pop() if self._idle else None
        engine = engine or self._connect()
        try:
            yield engine
        except BaseException:
            with contextlib.suppress(ContainerError, OSError):
                engine.close()
            raise
        with self._lock:
            if not self._closed:
                self._idle.append(engine)
                return
        engine.close()

    def close(self) -> None:
        """Close the engines that are not in use now, and each of the others when its ``with`` block ends."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for engine in idle:
            engine.close()
