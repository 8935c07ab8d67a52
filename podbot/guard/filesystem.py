"""What the times of files tell: by which clock they are, and whether they reliably show a changed content."""

from __future__ import annotations

import sys
import time

_COARSE = 5  # CLOCK_REALTIME_COARSE, for which Python has no constant
_TICK = 20_000_000  # nanoseconds, used where there is no such clock

STAMPED = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs"})
"""On these, the first write through a shared mapping updates mtime and ctime (on tmpfs it does not)."""


def file_clock() -> int:
    """Nanoseconds since the epoch, by the clock that the kernel uses for files: no later change has an earlier time.

    ``time.time`` is ahead of it by up to 10 ms.
    """
    return time.clock_gettime_ns(_COARSE) if sys.platform == "linux" else time.time_ns() - _TICK


def is_stamped(directory: int) -> bool:
    """Whether the file system of the open ``directory`` does so; false if unknown."""
    try:
        with (
            open(f"/proc/self/fdinfo/{directory}", encoding="utf-8") as info,
            open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts,
        ):
            return type_of(mounts.read(), mount_of(info.read())) in STAMPED
    except OSError:
        return False


def mount_of(fdinfo: str) -> str:
    """The mount id of a descriptor, from ``/proc/self/fdinfo/N``; empty when it has none.

    st_dev does not identify the mount on btrfs, where each subvolume has a different one.
    """
    lines = (line.split() for line in fdinfo.splitlines())
    return next((words[1] for words in lines if len(words) == 2 and words[0] == "mnt_id:"), "")


def type_of(mountinfo: str, mount: str) -> str:
    """The file system type of the mount with that id, from ``/proc/self/mountinfo``; empty if it is missing.

    Paths in it have no spaces: the kernel writes them as ``\\040``.
    """
    for line in mountinfo.split("\n"):
        words = line.split(" ")
        if words[0] == mount and mount and "-" in words[6:-1]:
            return words[words.index("-", 6) + 1]
    return ""
