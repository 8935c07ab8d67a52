"""GitHub, the App's key, or an installation token failed."""

from __future__ import annotations

from typing import ClassVar

from podbot.errors.base import PodbotError


class GitHubError(PodbotError):
    """GitHub, the App's key, or an installation token failed.

    Every one has ``step`` (what was being done; may be empty), ``status`` (HTTP; 0 without an answer),
    ``retry_after`` (seconds that GitHub asked to wait; 0 when it did not) and ``transient``: whether the
    same request may succeed later with nothing fixed.
    """

    # Without annotations: defaults of what only some classes have as a field.
    step = ""
    status = 0
    retry_after = 0
    transient: ClassVar[bool] = False


class PrivateKeyMissing(GitHubError):
    """There is no key at the path, or an empty file. Transient: a key that is being replaced looks so for a moment."""

    path: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "there is no private key at {path}: {reason}"
    advice: ClassVar[str] = "{hint}"
    transient: ClassVar[bool] = True


class PrivateKeyLoadFailed(GitHubError):
    """The file cannot be read, or what it holds is no RSA private key that podbot can use."""

    path: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "cannot use the private key {path}: {reason}"
    advice: ClassVar[str] = "{hint}"


class GitHubUnreachable(GitHubError):
    """No answer: the name, the connection, TLS, or the time failed."""

    step: str
    api_url: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "cannot reach GitHub at {api_url} to {step}: {reason}"
    advice: ClassVar[str] = "{hint}"
    transient: ClassVar[bool] = True


class GitHubRefused(GitHubError):
    """GitHub said no: who asks, what for, or where is wrong."""

    step: str
    status: int
    reason: str
    hint: str = ""
    template: ClassVar[str] = "GitHub refused to {step} (HTTP {status}): {reason}"
    advice: ClassVar[str] = "{hint}"


class GitHubBusy(GitHubError):
    """GitHub cannot answer now: a rate limit or its own failure."""

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
    """What answered is not GitHub's API, or its answer is not what was asked for."""

    step: str
    status: int
    reason: str
    hint: str = ""
    template: ClassVar[str] = "the answer to the request to {step} cannot be used (HTTP {status}): {reason}"
    advice: ClassVar[str] = "{hint}"
    transient: ClassVar[bool] = True


class InstallationUnsuitable(GitHubError):
    """The installation, or the token that it gave, is not for this repository with these permissions."""

    installation: int
    repo: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "installation {installation} of the App does not serve {repo}: {reason}"
    advice: ClassVar[str] = "{hint}"
