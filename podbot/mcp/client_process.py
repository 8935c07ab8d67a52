"""Finds the process of the client on stdin. When it is killed, the input does not end if a child of it has the pipe.

The client is the process above this one that made stdin, and so has its other end. The parent may be another one: a
shell, `npx` and `uvx` stay between and outlive a client that is killed, and a launcher ends at once while its client
lives. As a rule they have this end alone; where they have inherited the other
one, too, the client is found first, because it is further up.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import struct
from collections.abc import Iterator

_LEVELS = 64  # of processes above this one
_CREDENTIALS = struct.Struct("iII")


def client_process(stdin: int) -> int | None:
    """A descriptor of the client's process, readable once it has ended. The caller closes it.

    None where that is uncertain, and only the end of the input tells: this user sees no such process above this one,
    stdin is neither a socket nor a pipe without a name, or the system has no such descriptors.
    """
    if not hasattr(os, "pidfd_open"):
        return None
    # The outermost first, which made the pipe: those below can only have inherited its other end.
    for pid in reversed(tuple(_above())):
        try:
            handle = os.pidfd_open(pid)  # before the look, so that it is of the process at which is looked
        except OSError:
            continue
        with contextlib.suppress(OSError):  # of another user
            if _has_other_end(pid, stdin):
                return handle
        os.close(handle)
    return None


def _above() -> Iterator[int]:
    """The parent, its parent and so on, as far as they are seen."""
    pid = os.getppid()
    for _ in range(_LEVELS):
        if pid == 0:  # outside of this pid namespace
            return
        yield pid
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            return


def _has_other_end(pid: int, stdin: int) -> bool:
    """Raises OSError for processes of other users."""
    mode = os.fstat(stdin).st_mode
    if stat.S_ISSOCK(mode):
        return _maker(stdin) == pid
    name = os.readlink(f"/proc/self/fd/{stdin}")
    # A named pipe can be opened by anybody, so whoever has it open need not be the client.
    return name.startswith("pipe:[") and any(_writes(path, name) for path in _open_files(pid))


def _maker(stdin: int) -> int:
    """The process that called socketpair(2), as Node and asyncio do; 0 for one that is not seen."""
    with socket.socket(fileno=os.dup(stdin)) as end:
        return int(_CREDENTIALS.unpack(end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[0])


def _open_files(pid: int) -> list[str]:
    place = f"/proc/{pid}/fd"
    return [os.path.join(place, name) for name in os.listdir(place)]


def _writes(path: str, name: str) -> bool:
    """Whether this file of /proc is a descriptor to write to the pipe of that name."""
    try:
        return os.readlink(path) == name and bool(os.lstat(path).st_mode & stat.S_IWUSR)
    except FileNotFoundError:  # closed since
        return False
