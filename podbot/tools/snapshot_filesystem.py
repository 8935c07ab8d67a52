"""A Filesystem that can be put back. All is read and written by the files worker, which nothing leads out of the root.

The store is on this host, where a sandbox has no way to it.
"""

from __future__ import annotations

import contextlib
import errno
import secrets
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from podbot.errors import FileRefused, SnapshotFailed
from podbot.tools.files import Files
from podbot.tools.filesystem_port import FilesystemSnapshot
from podbot.tools.results import Entry
from podbot.tools.snapshot_manifest import Kept, Path, entries_from, manifest_text
from podbot.tools.snapshot_store import SnapshotStore, digest_of
from podbot.tools.worker_frames import PIECE_BYTES
from podbot.tools.workspace_filesystem import WRITE_BYTES, WorkspaceFilesystem

_MANIFEST_BYTES = 256 << 20  # of the list of what was there, as it is kept
_TRIES = 3  # of reading a file that changes meanwhile
_UNWANTED = 1_000_000  # entries that one restore removes: a sandbox that lies could name them for ever


@dataclass(frozen=True, slots=True)
class SnapshotLimits:
    """Of one snapshot: ``entries``; ``content_bytes`` of all files together, which an agent could fill a disk with."""

    entries: int = 100_000
    content_bytes: int = 1 << 30


@dataclass(frozen=True, slots=True)
class WorkspaceSnapshot:
    """See FilesystemSnapshot. ``commit_ref``: the digest of the list of what was there."""

    snapshot_id: uuid.UUID
    created_at: datetime
    commit_ref: str
    root_path: str
    tag: str | None = None


