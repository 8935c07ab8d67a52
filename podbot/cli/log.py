"""``--log-file``: podbot's messages where nobody else writes.

An agent without a terminal has podbot's stderr as its own, and can write there what looks like a message of podbot's.
"""

from __future__ import annotations

import os
import re
import stat

from podbot.errors import PathError

STDERR = 2
_DESCRIPTOR = re.compile(r"/dev/fd/([0-9]{1,6})", re.ASCII)
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_opened: dict[str, int] = {}


def channel(path: str) -> int:
    """The descriptor to write messages to, opened once; stderr for an empty ``path``. Raises PathError.

    ``/dev/fd/N`` is the descriptor that podbot was started with. A file is added to, is this user's own, 0600, and no
    link is followed to it.
    """
    if not path:
        return STDERR
    if path not in _opened:
        try:
            found = _DESCRIPTOR.fullmatch(path)
            _opened[path] = _inherited(int(found[1])) if found else _file(path)
        except (OSError, ValueError) as exc:
            reason = exc.strerror or str(exc) if isinstance(exc, OSError) else str(exc)
            raise PathError(path=path, operation="write messages to", reason=reason) from exc
    return _opened[path]


def give_up(fd: int) -> str:
    """Messages for ``fd``, which takes none, go to stderr from here on. Its path; "" when that was so already."""
    for path, opened in _opened.items():
        if opened == fd:
            _opened[path] = STDERR
            return path
    return ""


def _inherited(fd: int) -> int:
    """Not one that podbot opened itself, such as the protocol's stream: those are all closed for children."""
    import fcntl

    if fcntl.fcntl(fd, fcntl.F_GETFD) & fcntl.FD_CLOEXEC:
        raise ValueError("podbot was not started with it")
    if fcntl.fcntl(fd, fcntl.F_GETFL) & (os.O_ACCMODE | getattr(os, "O_PATH", 0)) not in (os.O_WRONLY, os.O_RDWR):
        raise ValueError("it is not open for writing")
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


def _file(path: str) -> int:
    fd = os.open(path, _FLAGS, 0o600)
    found = os.fstat(fd)
    regular = stat.S_ISREG(found.st_mode)
    if regular and (found.st_uid != os.geteuid() or found.st_nlink != 1):
        os.close(fd)
        raise ValueError("it is somebody else's, or has a second name")
    if regular:
        os.fchmod(fd, 0o600)
    os.set_blocking(fd, True)
    return fd
