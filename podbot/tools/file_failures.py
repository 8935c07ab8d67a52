"""A refusal of the files worker as the error of Python's that a Filesystem raises."""

from __future__ import annotations

import errno

from podbot.errors import FileRefused

_LIMIT = (OSError, errno.EFBIG)
_BUSY = (OSError, errno.EBUSY)
_KINDS: dict[str, tuple[type[Exception], int]] = {
    "bad_path": (ValueError, 0),
    "bad_pattern": (ValueError, 0),
    "busy": _BUSY,
    "changed": _BUSY,
    "deadline": (TimeoutError, errno.ETIMEDOUT),
    "denied": (PermissionError, errno.EACCES),
    "exists": (FileExistsError, errno.EEXIST),
    "failed": (OSError, errno.EIO),
    "is_root": (IsADirectoryError, errno.EISDIR),
    "link": (PermissionError, errno.ELOOP),
    "missing": (FileNotFoundError, errno.ENOENT),
    "not_a_directory": (NotADirectoryError, errno.ENOTDIR),
    "not_a_file": (PermissionError, errno.EACCES),
    "not_empty": (IsADirectoryError, errno.ENOTEMPTY),
    "not_text": (ValueError, 0),
    "too_large": _LIMIT,
}


def as_os_error(refusal: FileRefused) -> Exception:
    """The error for a refusal, with its words."""
    made, number = _KINDS.get(refusal.kind, (OSError, errno.EIO))
    return failure(made, number, str(refusal))


def failure(made: type[Exception], number: int, message: str) -> Exception:
    """An error of Python's for files. An OSError has ``number`` as its ``errno``, and ``message`` alone as its text."""
    error = made(message)
    if isinstance(error, OSError):
        error.errno = number
    return error
