"""Errors of using, finding or removing a store of conversations."""

from __future__ import annotations

from typing import ClassVar

from podbot.errors.host_files import FilesystemError


class UnsafeStore(FilesystemError):
    """The store of an agent's conversations is not a directory."""

    path: str
    template: ClassVar[str] = "{path}, the store of conversations, is a link or not a directory"
    advice: ClassVar[str] = "Move it away, or set session.history = false."


class HistoryNotFound(FilesystemError):
    """There are no conversations of that project, or none with that agent."""

    project: str
    agent: str = ""
    template: ClassVar[str] = "there are no conversations of {project!r}"
    advice: ClassVar[str] = "Check the project's name and the agent's."

    @property
    def message(self) -> str:
        """One sentence, with the agent at its end if one was named."""
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

    @property
    def remedy(self) -> str:
        """See PodbotError. The path is quoted: a word of it alone could be another directory."""
        import shlex

        return f"Remove it as the user who owns it, or as root: `sudo rm -rf -- {shlex.quote(self.path)}`."
