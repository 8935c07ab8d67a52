"""git's own words about a clone that failed, as an error that says what to do. Pure.

The words are those of git 2.20 to 2.50 with LC_ALL=C, and of the engine for a program that is not there.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from podbot.errors import (
    BranchNotFound,
    CloneError,
    CloneFailed,
    DiskFull,
    GitNotInImage,
    PodbotError,
    RepositoryNotFound,
    ServerUnreachable,
    TokenUnreadable,
)
from podbot.launch import askpass
from podbot.launch.types import ClonePlan


class Failure(NamedTuple):
    """A ``git clone`` that ended with ``code``, and the last lines of its stderr without control characters."""

    code: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """All lines, to be searched."""
        return "\n".join(self.lines)


_NO_BRANCH = re.compile(r"Remote branch .* not found|Could not find remote branch")
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded")
_REFUSED = re.compile(
    r"Repository not found|repository '.*' not found|Authentication failed|could not read (?:Username|Password)"
    r"|returned error: (?:401|403|404)|Write access to repository not granted|Permission to .* denied"
)
_UNREACHABLE = re.compile(
    r"Could not resolve host|Failed to connect|Connection (?:refused|timed out|reset)|Couldn't connect|timed out"
    r"|SSL|certificate|No route to host|Network is unreachable|Empty reply|returned error: 5[0-9][0-9]|Proxy"
)


def clone_error(image: str, clone: ClonePlan, failure: Failure) -> PodbotError:
    """The error for ``failure``. Its texts hold what the server said: whoever shows them escapes them."""
    text = failure.text
    if failure.code == 127:
        return GitNotInImage(image=image)
    if askpass.UNREADABLE in text:
        return TokenUnreadable(image=image, path=askpass.TOKEN)
    if _NO_SPACE.search(text):
        return DiskFull(path="the engine's storage", operation=f"clone {clone.repo}")
    if clone.branch is not None and _NO_BRANCH.search(text):
        return BranchNotFound(repo=clone.repo, branch=clone.branch)
    return _from_words(clone, failure)


def _from_words(clone: ClonePlan, failure: Failure) -> CloneError:
    reason = _last_words(failure)
    if "into submodule path" in failure.text or "clone of submodule" in failure.text:
        hint = f"The token is for {clone.repo} alone; without --submodules the rest of it is cloned."
        return CloneFailed(repo=clone.repo, reason=f"a submodule failed: {reason}", hint=hint)
    if _REFUSED.search(failure.text):
        return RepositoryNotFound(repo=clone.repo, server=clone.server, reason=reason)
    if _UNREACHABLE.search(failure.text):
        return ServerUnreachable(repo=clone.repo, server=clone.server, reason=reason)
    return CloneFailed(repo=clone.repo, reason=reason)


def _last_words(failure: Failure) -> str:
    """The line that says most: the first ``fatal:``, else the last one."""
    said = [line for line in failure.lines if line.startswith("fatal: ")] or list(failure.lines[-1:])
    return said[0].removeprefix("fatal: ")[:300] if said else f"git ended with status {failure.code}"
