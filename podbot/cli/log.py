"""``--log-file``: writes podbot's messages to a place where nothing else writes.

An agent without a terminal shares podbot's stderr, and can write text there that looks like podbot's messages.
"""

from __future__ import annotations

import errno
import os
import re
import stat

from podbot.errors import PathError

STDERR = 2
_DESCRIPTOR = r"/dev/fd/([0-9]{1,6})"
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
opened: dict[str, int] = {}  # by path: descriptors that messages go to


def channel(path: str) -> int:
    """The descriptor for messages, opened once; stderr for an empty ``path``. Raises PathError.

    ``/dev/fd/N`` is an inherited descriptor. A file is opened for appending; it must belong to this user, gets mode
    0600, and is not opened through a link.
    """
    if not path:
        return STDERR
    if path not in opened:
        try:
            found = re.fullmatch(_DESCRIPTOR, path)
            opened[path] = _inherited(int(found[1])) if found else _file(path)
        except (OSError, ValueError) as exc:
            reason = exc.strerror or str(exc) if isinstance(exc, OSError) else str(exc)
            if isinstance(exc, OSError) and exc.errno == errno.ELOOP and os.path.islink(path):
                reason = PathError.IS_LINK
            raise PathError(path=path, operation="write messages to", reason=reason) from exc
    return opened[path]


def give_up(fd: int) -> str:
    """Messages for ``fd``, which takes none, go to stderr from here on. Its path; "" when that was so already."""
    for path, found in opened.items():
        if found == fd:
            opened[path] = STDERR
            return path
    return ""


def _inherited(fd: int) -> int:
    """Refuse descriptors that podbot opened itself, such as the protocol's stream; those all have FD_CLOEXEC."""
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
        raise ValueError("it is owned by another user, or hard-linked")
    if regular:
        os.fchmod(fd, 0o600)
    os.set_blocking(fd, True)
    return fd
