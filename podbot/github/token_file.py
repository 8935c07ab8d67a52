"""The file from which the sandbox reads its token: private, always complete, replaced by rename.

The directory is mounted read-only at ``/run/secrets``, not the file, because a mounted file would stay the old one
after a rename. Nothing in it is locked, because root inside could hold such a lock.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator

from podbot.atomic import file_errors, replace_at, sweep_at
from podbot.errors import UnsafeDirectory
from podbot.places import private_dir

NAME = "ghapp_token"
SECRETS = "secrets"
_LONGEST = 16_384  # bytes; GitHub's are 40 to 520
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def is_token(text: str) -> bool:
    """Whether it is one line of printable ASCII, without blanks, that a reader can use."""
    return bool(text) and len(text) <= _LONGEST and text.isascii() and text.isprintable() and " " not in text


class TokenFile:
    """``ghapp_token`` in ``directory``. One writer at a time (the lease's holder), any number of readers."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.path = os.path.join(directory, NAME)

    def prepare(self) -> None:
        """Create the directory, 0700. Raises UnsafeDirectory if it is a link or another user's, and PathError."""
        private_dir(self.directory)

    def write(self, token: str) -> None:
        """Replace the token. Raises DiskFull, PathError, UnsafeDirectory; the old token then stays.

        The directory is never created here: if it is missing, the session has ended. Raises ValueError if ``token`` is
        not one line of printable ASCII, which no reader could use.
        """
        if not is_token(token):
            raise ValueError("not a token")  # without its text, because errors are shown
        with file_errors(self.path, "write the token"), self._opened() as directory:
            replace_at(directory, NAME, token.encode("ascii"), mode=0o600)

    def read(self) -> str | None:
        """The token; None if there is no valid one."""
        try:
            with self._opened() as directory:
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                descriptor = os.open(NAME, flags, dir_fd=directory)
        except (OSError, UnsafeDirectory):
            return None
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return None
            data = os.read(descriptor, _LONGEST + 1)
        except OSError:
            return None
        finally:
            os.close(descriptor)
        text = data.decode("ascii", "replace")
        return text if 0 < len(data) <= _LONGEST and text.isascii() else None

    def exists(self) -> bool:
        """Whether there is a token, without reading it."""
        try:
            found = os.lstat(self.path)
        except OSError:
            return False
        return stat.S_ISREG(found.st_mode) and found.st_size > 0

    def sweep(self) -> None:
        """Remove temporary files of killed writers. Only for the lease's holder."""
        with contextlib.suppress(OSError, UnsafeDirectory), self._opened() as directory:
            sweep_at(directory, NAME)

    def remove(self) -> None:
        """Remove the token and killed writers' files; the directory stays. Raises PathError, UnsafeDirectory."""
        missing = contextlib.suppress(FileNotFoundError)
        with file_errors(self.path, "remove the token"), missing, self._opened() as directory:
            sweep_at(directory, NAME)
            os.unlink(NAME, dir_fd=directory)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """The directory's descriptor. The opened directory is checked, not its path, which could be swapped."""
        try:
            descriptor = os.open(self.directory, _OPEN_DIRECTORY)
        except NotADirectoryError as exc:  # the error of O_DIRECTORY | O_NOFOLLOW for a link
            raise UnsafeDirectory(path=self.directory, reason="it is a link or not a directory") from exc
        try:
            found = os.fstat(descriptor)
            if found.st_uid != os.getuid():
                raise UnsafeDirectory(path=self.directory, reason=f"it belongs to user {found.st_uid}")
            if stat.S_IMODE(found.st_mode) != 0o700:
                raise UnsafeDirectory(path=self.directory, reason="it is open to other users")
            yield descriptor
        finally:
            os.close(descriptor)
