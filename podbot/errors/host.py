"""A host file, or podbot's own streams, failed."""

from __future__ import annotations

from typing import ClassVar

from podbot.errors.base import PodbotError


class FilesystemError(PodbotError):
    """A host file or directory failed podbot."""


class PathError(FilesystemError):
    """An operation on a path failed."""

    path: str
    operation: str
    reason: str
    template: ClassVar[str] = "cannot {operation} {path}: {reason}"


class CredentialUnreadable(PathError):
    """Something of a credential family that the operator selected cannot be copied."""

    family: str
    advice: ClassVar[str] = "Mend that, or leave the family out with creds.copy_{family} = false."


class CredentialsTooLarge(FilesystemError):
    """A credential family has more than podbot copies; sizes are text, ``largest`` a name with its size."""

    family: str
    path: str
    size: str
    limit: str
    largest: str
    template: ClassVar[str] = (
        "the {family} credentials in {path} are too large to copy: {size}, and the limit is {limit};"
        " the largest part is {largest}"
    )
    advice: ClassVar[str] = "Clear it up, or leave the family out with creds.copy_{family} = false."


class UnsafeDirectory(FilesystemError):
    """A directory that podbot must own privately, or one above it, is a link, or somebody else's, or open to others."""

    path: str
    reason: str
    template: ClassVar[str] = "the directory {path} cannot be trusted with podbot's files: {reason}"
    advice: ClassVar[str] = (
        "Close it to others (`chmod go-w`), remove it, or point XDG_RUNTIME_DIR or XDG_STATE_HOME at a directory that"
        " only you can write."
    )


class SessionExists(FilesystemError):
    """Another live session holds that name."""

    session: str
    template: ClassVar[str] = "a session named {session} is already running"
    advice: ClassVar[str] = "Choose another --name, or end that one with `podbot stop {session}`."


class TokenSessionMissing(FilesystemError):
    """A session that was named to a token-daemon has no token to renew."""

    session: str
    reason: str
    template: ClassVar[str] = "there is no token of a session {session} to renew: {reason}"
    advice: ClassVar[str] = "`podbot ps` shows which sessions have one."


class DiskFull(FilesystemError):
    """No space left where podbot writes a file of its own, or its output."""

    path: str
    operation: str
    template: ClassVar[str] = "no space left on {path} while trying to {operation}"
    advice: ClassVar[str] = "Free some space there, then try again."


class GuardTripped(FilesystemError):
    """``podbot run --guard-exit``: the session left what acts at a mere `git status` or `cd`, or it is not known."""

    workspace: str
    reason: str
    template: ClassVar[str] = "after this session {workspace} is not safe to work in: {reason}"
    advice: ClassVar[str] = "Look at what is listed above before you use git, a shell or an editor there."
    exit_code: ClassVar[int] = 3


class StreamError(PodbotError):
    """podbot's own stdin, stdout or terminal failed it."""


class OutputClosed(StreamError):
    """The reader of podbot's output went away (EPIPE), or there never was one. ``effect``: what became of the work."""

    stream: str
    effect: str = ""
    template: ClassVar[str] = "the reader of podbot's {stream} went away{effect}"


class ClientBroken(StreamError):
    """The client of a hosted agent left in the middle of a frame, or behind one that is none; ``reason`` says how."""

    reason: str
    template: ClassVar[str] = "the client left behind something that is no whole frame of the protocol ({reason})"
    advice: ClassVar[str] = "Check what starts `podbot host`: it must speak newline-delimited JSON."


class NotATerminalCommand(StreamError):
    """``podbot host`` was started on a terminal: ``stream`` (stdin or stdout) is one."""

    stream: str
    template: ClassVar[str] = (
        "`podbot host` speaks a protocol with the program that starts it, such as an editor; here its {stream} is a"
        " terminal"
    )
    advice: ClassVar[str] = "At a terminal use `podbot run`; to see what host would do, `podbot host --dry-run`."
    exit_code: ClassVar[int] = 2


class TerminalTooSmall(StreamError):
    """The terminal has fewer columns or rows than an agent can draw in."""

    columns: int
    rows: int
    minimum_columns: int
    minimum_rows: int
    template: ClassVar[str] = (
        "the terminal is {columns}x{rows}; an agent's screen needs at least {minimum_columns}x{minimum_rows}"
    )
    advice: ClassVar[str] = "Enlarge it, or run the agent without a terminal (`podbot run … < prompt`)."
