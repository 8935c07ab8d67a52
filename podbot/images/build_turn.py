"""Allows only one build of podbot's at a time on one engine.

Two at once blocked Podman 4.3.1 on its storage lock for minutes, and made the same layers twice.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Iterator, Mapping

from podbot.errors import PathError
from podbot.events import Emit, Event, ignore
from podbot.places import private_runtime_root


@contextlib.contextmanager
def build_turn(environ: Mapping[str, str], endpoint: str, emit: Emit = ignore) -> Iterator[None]:
    """Hold this user's build lock for ``endpoint`` during the block, after waiting for another podbot that holds it.

    The other one may have done the work, so plan inside the block. The kernel releases the lock of a killed podbot.
    Raises UnsafeDirectory and PathError for the runtime directory.
    """
    name = f".build-{hashlib.sha256(endpoint.encode()).hexdigest()[:16]}"
    path = os.path.join(private_runtime_root(environ), name)
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as exc:
        raise PathError(path=path, operation="open", reason=exc.strerror or str(exc)) from exc
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            emit(Event("notice", "image.wait", "another podbot is building on this engine; waiting for it"))
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)
