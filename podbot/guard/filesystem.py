"""Whether a file's times tell that its content was changed, which depends on the file system."""

from __future__ import annotations

STAMPED = frozenset({"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs"})
"""Their files get a new mtime and ctime at the first write through a shared mapping (on tmpfs they do not)."""


def is_stamped(directory: int) -> bool:
    """Of the open ``directory``; false where it is not known."""
    try:
        with (
            open(f"/proc/self/fdinfo/{directory}", encoding="utf-8") as info,
            open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts,
        ):
            return type_of(mounts.read(), mount_of(info.read())) in STAMPED
    except OSError:
        return False


def mount_of(fdinfo: str) -> str:
    """The number of a descriptor's mount, of ``/proc/self/fdinfo/N``; empty when it says none.

    By st_dev it is not found on btrfs, where each subvolume has another than the mount.
    """
    lines = (line.split() for line in fdinfo.splitlines())
    return next((words[1] for words in lines if len(words) == 2 and words[0] == "mnt_id:"), "")


def type_of(mountinfo: str, mount: str) -> str:
    """The file system type of a mount by its number, of ``/proc/self/mountinfo``; empty when it is not there.

    Names in it have no spaces: the kernel writes them as ``\\040``.
    """
    for line in mountinfo.split("\n"):
        words = line.split(" ")
        if words[0] == mount and mount and "-" in words[6:-1]:
            return words[words.index("-", 6) + 1]
    return ""
