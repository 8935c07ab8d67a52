"""Faults of the machine, made for real."""

from __future__ import annotations

import contextlib
import os
import resource
from collections.abc import Callable, Iterator

GiveAway = Callable[[str | os.PathLike[str]], None]
STRANGER = 4242  # a user id; see the fixture `give_away`


@contextlib.contextmanager
def full_disk(room: int = 0) -> Iterator[None]:
    """No file of this process grows beyond ``room`` bytes: the kernel answers EFBIG, which podbot treats like
    ENOSPC.
    """
    limit, highest = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, highest))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, highest))


def open_below(directory: str | os.PathLike[str]) -> list[str]:
    """What this process has open in ``directory``. Threads of other tests may open and close theirs meanwhile."""
    found, top = [], os.path.realpath(directory)
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):  # closed since
            path = os.readlink(f"/proc/self/fd/{number}")
            found += [path] * (path == top or path.startswith(f"{top}/"))
    return found


@contextlib.contextmanager
def ordinary_user() -> Iterator[None]:
    """File modes apply, as they do not for root: where the tests run as root, this process is STRANGER's for the
    block.
    """
    if os.geteuid() != 0:
        yield
        return
    os.setresuid(STRANGER, STRANGER, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)
