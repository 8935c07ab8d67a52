"""Cloning inside the sandbox: git runs there, with the token that its askpass helper reads, and is checked afterwards.

No secret is in an argv, a variable or the clone's configuration. What a hostile image's git settings can do with a
clone, its programs could do anyway; a credential helper would keep the token, so there is none here.
"""

from __future__ import annotations

import re
import time
from collections import deque
from typing import NamedTuple
from urllib.parse import urlsplit

from podbot.engine.port import Engine
from podbot.errors import BranchNotFound, CloneError, CloneFailed, EmptyRepository, PodbotError
from podbot.events import Emit, Event
from podbot.execution.codes import BY_SIGNAL
from podbot.execution.runner import ExecStatus
from podbot.github.answers import without_secrets
from podbot.launch.command import ExecSpec
from podbot.launch.resources.clone import ClonePlan
from podbot.session.capture import Feed, Lines, run_fed
from podbot.session.clone_errors import Failure, clone_error
from podbot.streams.wake import Interrupted, Wake

# LC_ALL: git's words are read. ssh, for a submodule, must not wait for an answer that nobody can give.
ENV = {"LC_ALL": "C", "GIT_SSH_COMMAND": "ssh -oBatchMode=yes"}
GIT = ("git", "-c", "credential.helper=", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false")
CHECK_SECONDS = 30.0
_SIGINT = 2
_PAUSE = 0.2  # seconds between two lines of progress
_KEPT_LINES = 40
_MOST_HEADS = 20_000
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?", re.DOTALL)
_PROGRESS = re.compile(r"(?:remote: )?([A-Z][A-Za-z ]{2,40}): +[0-9]{1,3}% \(")
# Everything that is checked, in one exec: which branch, whether it has a commit, and what the remote is called.
_LOOK = """cd -- "$1" && git symbolic-ref -q HEAD; echo "head $?"
git rev-parse -q --verify 'HEAD^{commit}'; echo "commit $?"
git config --local --get-all remote.origin.url; echo end"""


class _Look(NamedTuple):
    ref: str
    commit: str
    urls: tuple[str, ...]


class Inside(NamedTuple):
    """Where a clone is made: a running container of ``image``, and what may end it early."""

    engine: Engine
    container: str
    image: str
    wake: Wake


def clone_repository(inside: Inside, clone: ClonePlan, emit: Emit) -> str:
    """Clone into ``clone.directory``; returns the branch that is checked out there.

    The caller has ``wake`` listening. Raises CloneError subclasses, ContainerError subclasses, and Interrupted
    when a signal came.
    """
    inside.wake.check()
    emit(Event("info", "clone.start", f"cloning {clone.repo}", {"repo": clone.repo}))
    errors = _Errors(emit)
    status = _run(inside, clone_command(clone), err=errors.lines)
    errors.lines.end()
    if status.code != 0:
        raise _failed(inside, clone, Failure(status.code, tuple(errors.kept)))
    look = _looked(inside, clone)
    branch = _verified(clone, look)
    text = f"cloned {clone.repo}, branch {branch}, into {clone.directory}"
    fields = {"repo": clone.repo, "branch": branch, "directory": clone.directory, "commit": look.commit}
    # Which branch is the default one is the server's word; a branch that was asked for needs no second mention.
    emit(Event("notice" if clone.branch is None else "debug", "clone.done", text, fields))
    return branch


def clone_command(clone: ClonePlan) -> tuple[str, ...]:
    """The argv of ``git clone``; no secret in it, and nothing in it can be taken for an option."""
    words = [*GIT, "clone", "--progress", "--origin=origin"]  # an image may name another by clone.defaultRemoteName
    if clone.branch is not None:
        words.append(f"--branch={clone.branch}")
    if clone.depth is not None:
        words.append(f"--depth={clone.depth}")
    if clone.submodules:
        words.append("--recurse-submodules")
    return (*words, "--", clone.url, clone.directory)


def _run(
    inside: Inside,
    command: tuple[str, ...],
    *,
    out: Feed | None = None,
    err: Feed | None = None,
    seconds: float | None = None,
) -> ExecStatus:
    # workdir: the container's own is the directory that is still to be made.
    spec = ExecSpec(command=command, workdir="/", env=ENV, stdin=False)
    begun = time.monotonic()
    status = run_fed(inside.engine, inside.container, spec, inside.wake, out=out, err=err, seconds=seconds)
    if status.signal is not None and (seconds is None or time.monotonic() - begun < seconds):
        raise Interrupted(status.signal)
    if status.code == BY_SIGNAL + _SIGINT:  # passed on to git, which died of it
        raise Interrupted(_SIGINT)
    return status


def _looked(inside: Inside, clone: ClonePlan) -> _Look:
    lines: list[str] = []
    words = ("sh", "-c", _LOOK, "podbot-look", clone.directory)
    feed = Lines(lambda line: lines.append(line) if len(lines) < _KEPT_LINES else None)
    _run(inside, words, out=feed, seconds=CHECK_SECONDS)
    found = _parsed(lines)
    if found is None:
        raise CloneFailed(repo=clone.repo, reason=f"what is in {clone.directory} cannot be read")
    return found


def _parsed(lines: list[str]) -> _Look | None:
    """What :data:`_LOOK` printed; None when it did not run to its end."""
    if not lines or lines[-1] != "end":
        return None
    heads = [at for at, line in enumerate(lines) if re.fullmatch(r"head [0-9]+", line)]
    commits = [at for at, line in enumerate(lines) if re.fullmatch(r"commit [0-9]+", line)]
    if len(heads) != 1 or len(commits) != 1 or heads[0] > commits[0]:
        return None
    ref, commit = lines[: heads[0]], lines[heads[0] + 1 : commits[0]]
    return _Look("".join(ref[:1]), "".join(commit[:1]), tuple(lines[commits[0] + 1 : -1]))


def _verified(clone: ClonePlan, look: _Look) -> str:
    """The branch, once all is as asked: git takes a tag for a branch, and says nothing of an empty repository."""
    if not look.commit:
        raise EmptyRepository(repo=clone.repo)
    if any(urlsplit(url).username is not None for url in look.urls) or look.urls != (clone.url,):
        raise CloneFailed(repo=clone.repo, reason="the clone's remote is not the address that was cloned")
    branch = look.ref.removeprefix("refs/heads/")
    if clone.branch is not None and look.ref != f"refs/heads/{clone.branch}":
        raise BranchNotFound(
            repo=clone.repo,
            branch=clone.branch,
            reason=", only a tag of that name" if not look.ref else "",
            hint="Name a branch; start from a tag with `git switch -c NAME TAG` inside.",
        )
    return branch or f"none (detached at {look.commit[:12]})"


def _failed(inside: Inside, clone: ClonePlan, failure: Failure) -> PodbotError:
    error = clone_error(inside.image, clone, failure, inside.engine.words.prune)
    if isinstance(error, BranchNotFound):
        heads = _heads(inside, clone)
        if heads is not None:
            return _no_such_branch(clone, heads)
    return error


def _heads(inside: Inside, clone: ClonePlan) -> list[str] | None:
    """The repository's branches, for a better answer; None when they cannot be had."""
    found: list[str] = []

    def take(line: str) -> None:
        name = line.partition("\trefs/heads/")[2]
        if name.isprintable() and name and len(found) < _MOST_HEADS:
            found.append(name)

    words = (*GIT, "ls-remote", "--heads", "--", clone.url)
    status = _run(inside, words, out=Lines(take), seconds=CHECK_SECONDS)
    return found if status.code == 0 else None


def _no_such_branch(clone: ClonePlan, heads: list[str]) -> CloneError:
    import difflib

    if not heads:
        return EmptyRepository(repo=clone.repo)
    wanted = clone.branch or ""
    by_shape = {name.casefold(): name for name in heads}
    near = [by_shape[found] for found in difflib.get_close_matches(wanted.casefold(), by_shape, n=3, cutoff=0.5)]
    some = near or sorted(heads, key=lambda name: (name not in ("main", "master"), name))[:5]
    hint = f"Did you mean {' or '.join(near)}?" if near else f"It has {', '.join(some)}{', …' * (len(heads) > 5)}."
    return BranchNotFound(repo=clone.repo, branch=wanted, hint=hint)


class _Errors:
    """git's stderr: the last lines of it for an error, and its progress as events."""

    def __init__(self, emit: Emit) -> None:
        self.lines = Lines(self._take)
        self.kept: deque[str] = deque(maxlen=_KEPT_LINES)
        self._emit = emit
        self._told = 0.0
        self._phase = ""

    def _take(self, line: str) -> None:
        text = "".join(char for char in _ESCAPE.sub("", line) if char.isprintable()).strip()
        text = without_secrets(text)  # an image may set GIT_TRACE, or have the helper's shell say what it does
        progress = _PROGRESS.match(text)
        if progress is None:
            if text:
                self.kept.append(text[:400])
            return
        now = time.monotonic()
        if progress[1] != self._phase or now - self._told >= _PAUSE:
            self._phase, self._told = progress[1], now
            shown = text.removeprefix("remote: ")[:100]
            self._emit(Event("info", "clone.progress", f"cloning: {shown}", {"phase": progress[1]}))
