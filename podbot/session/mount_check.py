"""Checks a mount's source again, before and after the engine mounts it, with the directory held open."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from podbot.container_spec import Mount
from podbot.engine.port import ContainerInfo
from podbot.errors import MountRefused, StartFailed
from podbot.launch.types import SandboxPlan
from podbot.places import OWN_PROC, path_of


@contextmanager
def verified_mount(mount: Mount, *, proc: str | None = OWN_PROC) -> Iterator[None]:
    """Hold ``mount.source`` open while a container is created and started with it.

    The plan checked a path; an agent that can write beside the workspace could have put a link there since. On entry
    the opened directory must still have the planned path, and on a successful exit the path must still lead to that
    directory. So the engine mounted what was checked, unless the path was swapped and swapped back in between.
    ``proc``: this process's own directory in /proc. Raises MountRefused.
    """
    try:
        handle = os.open(mount.source, _flags(mount))
    except OSError as exc:
        kind = "file" if mount.is_file else "directory"
        raise _refused(mount, f"it can no longer be opened as a {kind} ({exc.strerror})") from exc
    try:
        if mount.is_file and not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _refused(mount, "it is no longer a file")
        if path_of(handle, mount.source, proc) != mount.source:
            raise _refused(mount, "a part of its path became a link")
        if mount.read_only:
            _refuse_submounts(mount, proc)
        yield
        if not _same(handle, mount.source, proc):
            raise _refused(mount, "another directory took its place while the sandbox was starting")
    finally:
        os.close(handle)


def _flags(mount: Mount) -> int:
    # O_PATH finds where the path leads without opening the file for reading. Linux only.
    kind = os.O_NONBLOCK if mount.is_file else os.O_DIRECTORY
    return getattr(os, "O_PATH", os.O_RDONLY) | kind | os.O_NOFOLLOW | os.O_CLOEXEC


def _same(handle: int, source: str, proc: str | None) -> bool:
    try:
        now = os.lstat(source)
    except OSError:
        return False
    return os.path.samestat(os.fstat(handle), now) and path_of(handle, source, proc) == source


def _refuse_submounts(mount: Mount, proc: str | None) -> None:
    """Refuse file systems below a read-only source: they would stay writable, or make a rootless engine fail."""
    for point in mount_points(proc):
        if point.startswith(mount.source.rstrip("/") + "/"):
            raise _refused(mount, f"another file system is mounted below it, at {point}, and cannot be made read-only")


def mount_points(proc: str | None = OWN_PROC) -> list[str]:
    """Where file systems are mounted; none where ``proc`` is None."""
    if proc is None:
        return []
    with open(os.path.join(proc, "mountinfo"), "rb") as lines:
        return [_unescaped(line.split(b" ")[4]) for line in lines]


def check_mapped(container: ContainerInfo, plan: SandboxPlan, proc: str = "/proc") -> None:
    """Raise StartFailed when the plan has user ids of its own and a mount shows the host's.

    Runtimes that do not know such mounts make plain ones, silently; no process inside can then use the workspace.
    Nothing is checked where the container's processes are not visible.
    """
    if not plan.container.security.own_ids or container.pid <= 0:
        return
    try:
        with open(os.path.join(proc, str(container.pid), "mountinfo"), "rb") as lines:
            fields = [line.split(b" ") for line in lines]
    except OSError:
        return
    mapped = {_unescaped(field[4]): b"idmapped" in field[5].split(b",") for field in fields}
    plain = [mount.target for mount in plan.container.mounts if mapped.get(mount.target) is False]
    if plain:
        raise StartFailed(
            container=plan.session, reason=f"its runtime did not map the user ids of {plain[0]}", hint=RUNTIMES
        )


RUNTIMES = (
    "sandbox.own_user_ids needs an engine with the runtime crun, or runc from 1.2 on. Make one of them the engine's"
    " (`runtime` in containers.conf), or set sandbox.own_user_ids = false."
)


def _unescaped(field: bytes) -> str:
    """Decode a path of mountinfo, where space, tab, newline and backslash are octal."""
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
