"""A store of conversations cannot be used, found or removed."""

from __future__ import annotations

from typing import ClassVar

from podbot.errors.host import FilesystemError


class UnsafeStore(FilesystemError):
    """The store of an agent's conversations is no directory."""

    path: str
    template: ClassVar[str] = "{path}, the store of conversations, is a link or no directory"
    advice: ClassVar[str] = "Remove it, or start with --no-history."


class HistoryNotFound(FilesystemError):
    """No conversations are kept of that project, or of that agent in it."""

    project: str
    agent: str = ""
    template: ClassVar[str] = "no conversations are kept of {project!r}"
    advice: ClassVar[str] = "`podbot history ls` shows of which projects."

    @property
    def message(self) -> str:
        """One sentence; the agent at its end, if one was asked for."""
        return f"{super().message} with {self.agent}" if self.agent else super().message


class HistoryInUse(FilesystemError):
    """A session mounts the conversations that are to be removed, or they are being removed."""

    project: str
    user: str
    hint: str
    template: ClassVar[str] = "the conversations of {project} are in use by {user}"
    advice: ClassVar[str] = "{hint}"


class HistoryNotRemoved(FilesystemError):
    """A part of the conversations cannot be removed: it belongs to another user."""

    path: str
    reason: str
    template: ClassVar[str] = "could not remove all of {path}: {reason}"
    advice: ClassVar[str] = "Remove it as the user who owns it, or as root: `sudo rm -rf {path}`."
