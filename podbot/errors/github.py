"""Errors of GitHub, the App's key, or an installation token."""

from __future__ import annotations

from typing import ClassVar

from podbot.errors.base import PodbotError


class GitHubError(PodbotError):
    """GitHub, the App's key, or an installation token failed.

    Every one has ``step`` (the operation; may be empty), ``status`` (HTTP; 0 without a response), ``retry_after``
    (seconds that GitHub asked to wait, or 0) and ``transient``: whether the same request may succeed later by itself.
    """

    # Without annotations: defaults for attributes that only some classes have as a field.
    step = ""
    status = 0
    retry_after = 0
    transient: ClassVar[bool] = False


class PrivateKeyMissing(GitHubError):
    """There is no key at the path, or an empty file. Transient, because this happens while a key is being replaced."""

    path: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "there is no private key at {path}: {reason}"
    advice: ClassVar[str] = "{hint}"
    transient: ClassVar[bool] = True


class PrivateKeyLoadFailed(GitHubError):
    """The file cannot be read, or contains no RSA private key that podbot can use."""

    path: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "cannot use the private key {path}: {reason}"
    advice: ClassVar[str] = "{hint}"


class TokenSourceFailed(GitHubError):
    """The operator's own token, which ``github.auth`` selected, could not be read."""

    source: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "cannot take a GitHub token from {source}: {reason}"
    advice: ClassVar[str] = "{hint}"


class GitHubUnreachable(GitHubError):
    """No response: resolving, connecting or TLS failed, or it took too long."""

    step: str
    api_url: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "cannot reach GitHub at {api_url} to {step}: {reason}"
    advice: ClassVar[str] = "{hint}"
    transient: ClassVar[bool] = True


class GitHubRefused(GitHubError):
    """GitHub refused the request because of its credentials, its content or its address."""

    step: str
    status: int
    reason: str
    hint: str = ""
    template: ClassVar[str] = "GitHub refused to {step} (HTTP {status}): {reason}"
    advice: ClassVar[str] = "{hint}"


class GitHubBusy(GitHubError):
    """GitHub cannot respond now: a rate limit or a server error."""

    step: str
    status: int
    reason: str
    hint: str = ""
    retry_after: int = 0
    template: ClassVar[str] = "GitHub could not {step} now (HTTP {status}): {reason}"
    advice: ClassVar[str] = "{hint}"
    transient: ClassVar[bool] = True

    @property
    def remedy(self) -> str:
        """The hint, and how long GitHub asked to wait."""
        wait = f"GitHub asks to wait {self.retry_after} s." if self.retry_after else ""
        return f"{self.hint} {wait}".strip()


class GitHubAnswerInvalid(GitHubError):
    """The server is not GitHub's API, or its response does not match the request."""

    step: str
    status: int
    reason: str
    hint: str = ""
    template: ClassVar[str] = "the response to the request to {step} cannot be used (HTTP {status}): {reason}"
    advice: ClassVar[str] = "{hint}"
    transient: ClassVar[bool] = True


class InstallationUnsuitable(GitHubError):
    """The installation or its token is not for this repository with these permissions."""

    installation: int
    repo: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "installation {installation} of the App does not serve {repo}: {reason}"
    advice: ClassVar[str] = "{hint}"
