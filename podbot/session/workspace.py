"""The last look at a mount's source, with the directory held open, around the engine's own look."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from podbot.errors import MountRefused
from podbot.launch.types import Mount

_LINUX = sys.platform == "linux"


@contextmanager
def verified_mount(mount: Mount) -> Iterator[None]:
    """Hold ``mount.source`` open while a container is created and started with it.

    The plan judged a path; an agent that can write beside the workspace could have put a link there
    since. On entry the opened directory must still have the planned path, and on a good exit the path
    must still lead to that directory, so the engine, in between, mounted what was judged unless the
    path was swapped there and back. Raises MountRefused.
    """
    try:
        handle = os.open(mount.source, _flags(mount))
    except OSError as exc:
        kind = "file" if mount.is_file else "directory"
        raise _refused(mount, f"it can no longer be opened as a {kind} ({exc.strerror})") from exc
    try:
        if mount.is_file and not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _refused(mount, "it is no longer a file")
        if _path_of(handle, mount.source) != mount.source:
            raise _refused(mount, "a part of its path became a link")
        if mount.read_only:
            _refuse_submounts(mount)
        yield
        if not _same(handle, mount.source):
            raise _refused(mount, "another directory took its place while the sandbox was starting")
    finally:
        os.close(handle)


def _flags(mount: Mount) -> int:
    # O_PATH: a look at where the path leads, without reading what is there. Linux only.
    kind = os.O_NONBLOCK if mount.is_file else os.O_DIRECTORY
    return getattr(os, "O_PATH", os.O_RDONLY) | kind | os.O_NOFOLLOW | os.O_CLOEXEC


def _path_of(handle: int, source: str) -> str:
    return os.readlink(f"/proc/self/fd/{handle}") if _LINUX else os.path.realpath(source)


def _same(handle: int, source: str) -> bool:
    try:
        now = os.lstat(source)
    except OSError:
        return False
    return os.path.samestat(os.fstat(handle), now) and _path_of(handle, source) == source


def _refuse_submounts(mount: Mount) -> None:
    """Whatever is mounted below a read-only source would stay writable, or keep a rootless engine from mounting."""
    for point in _mount_points():
        if point.startswith(mount.source.rstrip("/") + "/"):
            raise _refused(mount, f"another file system is mounted below it, at {point}, and cannot be made read-only")


def _mount_points() -> list[str]:
    if not _LINUX:
        return []
    with open("/proc/self/mountinfo", "rb") as lines:
        return [_unescaped(line.split(b" ")[4]) for line in lines]


def _unescaped(field: bytes) -> str:
    """A path of mountinfo: space, tab, newline and backslash are octal there."""
    for code in (b" ", b"\t", b"\n", b"\\"):
        field = field.replace(b"\\%03o" % code[0], code)
    return os.fsdecode(field)


def _refused(mount: Mount, reason: str) -> MountRefused:
    return MountRefused(
        path=mount.source,
        origin="checked again right before the sandbox is created",
        reason=reason,
        hint="Check what changed there, then start again.",
    )
