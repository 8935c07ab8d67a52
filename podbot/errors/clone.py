"""A repository could not be cloned into the sandbox."""

from __future__ import annotations

from typing import ClassVar

from podbot.errors.base import PodbotError


class CloneError(PodbotError):
    """A repository could not be cloned into the sandbox, which was removed."""


class CloneFailed(CloneError):
    """git failed for a reason without a class of its own; ``reason`` is the end of its output."""

    repo: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "could not clone {repo}: {reason}"
    advice: ClassVar[str] = "{hint}"


class BranchNotFound(CloneError):
    """The repository has no branch of that name."""

    repo: str
    branch: str
    reason: str = ""
    hint: str = ""
    template: ClassVar[str] = "{repo} has no branch {branch}{reason}"
    advice: ClassVar[str] = "{hint}"


class EmptyRepository(CloneError):
    """The repository has no commit, so there is nothing to work on."""

    repo: str
    template: ClassVar[str] = "{repo} is empty: it has no commit"
    advice: ClassVar[str] = "Push a first commit to it, such as a README."


class RepositoryNotFound(CloneError):
    """The repository does not exist, or the token may not read it; the server's reply is the same for both.

    ``owner``: whose token it was.
    """

    repo: str
    server: str
    reason: str
    owner: str = "the App"
    hint: str = "Check the name, and that the installation has that repository with contents: read."
    template: ClassVar[str] = "{server} does not let {owner} read {repo}: {reason}"
    advice: ClassVar[str] = "{hint}"


class TokenNeeded(CloneError):
    """The repository cannot be cloned without a token: it is private, or does not exist."""

    repo: str
    server: str
    hint: str
    template: ClassVar[str] = "{repo} cannot be read on {server} without a token: it is private, or does not exist"
    advice: ClassVar[str] = "Check the name. If it is private, {hint}."


class ServerUnreachable(CloneError):
    """The sandbox could not talk to the git server."""

    repo: str
    server: str
    reason: str
    template: ClassVar[str] = "the sandbox cannot reach {server} to clone {repo}: {reason}"
    advice: ClassVar[str] = "Check sandbox.network: with `none`, nothing can be cloned."


class TransferFailed(CloneError):
    """The server let the App read the repository, but the transfer was interrupted or its data is corrupt."""

    repo: str
    server: str
    reason: str
    template: ClassVar[str] = "the transfer of {repo} from {server} failed: {reason}"
    advice: ClassVar[str] = "Try again; if it fails at the same point, check the server and any proxies."


class GitNotInImage(CloneError):
    """The image has no git."""

    image: str
    template: ClassVar[str] = "{image} has no git, so nothing can be cloned in it"
    advice: ClassVar[str] = "Use an image that has git, as podbot's own has."


class TokenUnreadable(CloneError):
    """The image's user is not root, and may not read the token."""

    image: str
    path: str
    template: ClassVar[str] = "the user that {image} names may not read {path}"
    advice: ClassVar[str] = "A clone needs an image whose user is root: build it with `USER root` at its end."
