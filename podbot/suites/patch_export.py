"""The changes of a workspace as a patch for the host's files that it was made from."""

from __future__ import annotations

import contextlib
import io
import marshal
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from podbot.errors import PathError
from podbot.sections.host_mounts import HostMountPreview, MountPlan, PlannedFile
from podbot.suites.patch_helper import SPARE
from podbot.suites.patch_job import Base, Job, PatchLimits, Place
from podbot.suites.patch_process import run_helper
from podbot.tools.paths import VfsPath, invalid, parse_path, path_text

_OPERATION = "export the changes in"
_UNANSWERED = "the rest was not looked at: its file system did not answer in time, or the helper process was killed"

Change = Literal["added", "modified", "deleted"]
Helper = Callable[[Job, float], bytes]
"""Does a job within so many seconds; returns its records in ``marshal`` format, one after another."""


@dataclass(frozen=True, slots=True)
class PatchedFile:
    """A file in a patch. ``path``: as in the patch; a name that is not UTF-8 has ``\\xNN`` for its other bytes.

    ``change``: "modified" also if only its executable bit is another.
    """

    path: str
    change: Change


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A file or directory whose changes are not in a patch. ``path``: empty for the workspace or the mount itself.

    It comes from the sandbox and can have any character but NUL: see :func:`podbot.tools.paths.shown_path`.
    """

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class ExportedPatch:
    """``text``: the patch, empty if nothing has changed; in UTF-8 it is what ``git apply`` reads.

    ``files``: in the order of the text. ``left_out``: the changes that are not in it; ``more``: how many besides.
    """

    text: str
    files: tuple[PatchedFile, ...]
    left_out: tuple[LeftOut, ...]
    more: int = 0


def export_patch(
    plan: MountPlan,
    directory: str,
    *,
    mount: str | None = None,
    limits: PatchLimits = PatchLimits(),  # noqa: B008 - a tuple
    helper: Helper = run_helper,
) -> ExportedPatch:
    """What has changed in the workspace at ``directory`` since ``plan`` was copied into it, and what was added.

    ``mount``: the mount path of one mount. Then only its changes are exported, with paths relative to it, and the patch
    applies in the mount's directory on the host, or, for a mount of one file, in the directory of that file. None: all
    changes, with paths relative to the workspace. The workspace may be in use. Nothing is left out silently, and
    nothing that its processes do makes this call take longer than ``limits.seconds`` and 6 s.

    Raises ToolValidationError for an unknown mount, and PathError if the workspace cannot be read, or is removed,
    renamed or replaced meanwhile.
    """
    job = _job(plan, directory, _selected(plan, mount), limits)
    try:
        answer = helper(job, limits.seconds + SPARE)
    except OSError as error:
        reason = f"the helper process cannot be started: {error.strerror or error}"
        raise PathError(path=directory, operation=_OPERATION, reason=reason) from error
    return _exported(answer, directory)


def _selected(plan: MountPlan, mount: str | None) -> HostMountPreview | None:
    if mount is None:
        return None
    path = path_text(parse_path(mount, "mount"))
    found = [preview for preview in plan.previews if preview.mount_path == path]
    if len(found) == 1:
        return found[0]
    known = ", ".join(preview.mount_path or "/" for preview in plan.previews) or "there are none"
    reason = "several mounts have this path" if found else "no mount has this path"
    raise invalid("mount", mount, reason, f"The mount paths: {known}.")


def _job(plan: MountPlan, directory: str, only: HostMountPreview | None, limits: PatchLimits) -> Job:
    places = [_place(one) for one in plan.previews if one.is_directory]
    whole = only is None or only.is_directory
    return Job(
        os.fsencode(directory),
        [_base(file, plan, only) for file in plan.files],
        sorted(places, key=lambda place: -len(place.target)),
        limits,
        within=_place(only) if only and whole else None,
        new_files=whole,
    )


def _place(preview: HostMountPreview) -> Place:
    return Place(preview.mount_path.encode(), os.fsencode(preview.resolved_host or "/"))


def _base(file: PlannedFile, plan: MountPlan, only: HostMountPreview | None) -> Base:
    origin, linked = _origin(file, plan)
    words = file.target
    if only is not None:
        inner = _inner(only, file.target) if origin is only else None
        words = () if inner is None else inner or (os.path.basename(only.resolved_host),)
    return Base(
        os.fsencode(file.root),
        os.fsencode(path_text(file.source)),
        path_text(file.target).encode(),
        os.fsencode(path_text(words)),
        file.size,
        file.mtime_ns,
        file.ctime_ns,
        executable=bool(file.mode & 0o100),
        linked=linked,
    )


def _origin(file: PlannedFile, plan: MountPlan) -> tuple[HostMountPreview | None, bool]:
    """The mount that a file came from, and whether its path there leads through a link."""
    host = "/".join((file.root.rstrip("/"), *file.source))
    inside = []
    for preview in plan.previews:
        inner = _inner(preview, file.target)
        if inner is not None:
            if "/".join((preview.resolved_host, *inner)) == host:
                return preview, False
            inside.append(preview)
    return max(inside, key=lambda preview: len(preview.mount_path), default=None), bool(inside)


def _inner(preview: HostMountPreview, target: VfsPath) -> VfsPath | None:
    """The path in the mount; empty for a mount of one file, None for what lies elsewhere."""
    top = tuple(preview.mount_path.split("/")) if preview.mount_path else ()
    return target[len(top) :] if target[: len(top)] == top else None


def _records(answer: bytes) -> Iterator[tuple[Any, ...]]:
    """What the helper process has said completely."""
    stream = io.BytesIO(answer)
    with contextlib.suppress(EOFError, ValueError, TypeError):
        while True:
            yield marshal.load(stream)  # noqa: S302 - from a process that runs podbot's own code


def _exported(answer: bytes, directory: str) -> ExportedPatch:
    patches: list[tuple[bytes, Change, bytes]] = []
    left_out: list[LeftOut] = []
    more = None
    for what, *rest in _records(answer):
        if what == "file":
            patches.append((rest[0], rest[1], rest[2]))
        elif what == "left":
            left_out.append(LeftOut(_text(rest[0]), rest[1]))
        elif what == "end":
            more = int(rest[0])
        else:
            raise PathError(path=directory, operation=_OPERATION, reason=rest[0])
    if more is None:
        left_out.append(LeftOut("", _UNANSWERED))
    patches.sort()
    return ExportedPatch(
        b"".join(patch for _, _, patch in patches).decode(),
        tuple(PatchedFile(_text(path), change) for path, change, _ in patches),
        tuple(left_out),
        more or 0,
    )


def _text(path: bytes) -> str:
    return path.decode("utf-8", "backslashreplace")
