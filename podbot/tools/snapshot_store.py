"""Where snapshots are kept: a directory of this host with contents under the names of their digests.

A content is verified whenever it is read, so whoever changes the store changes no file with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import secrets
import tempfile
from collections.abc import Iterable, Iterator

from podbot.errors import SnapshotFailed
from podbot.places import private_dir

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_PART = 1 << 20  # bytes
_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC


def digest_of(parts: Iterable[bytes]) -> str:
    """The name under which a store keeps a content."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()


class SnapshotStore:
    """``directory``: made if it is missing, and only for this user; None: a temporary one, which :meth:`close` removes.

    Raises FilesystemError subclasses for one that is not this user's alone.
    """

    def __init__(self, directory: str | None = None) -> None:
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if directory is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="podbot-snapshots-")
            self.directory = self._temporary.name
        else:
            self.directory = private_dir(directory)

    def keep(self, parts: Iterable[bytes]) -> tuple[str, int]:
        """Keep a content. Returns its digest and its size. Raises OSError, and what ``parts`` raises."""
        name = os.path.join(self.directory, f".new-{secrets.token_hex(8)}")
        digest, size = hashlib.sha256(), 0
        try:
            with open(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600), "wb") as file:
                for part in parts:
                    digest.update(part)
                    size += len(part)
                    file.write(part)
            place = self._place(digest.hexdigest())
            os.makedirs(os.path.dirname(place), 0o700, exist_ok=True)
            os.rename(name, place)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(name)
            raise
        return digest.hexdigest(), size

    def has(self, digest: str, size: int) -> bool:
        """Whether there is a content of that digest and size, without a look into it."""
        try:
            return os.lstat(self._place(digest)).st_size == size
        except OSError:
            return False

    def parts(self, digest: str) -> Iterator[bytes]:
        """A content. It must be read to its end: SnapshotFailed comes there, if it is not what was kept."""
        found = hashlib.sha256()
        try:
            with open(os.open(self._place(digest), os.O_RDONLY | os.O_NONBLOCK | _FLAGS), "rb") as file:
                while part := file.read(_PART):
                    found.update(part)
                    yield part
        except OSError as error:
            raise self._missing(error.strerror or "it cannot be read") from error
        if found.hexdigest() != digest:
            raise self._missing("it has been changed")

    def whole(self, digest: str, most: int) -> bytes:
        """A content of at most that many bytes. Raises SnapshotFailed."""
        if not _DIGEST.match(digest):
            raise self._missing("it has no such name")
        data = bytearray()
        for part in self.parts(digest):
            data += part
            if len(data) > most:
                raise self._missing("it is too long")
        return bytes(data)

    def close(self) -> None:
        """Remove a temporary directory. Twice is once."""
        if self._temporary is not None:
            self._temporary.cleanup()

    def _place(self, digest: str) -> str:
        return os.path.join(self.directory, digest[:2], digest[2:])

    def _missing(self, reason: str) -> SnapshotFailed:
        hint = "Use the store, or its directory, with which the snapshot was made."
        return SnapshotFailed(operation="restore", reason=f"of what it needs in {self.directory}, {reason}", hint=hint)
