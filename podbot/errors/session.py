"""Errors of naming, starting or restarting a session."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar, Self

from podbot.errors.base import PodbotError
from podbot.errors.container import ContainerError

_LISTED = 8  # names in a message


class SessionError(PodbotError):
    """A session is in the wrong state for a call, lacks what the call needs, or ended otherwise than it should."""


class AmbiguousName(ContainerError):
    """What was typed for a name can mean several sessions; ``candidates`` lists them."""

    name: str
    candidates: str
    template: ClassVar[str] = "{name} could be any of {candidates}"
    advice: ClassVar[str] = "Type more of the name."

    @classmethod
    def among(cls, name: str, names: Iterable[str]) -> Self:
        """The error for these names, of which the first are listed."""
        found = sorted(names)
        more = len(found) - _LISTED
        return cls(name=name, candidates=", ".join(found[:_LISTED]) + (f" and {more} more" if more > 0 else ""))


class SessionRuns(ContainerError):
    """``podbot rm``: the session has not been stopped. ``state``: the engine's term, or `being started`."""

    session: str
    state: str
    template: ClassVar[str] = "the session {session} is {state}, so it is not removed"
    advice: ClassVar[str] = "Stop it first, or force its removal."


class NoLog(SessionError):
    """The session's output was not recorded, or nothing was printed."""

    session: str
    template: ClassVar[str] = "there is no log of the session {session}"
    advice: ClassVar[str] = "The output of an agent is recorded with session.logs = true."


class ReportNotFound(SessionError):
    """No report of such a session is kept."""

    session: str
    template: ClassVar[str] = "no report of a session {session} is kept"
    advice: ClassVar[str] = "A hosted session leaves one if it left something to say."


class NoGateway(SessionError):
    """There is no running session of that name with the filtered network."""

    OTHER: ClassVar[str] = "that session has another network"

    session: str
    reason: str
    template: ClassVar[str] = "the filtered network of {session} cannot be reached: {reason}"
    advice: ClassVar[str] = "It exists while a session with sandbox.network = filtered runs."


class GatewayRefused(SessionError):
    """The gateway of a session refused to change its rules. ``hint``: what to write."""

    session: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "the network of {session} was not changed: {reason}"

    @property
    def remedy(self) -> str:
        """See PodbotError."""
        return self.hint or "Write HOST, *.HOST, HOST:PORT or @SET, such as *.example.com."


class SessionExists(SessionError):
    """Another live session has that name."""

    session: str
    template: ClassVar[str] = "a session named {session} is already running"
    advice: ClassVar[str] = "Choose another name, or end that session."


class SessionKept(SessionError):
    """There is a kept, stopped session of that name."""

    session: str
    template: ClassVar[str] = "there is a kept session named {session}"
    advice: ClassVar[str] = "Restart it, remove it, or choose another name."


class AlreadyStarted(SessionError):
    """``podbot start``: the session is running.

    ``state``: RUNNING, or CHANGING while another podbot is at work on it.
    """

    RUNNING: ClassVar[str] = "already running"
    CHANGING: ClassVar[str] = "being started or stopped by another podbot"

    session: str
    state: str = RUNNING
    template: ClassVar[str] = "the session {session} is {state}"


class SessionNotRestorable(SessionError):
    """``podbot start`` or ``podbot restart``: the session cannot be restarted as it was."""

    NOT_KEPT: ClassVar[str] = "it is not kept, and its end would remove it"
    CLONE_RUNS: ClassVar[str] = "a podbot runs it, and would remove the clone if its work is saved"

    session: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "the session {session} cannot be restarted: {reason}"
    advice: ClassVar[str] = "{hint}"


class SessionRecordUnknown(SessionError):
    """This podbot cannot read a session's record: a newer podbot wrote it, or it is not podbot's."""

    session: str
    path: str
    reason: str
    template: ClassVar[str] = "the record {path} of the session {session} cannot be read: {reason}"
    advice: ClassVar[str] = (
        "Use the podbot that wrote it, or remove the session's container and then the record's directory."
    )


class TokenSessionMissing(SessionError):
    """A session named for a token-daemon has no token to renew."""

    NONE: ClassVar[str] = "the session has none"
    session: str
    reason: str
    template: ClassVar[str] = "no GitHub token to renew for {session}: {reason}"
    advice: ClassVar[str] = "Name a running session that has a token."


class LoginFailed(SessionError):
    """An agent's login flow left no login that podbot could keep."""

    agent: str
    reason: str
    template: ClassVar[str] = "there is no new login of {agent}: its login flow ran, but {reason}"
    advice: ClassVar[str] = "Log in again; a login that was kept before is unchanged."


class GuardTripped(SessionError):
    """``--guard-exit``: a session left files that act at `git status` or `cd`, or that is unknown."""

    workspace: str
    reason: str
    template: ClassVar[str] = "after this session {workspace} is not safe to work in: {reason}"
    advice: ClassVar[str] = "Look at what is listed above before you use git, a shell or an editor there."
    exit_code: ClassVar[int] = 3
