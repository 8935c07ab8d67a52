"""Translates git's messages about a failed clone into an error with a remedy. Pure.

The messages are those of git 2.20 to 2.50 with LC_ALL=C, and the engine's for a program that does not exist.
"""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from podbot.errors import (
    BranchNotFound,
    CloneError,
    CloneFailed,
    EngineStorageFull,
    GitNotInImage,
    PodbotError,
    RepositoryNotFound,
    ServerUnreachable,
    TokenNeeded,
    TokenUnreadable,
    TransferFailed,
)
from podbot.launch import askpass
from podbot.launch.github_auth import APP, NONE, WAYS, owner_of
from podbot.launch.resources.clone import ClonePlan


class Failure(NamedTuple):
    """A ``git clone`` that exited with ``code``; ``lines`` ends its stderr, without control characters."""

    code: int
    lines: tuple[str, ...]


_NO_BRANCH = re.compile(
    r"^(?:fatal|warning): (?:Remote branch .* not found|Could not find remote branch)", re.MULTILINE
)
_NO_SPACE = re.compile(r"No space left on device|Disk quota exceeded")

Kind = Literal["refused", "unreachable", "transfer"]

# git's own messages; the first match decides. Lines from the server ("remote: …") are ignored: it may send anything.
# A failed transfer comes first: by then the server had let the App list the branches, whatever status it sent later.
KINDS: tuple[tuple[Kind, str], ...] = (
    ("transfer", r"error: RPC failed"),  # with the status, or curl's message
    ("transfer", r"fatal: expected '?\w+'?"),  # 'packfile', 'acknowledgments', flush after ref listing: an empty reply
    ("transfer", r"fatal: (?:git fetch-pack|fetch-pack): "),  # expected ACK/NAK, invalid index-pack output
    ("transfer", r"(?:fatal: )?fetch-pack: unexpected disconnect"),
    ("transfer", r"error: [0-9]+ bytes of (?:body|length header) (?:are|were) still expected"),
    ("transfer", r"fatal: early EOF"),
    ("transfer", r"fatal: (?:protocol error|remote-curl|bad line length character|bad band|the remote end sent)"),
    ("transfer", r"fatal: (?:pack |packfile |serious inflate|index-pack |unpack-objects )"),
    ("transfer", r"error: inflate"),
    ("refused", r"fatal: repository '.*' not found"),
    ("refused", r"fatal: Authentication failed for "),
    ("refused", r"fatal: could not read (?:Username|Password) for "),
    ("refused", r"fatal: unable to access '.*': The requested URL returned error: (?:401|403|404|410|451)"),
    ("refused", r"fatal: remote error: "),  # the server's own message follows
    ("unreachable", r"fatal: unable to access "),  # name, connection, TLS, proxy, 407, 429, 5xx: curl's message follows
    ("unreachable", r"fatal: unable to (?:connect to|look up) "),
    ("unreachable", r"ssh: (?:connect to host|Could not resolve hostname) "),
    ("transfer", r"fatal: (?:T|t)he remote end hung up"),  # ends the output of many failures, so it is tried last
)
_KINDS = [(kind, re.compile(f"^{pattern}", re.MULTILINE)) for kind, pattern in KINDS]


def clone_error(image: str, clone: ClonePlan, failure: Failure, engine_hint: str = "") -> PodbotError:
    """The error for ``failure``; ``engine_hint`` says how to free the engine's storage.

    Its texts contain what the server sent, so the caller must escape them before showing them.
    """
    own = "\n".join(line for line in failure.lines if not line.startswith("remote:"))
    if failure.code == 127:
        return GitNotInImage(image=image)
    if askpass.UNREADABLE in own:
        return TokenUnreadable(image=image, path=askpass.TOKEN)
    if _NO_SPACE.search(own):
        return EngineStorageFull(operation=f"clone {clone.repo}", engine_hint=engine_hint)
    if clone.branch is not None and _NO_BRANCH.search(own):
        return BranchNotFound(repo=clone.repo, branch=clone.branch)
    return _from_words(clone, failure, own)


def _from_words(clone: ClonePlan, failure: Failure, own: str) -> CloneError:
    kind, reason = _judged(own)
    reason = reason or f"git ended with status {failure.code}"
    if "into submodule path" in own or "clone of submodule" in own:
        reach = "There is no token for it" if clone.auth == NONE else f"The token is for {clone.repo} alone"
        if clone.auth not in (APP, NONE):
            reach = f"Check what {owner_of(clone.auth)} may read"
        hint = f"{reach}; clone without them (workspace.submodules = false)."
        return CloneFailed(repo=clone.repo, reason=f"a submodule failed: {reason}", hint=hint)
    match kind:
        case "refused":
            return _refused(clone, reason)
        case "unreachable":
            return ServerUnreachable(repo=clone.repo, server=clone.server, reason=reason)
        case "transfer":
            return TransferFailed(repo=clone.repo, server=clone.server, reason=reason)
    return CloneFailed(repo=clone.repo, reason=reason)


def _refused(clone: ClonePlan, reason: str) -> CloneError:
    if clone.auth == NONE:
        return TokenNeeded(repo=clone.repo, server=clone.server, hint=WAYS)
    if clone.auth == APP:
        return RepositoryNotFound(repo=clone.repo, server=clone.server, reason=reason)
    owner = owner_of(clone.auth)
    hint = f"Check the name, and that {owner} may read that repository."
    return RepositoryNotFound(repo=clone.repo, server=clone.server, reason=reason, owner=owner, hint=hint)


def _judged(own: str) -> tuple[Kind | None, str]:
    """The kind of failure and its best line; for an unknown kind, that is the first ``fatal:`` line or the last one."""
    lines = own.splitlines()
    for kind, pattern in _KINDS:
        if found := next(filter(pattern.match, lines), None):
            return kind, _shown(found)
    said = [line for line in lines if line.startswith("fatal: ")] or lines[-1:]
    return None, _shown(said[0]) if said else ""


def _shown(line: str) -> str:
    return line.removeprefix("fatal: ").removeprefix("error: ")[:300]
