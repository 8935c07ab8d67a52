"""Errors of host files and of podbot's own streams."""

from __future__ import annotations

import errno
import os
from typing import ClassVar

from podbot.errors.base import PodbotError

# The remedies of PathError, by the system's error text, which is its reason.
_BY_FAULT = {
    os.strerror(number): text
    for number, text in {
        errno.ENOENT: "Check the path: it, or a directory that it lies in, does not exist.",
        errno.ENOTDIR: "Check the path: something in it is a file and no directory.",
        errno.EISDIR: "Name a file; this is a directory.",
        errno.EACCES: "Choose another path, or have its owner give you access.",
        errno.EPERM: "Choose another path, or have its owner give you access.",
        errno.EROFS: "Choose a path on a file system that can be written to.",
        errno.ENOSPC: "Make room on that file system, or choose a path on another one.",
        errno.EDQUOT: "Make room within your quota, or choose a path on another file system.",
        errno.ELOOP: "Name the place itself: this path leads through a link that podbot does not follow.",
        errno.ENAMETOOLONG: "Choose a shorter path.",
    }.items()
}


class FilesystemError(PodbotError):
    """An error of a host file or directory."""


class PathError(FilesystemError):
    """An operation on a path failed."""

    IS_LINK: ClassVar[str] = "it is a link, and podbot follows none there"

    path: str
    operation: str
    reason: str
    template: ClassVar[str] = "cannot {operation} {path}: {reason}"

    @property
    def remedy(self) -> str:
        """See PodbotError."""
        return super().remedy or _BY_FAULT.get(self.reason, "")


class CredentialUnreadable(PathError):
    """A part of a selected credential family cannot be copied."""

    family: str
    advice: ClassVar[str] = "Fix that, or exclude the family with creds.copy_{family} = false."


class CredentialsTooLarge(FilesystemError):
    """A credential family is larger than podbot copies; sizes are text, ``largest`` a name with its size."""

    family: str
    path: str
    size: str
    limit: str
    largest: str
    template: ClassVar[str] = (
        "the {family} credentials in {path} are too large to copy: {size}, and the limit is {limit};"
        " the largest part is {largest}"
    )
    advice: ClassVar[str] = (
        "Exclude the family with creds.copy_{family} = false, or make that part smaller with the agent's own means."
    )


class UnsafeDirectory(FilesystemError):
    """A directory that must be private to podbot, or its parent, is a link, another user's, or open to others."""

    path: str
    reason: str
    template: ClassVar[str] = "the directory {path} cannot be trusted with podbot's files: {reason}"
    advice: ClassVar[str] = (
        "podbot's own directories lie below XDG_RUNTIME_DIR and XDG_STATE_HOME: set these to directories that are yours"
        " and that only you can write."
    )


class DiskFull(FilesystemError):
    """No space left for one of podbot's own files, or its output."""

    path: str
    operation: str
    template: ClassVar[str] = "no space left on {path} while trying to {operation}"
    advice: ClassVar[str] = "Free some space there, then try again."


class StreamError(PodbotError):
    """An error of podbot's own stdin, stdout or terminal."""


class OutputClosed(StreamError):
    """The reader of podbot's output closed it (EPIPE), or there was none. ``effect``: what happened to the command."""

    stream: str
    effect: str = ""
    template: ClassVar[str] = "the reader of podbot's {stream} went away{effect}"


class ClientBroken(StreamError):
    """The client of a hosted agent left after an incomplete or invalid frame; ``reason`` says which."""

    reason: str
    template: ClassVar[str] = "the client's last frame was incomplete or invalid ({reason})"
    advice: ClassVar[str] = "Check the program that sent it: it must send newline-delimited JSON."


class NotATerminalCommand(StreamError):
    """``podbot host`` was started on a terminal: ``stream`` (stdin or stdout) is one."""

    stream: str
    template: ClassVar[str] = (
        "a hosted agent talks a protocol with the program that starts it, such as an editor, but {stream} is a terminal"
    )
    advice: ClassVar[str] = "Run the agent in a session of its own, or connect a program instead of a terminal."
    exit_code: ClassVar[int] = 2


class TerminalTooSmall(StreamError):
    """The terminal has fewer columns or rows than an agent needs."""

    columns: int
    rows: int
    minimum_columns: int
    minimum_rows: int
    template: ClassVar[str] = (
        "the terminal is {columns}x{rows}; an agent's screen needs at least {minimum_columns}x{minimum_rows}"
    )
    advice: ClassVar[str] = "Enlarge it, or run the agent without a terminal."


class CopyFailed(FilesystemError):
    """A file or directory was not copied, or only a part of it. ``path``: of this host, or NAME:PATH."""

    path: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "cannot copy {path}: {reason}"
    advice: ClassVar[str] = "{hint}"


class ReportsUnreadable(FilesystemError):
    """The directory of the kept reports exists, but cannot be listed."""

    path: str
    reason: str
    template: ClassVar[str] = "the reports of hosted sessions in {path} cannot be read: {reason}"
    advice: ClassVar[str] = "Make it a directory that belongs to you, with mode 0700, or move it away."
