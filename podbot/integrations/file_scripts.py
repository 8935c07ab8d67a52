"""Reading and writing a file inside a sandbox: the scripts that do it, and the errors that their ends mean. Pure.

The scripts need a POSIX shell, ``ls``, ``head``, ``cat`` and ``mkdir``. ``$1`` is an absolute path. A file that nobody
may read, or nobody may write, is refused to root as well, whom the kernel would let: the mode says that it is not
meant to be, as the execute bits do, which the kernel requires of root too.
"""

from __future__ import annotations

import errno
import os

SHELL = "/bin/sh"
# An image may put a directory that the agent can write first in PATH.
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"}
_DIRECTORY, _SPECIAL, _MODE = 81, 82, 83
_PARENT = 84

_CHECK = """
[ -d "$1" ] && exit 81
[ -e "$1" ] && [ ! -f "$1" ] && exit 82
"""
_READ = (
    _CHECK
    + """
mode=$(ls -ldLn -- "$1" 2>/dev/null)
case ${mode%% *} in ''|?r*|????r*|???????r*) ;; *) exit 83;; esac
exec head -c "$2" -- "$1"
"""
)
_WRITE = (
    """
parent=${1%/*}
[ -z "$parent" ] || [ -d "$parent" ] || mkdir -p -- "$parent" || exit 84
"""
    + _CHECK
    + """
mode=$(ls -ldLn -- "$1" 2>/dev/null)
case ${mode%% *} in ''|??w*|?????w*|????????w*) ;; *) exit 83;; esac
cat > "$1"
"""
)
# The last words of a message that ends with the system's reason, whatever program and C library wrote it; "No such
# file" and "Directory nonexistent" are dash's own.
_REASONS = {
    "permission denied": errno.EACCES,
    "operation not permitted": errno.EPERM,
    "read-only file system": errno.EROFS,
    "no such file or directory": errno.ENOENT,
    "no such file": errno.ENOENT,
    "directory nonexistent": errno.ENOENT,
    "is a directory": errno.EISDIR,
    "not a directory": errno.ENOTDIR,
    "file exists": errno.ENOTDIR,  # where mkdir -p expects a directory
    "file name too long": errno.ENAMETOOLONG,
    "too many levels of symbolic links": errno.ELOOP,
    "symbolic link loop": errno.ELOOP,  # musl
    "no space left on device": errno.ENOSPC,
    "disk quota exceeded": errno.EDQUOT,
}
_NOT_FOUND = (errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG, errno.ELOOP)
_DENIED = (errno.EACCES, errno.EPERM, errno.EROFS)


def read_command(path: str, limit: int) -> list[str]:
    """The command that prints the first ``limit`` bytes of a file."""
    return [SHELL, "-c", _READ, "sh", path, str(limit)]


def write_command(path: str) -> list[str]:
    """The command that writes its stdin to a file, whose directories it makes."""
    return [SHELL, "-c", _WRITE, "sh", path]


def read_error(name: str, code: int, stderr: str) -> OSError:
    """The error of :func:`read_command` for its exit code and its messages. ``name``: the path as the caller knows it.

    FileNotFoundError, IsADirectoryError, PermissionError, or another OSError.
    """
    number = _number(code, stderr)
    return _error(errno.ENOENT if number in _NOT_FOUND else number, name, stderr)


def write_error(name: str, code: int, stderr: str) -> OSError:
    """As :func:`read_error`, for :func:`write_command`. IsADirectoryError, PermissionError, or another OSError."""
    return _error(_number(code, stderr), name, stderr)


def _number(code: int, stderr: str) -> int:
    if code == _DIRECTORY:
        return errno.EISDIR
    if code in (_SPECIAL, _MODE):
        return errno.EACCES
    message = stderr.strip().rpartition(":")[2].strip().lower()
    return _REASONS.get(message, 0)


def _error(number: int, name: str, stderr: str) -> OSError:
    if number in _DENIED:
        return PermissionError(number, os.strerror(number), name)
    if number:
        return OSError(number, os.strerror(number), name)  # Python chooses the subclass
    lines = stderr.strip().splitlines()
    return OSError(errno.EIO, lines[-1][:200] if lines else os.strerror(errno.EIO), name)
