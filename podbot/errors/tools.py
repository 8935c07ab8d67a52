"""Errors of the tools that work in a workspace."""

from __future__ import annotations

from typing import ClassVar

from podbot.errors.base import PodbotError


class ToolError(PodbotError):
    """A tool did not do what was asked."""


class FileRefused(ToolError, ValueError):
    """A file operation was not done, and the workspace is as it was, except after a partial ``rm``.

    ``operation``: such as "read"; ``path``: relative to the workspace, or "/". ``kind``: one of bad_path, bad_pattern,
    busy, changed, deadline, denied, exists, failed, is_root, link, missing, no_match, not_a_directory, not_a_file,
    not_empty, not_text, several_matches, too_large. ``reason``: the kind in words, with the numbers that belong to it.
    """

    operation: str
    path: str
    kind: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "cannot {operation} {path}: {reason} ({kind})"
    advice: ClassVar[str] = "{hint}"


class WorkerLost(ToolError, RuntimeError):
    """The files worker ended, did not answer in time, or violated its protocol. It was terminated.

    Whether it had done what was asked is not known. ``reason`` contains at most numbers from it.
    """

    where: str
    reason: str
    template: ClassVar[str] = "the files worker in {where} is lost: {reason}"
    advice: ClassVar[str] = "The next call starts a new one. Check first whether the change was made."


class WorkerUnavailable(ToolError, RuntimeError):
    """No files worker can run there: the image lacks python3, or the workspace's directory cannot be opened."""

    where: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "no files worker can run in {where}: {reason}"
    advice: ClassVar[str] = "{hint}"


class WorkspaceDied(ToolError, RuntimeError):
    """A workspace's container ended during a call. Its files are kept, its processes and ``/tmp`` are lost.

    Whether the call had done what was asked is not known.
    """

    where: str
    reason: str
    template: ClassVar[str] = "the workspace {where} ended: {reason}"
    advice: ClassVar[str] = "The next call starts it again, with the same files; running processes and /tmp are lost."


class WorkspaceClosed(ToolError, RuntimeError):
    """A workspace was used after it had been closed."""

    where: str
    template: ClassVar[str] = "the workspace {where} is closed"
    advice: ClassVar[str] = "Make a new one."


class WorkspaceInUse(ToolError, RuntimeError):
    """Another process, or another workspace of this one, uses the directory of a workspace."""

    path: str
    template: ClassVar[str] = "the workspace's directory {path} is in use"
    advice: ClassVar[str] = "Close the workspace that uses it, or choose another session id."


class SnapshotFailed(ToolError, RuntimeError):
    """A snapshot was not made, or files were not restored. ``operation``: "make" or "restore"."""

    operation: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "cannot {operation} a snapshot: {reason}"
    advice: ClassVar[str] = "{hint}"


class ToolValidationError(ToolError, ValueError):
    """A tool's parameter is not valid, or names what the workspace does not have.

    ``field``: the parameter; ``value``: its value, shortened, or what it is; ``limit``: what was expected.
    """

    field: str
    value: str
    limit: str
    hint: str = ""
    template: ClassVar[str] = "{field} cannot be {value}: {limit}"
    advice: ClassVar[str] = "{hint}"


class UnknownTool(ToolValidationError):
    """There is no tool of that name. ``value``: the name, shortened; ``limit``: the names that there are."""

    template: ClassVar[str] = "there is no {field} {value}"
    advice: ClassVar[str] = "The tools are {limit}. {hint}"

    @property
    def remedy(self) -> str:
        """See PodbotError."""
        return super().remedy if self.limit else "There are no tools."


class UnknownParameter(ToolValidationError):
    """A tool has no parameter of that name. ``value``: the name, shortened; ``limit``: the names that it has."""

    tool: str
    template: ClassVar[str] = "{tool} has no {field} {value}"
    advice: ClassVar[str] = "It has {limit}. {hint}"

    @property
    def remedy(self) -> str:
        """See PodbotError."""
        return super().remedy if self.limit else "It has none."


class PromptInvalid(ToolError, ValueError):
    """A prompt cannot be built or rendered from its sections. ``name``: of the prompt or the section."""

    name: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "the prompt {name} is not valid: {reason}"
    advice: ClassVar[str] = "{hint}"
