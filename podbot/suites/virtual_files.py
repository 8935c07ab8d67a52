"""What a session knows of the files in its workspace, without asking the workspace."""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Self

from podbot.sections.host_mounts import MountPlan
from podbot.sections.session_state import ReducerContext, Session, append_if_absent
from podbot.tools.paths import path_text
from podbot.tools.results import DeleteEntry, WriteFile

_PATH = attrgetter("path")


@dataclass(frozen=True, slots=True)
class VirtualFile:
    """A file. ``path``: see FileInfo. ``version`` and ``updated_at``: None for one that was copied from the host."""

    path: str
    size_bytes: int
    version: int | None = None
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class VirtualFileSystem:
    """The files that were copied into the workspace, and what the tools created, changed and removed since.

    ``files``: sorted by path. What commands do to files is not in it.
    """

    files: tuple[VirtualFile, ...] = ()

    @classmethod
    def of(cls, plan: MountPlan) -> Self:
        """The files that ``plan`` copies."""
        found = (VirtualFile(path_text(file.target), file.size) for file in plan.files)
        return cls(tuple(sorted(found, key=_PATH)))

    def written(self, event: WriteFile) -> VirtualFileSystem:
        """It after a file was created or changed."""
        files = list(self.files)
        file = VirtualFile(event.path, event.size_bytes, event.version, event.updated_at)
        place = bisect.bisect_left(files, file.path, key=_PATH)
        known = place < len(files) and files[place].path == file.path
        files[place : place + known] = [file]
        return VirtualFileSystem(tuple(files))

    def removed(self, event: DeleteEntry) -> VirtualFileSystem:
        """It after an entry was removed, with everything below."""
        below = f"{event.path}/"
        return VirtualFileSystem(
            tuple(one for one in self.files if one.path != event.path and not one.path.startswith(below))
        )


def track_files(session: Session, plan: MountPlan) -> None:
    """Let the session's slice of VirtualFileSystem follow its tools, beginning with the files of ``plan``."""
    files = session[VirtualFileSystem]
    files.keep_from_clones()
    files.register(WriteFile, _written)
    files.register(DeleteEntry, _deleted)
    for event in (WriteFile, DeleteEntry):  # with a reducer for another slice they would not be in their own
        session[event].register(event, append_if_absent)
        session[event].keep_from_clones()
    seed_files(session, plan)


def seed_files(session: Session, plan: MountPlan) -> None:
    """Make the slice what ``plan`` copies."""
    session[VirtualFileSystem].seed(VirtualFileSystem.of(plan))


def _latest(values: tuple[VirtualFileSystem, ...]) -> VirtualFileSystem:
    return values[-1] if values else VirtualFileSystem()


def _written(
    values: tuple[VirtualFileSystem, ...], event: WriteFile, /, *, context: ReducerContext
) -> tuple[VirtualFileSystem, ...]:
    del context
    return (_latest(values).written(event),)


def _deleted(
    values: tuple[VirtualFileSystem, ...], event: DeleteEntry, /, *, context: ReducerContext
) -> tuple[VirtualFileSystem, ...]:
    del context
    return (_latest(values).removed(event),)