class SnapshotFilesystem(WorkspaceFilesystem):
    """See :class:`~podbot.tools.filesystem_port.SnapshotableFilesystem`. One thread takes or restores at a time.

    ``store``: where snapshots are kept; None: one of its own, which :meth:`close` removes. ``files``, ``write_limit``:
    see WorkspaceFilesystem. ``reads_all``: read each file at each snapshot and restore. Without it, those with the same
    stamp are not read: of a mapped file, the kernel notes the first write to a page, and not the next ones.
    """

    def __init__(
        self,
        files: Files,
        store: SnapshotStore | None = None,
        *,
        limits: SnapshotLimits | None = None,
        write_limit: int = WRITE_BYTES,
        reads_all: bool = False,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        super().__init__(files, write_limit=write_limit)
        self._limits, self._clock = limits or SnapshotLimits(), clock
        self._reads_all, self._closes = reads_all, store is None
        self._store = SnapshotStore() if store is None else store
        self._known: dict[Path, Kept] = {}  # of the last snapshot: a file with the same stamp is not read again

    def snapshot(self, *, tag: str | None = None) -> FilesystemSnapshot:
        """Keep all directories, links and files, with their permissions. FIFOs, sockets and devices stay out of it.

        What changes meanwhile is in it as it was at some time between. Raises SnapshotFailed for a file that cannot be
        read, a name that is not UTF-8, more than 64 levels of directories, and more than the limits.
        """
        with _failing("make"):
            entries = self._kept()
            digest, _ = self._store.keep([manifest_text(entries)])
        self._known = entries
        return WorkspaceSnapshot(uuid.uuid4(), self._clock(), digest, self.root, tag)

    def restore(self, snapshot: FilesystemSnapshot) -> None:
        """Make the files what they were; what is as it was is left alone. End commands that change files before.

        Raises SnapshotFailed; then a part may be restored, unless it says that something is missing in the store.
        """
        try:
            wanted = entries_from(self._store.whole(snapshot.commit_ref, _MANIFEST_BYTES))
        except (ValueError, TypeError) as error:
            raise SnapshotFailed(operation="restore", reason="it is not a snapshot of podbot's") from error
        files = ((path, one) for path, one in wanted.items() if one.kind == "file")
        lost = ["/".join(path) for path, one in files if not self._store.has(one.digest, one.size)]
        if lost:
            hint = "Use the store, or its directory, with which the snapshot was made."
            reason = f"its store lacks the content of {lost[0]}, and of {len(lost) - 1} more"
            raise SnapshotFailed(operation="restore", reason=reason, hint=hint)
        with _failing("restore"):
            self._make(wanted)

    def close(self) -> None:
        """Remove the store, if it is its own. The files and their worker stay. Twice is once."""
        if self._closes:
            self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # --- taking ----------------------------------------------------------------------------------------

    def _kept(self) -> dict[Path, Kept]:
        found: dict[Path, Kept] = {}
        room, list_room = self._limits.content_bytes, _MANIFEST_BYTES
        for number, entry in enumerate(self._inventory("make"), 1):
            if number > self._limits.entries:
                reason = f"there are more than {self._limits.entries:,} entries"
                raise SnapshotFailed(operation="make", reason=reason, hint="Remove some, or raise the limit.")
            if entry.kind == "file":
                kept = self._kept_file(entry, room)
                room -= kept.size if kept else 0
            else:
                kept = Kept(entry.kind, 0, entry.bits, target=entry.target)
            if kept is not None:
                found[entry.path] = kept
                list_room -= len(manifest_text({entry.path: kept}))
                if list_room < 0:  # a restore would refuse it
                    reason = "the paths of all entries are too long together"
                    raise SnapshotFailed(operation="make", reason=reason, hint="Remove some.")
        return found

    def _inventory(self, operation: str) -> Iterator[Entry]:
        """All entries, page by page: what is removed meanwhile is not in the next one."""
        after, more = "", True
        while more:
            entries, more = self._files.inventory(after=after, clear=operation == "restore")
            if more and not entries:
                raise SnapshotFailed(operation=operation, reason="other processes change the files all the time")
            yield from entries
            after = "/".join(entries[-1].path) if entries else ""

    def _kept_file(self, entry: Entry, room: int) -> Kept | None:
        """None for one that has been removed since."""
        known = None if self._reads_all else self._known.get(entry.path)
        is_known = known is not None and entry.stamp and known.stamp == entry.stamp and known.size <= room
        if known is not None and is_known and self._store.has(known.digest, known.size):
            return Kept("file", known.size, entry.bits, known.digest, stamp=entry.stamp)
        for left in reversed(range(_TRIES)):
            reading = _Reading(self._files, entry.path, room)
            try:
                digest, size = self._store.keep(reading.parts())
            except FileRefused as refusal:
                if refusal.kind == "missing":
                    return None
                raise
            if reading.is_steady or not left:
                break
        return Kept("file", size, entry.bits, digest, stamp=reading.stamp)

    # --- restoring -------------------------------------------------------------------------------------

    def _make(self, wanted: dict[Path, Kept]) -> None:
        there: dict[Path, Entry] = {}  # no more than are wanted, however many there are
        removed: Path | None = None
        unwanted = 0
        for entry in self._inventory("restore"):
            path = entry.path
            if not _is_in_the_way(entry, wanted.get(path)):
                there[path] = entry
                continue
            unwanted += 1
            if unwanted > _UNWANTED:
                reason = f"it has more than {_UNWANTED:,} entries too many, of which these are removed"
                raise SnapshotFailed(operation="restore", reason=reason, hint="Restore again.")
            if removed is None or path[: len(removed)] != removed:  # else it went with the directory that it was in
                removed = path
                self._remove(path)
        for path, one in wanted.items():
            self._place(path, one, there.get(path))
        for path, one in reversed(wanted.items()):
            found = there.get(path)
            is_as_it_was = found is not None and found.bits == one.bits and one.bits & 0o700 == 0o700
            if one.kind == "directory" and not is_as_it_was:
                self._files.set_bits(path, one.bits)

    def _remove(self, path: Path) -> None:
        try:
            self._files.rm(path, unlock=True)
        except FileRefused as refusal:
            if refusal.kind != "missing":
                raise

    def _place(self, path: Path, one: Kept, entry: Entry | None) -> None:
        if one.kind == "directory":
            if entry is None:
                self._files.mkdir(path, parents=False)
                self._files.set_bits(path, 0o700)
        elif one.kind == "link":
            if entry is None or entry.kind != "link" or entry.target != one.target:
                self._files.link(path, one.target)
        # A new file also for other permissions: this one may have other names, here or outside.
        elif one.kind == "file" and (entry is None or entry.bits != one.bits or not self._has(path, one, entry)):
            self._put(path, one)

    def _has(self, path: Path, one: Kept, entry: Entry) -> bool:
        """Whether a file has the content that is wanted."""
        if entry.kind != "file" or entry.size != one.size:
            return False
        if entry.stamp and entry.stamp == one.stamp and not self._reads_all:
            return True
        try:
            reading = _Reading(self._files, path, one.size)
            return digest_of(reading.parts()) == one.digest
        except (FileRefused, SnapshotFailed):
            return False  # it is put in its place, and if it cannot be, that says why

    def _put(self, path: Path, one: Kept) -> None:
        parts = self._store.parts(one.digest)
        if one.size <= PIECE_BYTES:
            self._files.put(path, b"".join(parts), how="replace", make=False, bits=one.bits)
            return
        token, size = secrets.token_hex(8), 0
        self._files.begin(path, token, how="replace", make=False)
        try:
            for part in parts:
                size = self._files.stage(path, token, part, offset=size)
            self._files.commit(path, token, size=size, how="replace", bits=one.bits)
        except BaseException:
            with contextlib.suppress(FileRefused, RuntimeError):
                self._files.discard(path, token)
            raise


class _Reading:
    """Reads a file once. ``stamp``: of the content that was read, empty if that is not sure."""

    def __init__(self, files: Files, path: Path, room: int) -> None:
        self._files, self._path, self._room = files, path, room
        self.stamp, self.is_steady = "", True

    def parts(self) -> Iterator[bytes]:
        offset, file = 0, ""
        while True:
            piece = self._files.piece(self._path, offset=offset)
            if piece.info.size_bytes > self._room or offset + len(piece.data) > self._room:
                reason = f"with {'/'.join(self._path)}, the files have more bytes than the limit"
                raise SnapshotFailed(operation="make", reason=reason, hint="Remove some, or raise the limit.")
            if not offset:
                file, self.stamp = piece.file, piece.stamp
            elif piece.stamp != self.stamp or piece.file != file:
                self.stamp, self.is_steady = "", self.is_steady and piece.file == file
            yield piece.data
            offset += len(piece.data)
            if len(piece.data) < PIECE_BYTES:
                return


def _is_in_the_way(entry: Entry, wanted: Kept | None) -> bool:
    """Whether an entry is removed first. A file or a link takes the place of another one by itself."""
    if wanted is None:
        return True
    return wanted.kind != entry.kind and (wanted.kind == "other" or "directory" in (wanted.kind, entry.kind))


@contextlib.contextmanager
def _failing(operation: str) -> Iterator[None]:
    """Turn what is refused, by a sandbox or by this host's disk, into SnapshotFailed."""
    try:
        yield
    except FileRefused as refusal:
        raise SnapshotFailed(operation=operation, reason=refusal.message) from refusal
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = "Make room there, or lower the limits." if full else ""
        raise SnapshotFailed(operation=operation, reason=f"its store: {error.strerror or error}", hint=hint) from error
