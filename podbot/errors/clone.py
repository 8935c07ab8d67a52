"""A repository could not be cloned into the sandbox."""

from __future__ import annotations

from typing import ClassVar

from podbot.errors.base import PodbotError


class CloneError(PodbotError):
    """A repository could not be cloned into the sandbox, which was removed."""


class CloneFailed(CloneError):
    """git failed for a reason that has no class of its own; ``reason`` is its last words."""

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
    """The server knows no such repository, or the token may not read it: it says the same for both."""

    repo: str
    server: str
    reason: str
    template: ClassVar[str] = "{server} does not let the App read {repo}: {reason}"
    advice: ClassVar[str] = "Check the name, and that the installation has that repository with contents: read."


class ServerUnreachable(CloneError):
    """The sandbox could not talk to the git server."""

    repo: str
    server: str
    reason: str
    template: ClassVar[str] = "the sandbox cannot reach {server} to clone {repo}: {reason}"
    advice: ClassVar[str] = "sandbox.network says what it may reach; `none` leaves nothing to clone from."


class TransferFailed(CloneError):
    """The server let the App read the repository, and its transfer broke off or brought something broken."""

    repo: str
    server: str
    reason: str
    template: ClassVar[str] = "the transfer of {repo} from {server} failed: {reason}"
    advice: ClassVar[str] = "Try again; if it fails at the same place, look at the server and at proxies on the way."


class GitNotInImage(CloneError):
    """The image has no git."""

    image: str
    template: ClassVar[str] = "{image} has no git, so nothing can be cloned in it"
    advice: ClassVar[str] = "`podbot doctor --image` says what an image needs; `podbot setup` builds one that has it."


class TokenUnreadable(CloneError):
    """The image's user is not root, and may not read the token."""

    image: str
    path: str
    template: ClassVar[str] = "the user that {image} names may not read {path}"
    advice: ClassVar[str] = "A clone needs an image whose user is root: build it with `USER root` at its end."
