"""Cloning inside the sandbox: git runs there with the token that its askpass helper reads; the result is checked.

No secret is in an argv, a variable or the clone's configuration. The git settings of a hostile image can do nothing
to a clone that its programs could not do anyway. A credential helper would store the token, so none is used.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from podbot.engine.port import Engine
from podbot.errors import BranchNotFound, CloneError, CloneFailed, EmptyRepository, PodbotError
from podbot.events import Emit, Event
from podbot.exec_spec import ExecSpec
from podbot.execution.capture import Feed, Lines, run_fed
from podbot.execution.codes import BY_SIGNAL
from podbot.execution.runner import ExecStatus
from podbot.github.api_answers import without_secrets
from podbot.launch.resources.clone import ClonePlan
from podbot.session.clone_errors import Failure, clone_error
from podbot.streams.wake import Interrupted, Wake
from podbot.visible_text import is_printable, printable

# LC_ALL: git's messages are parsed. Neither git nor ssh, used for a submodule, may prompt: nobody can answer.
ENV = {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_SSH_COMMAND": "ssh -oBatchMode=yes"}
GIT = ("git", "-c", "credential.helper=", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false")
CHECK_SECONDS = 30.0
_SIGINT = 2
_PAUSE = 0.2  # seconds between two progress events
_KEPT_LINES = 40
_MOST_HEADS = 20_000
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|.)?", re.DOTALL)
_PROGRESS = re.compile(r"(?:remote: )?([A-Z][A-Za-z ]{2,40}): +[0-9]{1,3}% \(")
# Reads everything that is checked in one exec: the branch, whether it has a commit, and the remote's URL.
_LOOK = """cd -- "$1" && git symbolic-ref -q HEAD; echo "head $?"
git rev-parse -q --verify 'HEAD^{commit}'; echo "commit $?"
git config --local --get-all remote.origin.url; echo end"""


class _Look(NamedTuple):
    ref: str
    commit: str
    urls: tuple[str, ...]


class Inside(NamedTuple):
    """Where a clone is made: a running container of ``image``, and the wake pipe that can interrupt it.

    ``guest``: the directory of the socket of its guest, if it has one.
    """

    engine: Engine
    container: str
    image: str
    wake: Wake
    guest: str | None = None


def clone_repository(
    inside: Inside, clone: ClonePlan, emit: Emit, *, clock: Callable[[], float] = time.monotonic
) -> str:
    """Clone into ``clone.directory``; returns the branch that is checked out there. ``clock``: for its progress.

    The caller's signal handlers must already post to ``wake``. Raises CloneError subclasses, ContainerError
    subclasses, and Interrupted when a signal arrived.
    """
    inside.wake.check()
    emit(Event("info", "clone.start", f"cloning {clone.repo}", {"repo": clone.repo}))
    errors = _Errors(emit, clock)
    status = _run(inside, clone_command(clone), err=errors.lines)
    errors.lines.end()
    if status.code != 0:
        raise _failed(inside, clone, Failure(status.code, tuple(errors.kept)))
    look = _looked(inside, clone)
    branch = _verified(clone, look)
    text = f"cloned {clone.repo}, branch {branch}, into {clone.directory}"
    fields = {"repo": clone.repo, "branch": branch, "directory": clone.directory, "commit": look.commit}
    # The server decides which branch is the default, so it is reported; a branch that the operator named is not.
    emit(Event("notice" if clone.branch is None else "debug", "clone.done", text, fields))
    return branch


def clone_command(clone: ClonePlan) -> tuple[str, ...]:
    """The argv of ``git clone``: it contains no secret, and no value in it can be taken for an option."""
    words = [*GIT, "clone", "--progress", "--origin=origin"]  # an image may set clone.defaultRemoteName
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
    # The container's own working directory is the one that the clone has yet to create.
    spec = ExecSpec(command=command, workdir="/", env=ENV, stdin=False)
    begun = time.monotonic()
    status = run_fed(
        inside.engine, inside.container, spec, inside.wake, out=out, err=err, seconds=seconds, guest=inside.guest
    )
    if status.signal is not None and (seconds is None or time.monotonic() - begun < seconds):
        raise Interrupted(status.signal)
    if status.code == BY_SIGNAL + _SIGINT:  # the signal was passed on to git and ended it
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
    """The parsed output of :data:`_LOOK`; None when it is incomplete."""
    if not lines or lines[-1] != "end":
        return None
    heads = [at for at, line in enumerate(lines) if re.fullmatch(r"head [0-9]+", line)]
    commits = [at for at, line in enumerate(lines) if re.fullmatch(r"commit [0-9]+", line)]
    if len(heads) != 1 or len(commits) != 1 or heads[0] > commits[0]:
        return None
    ref, commit = lines[: heads[0]], lines[heads[0] + 1 : commits[0]]
    return _Look("".join(ref[:1]), "".join(commit[:1]), tuple(lines[commits[0] + 1 : -1]))


def _verified(clone: ClonePlan, look: _Look) -> str:
    """Check the clone and return its branch: git accepts a tag as a branch, and clones an empty repository silently."""
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
    """The repository's branches, for a more helpful error; None when they cannot be listed."""
    found: list[str] = []

    def take(line: str) -> None:
        name = line.partition("\trefs/heads/")[2]
        if name and is_printable(name) and len(found) < _MOST_HEADS:
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
    """Reads git's stderr: keeps its last lines for an error, and emits its progress as events."""

    def __init__(self, emit: Emit, clock: Callable[[], float]) -> None:
        self.lines = Lines(self._take)
        self._clock = clock
        self.kept: deque[str] = deque(maxlen=_KEPT_LINES)
        self._emit = emit
        self._began = clock()
        self._emitted_at = 0.0
        self._phase = ""

    def _take(self, line: str) -> None:
        text = printable(_ESCAPE.sub("", line), instead="").strip()
        text = without_secrets(text)  # an image may set GIT_TRACE, or make the helper's shell trace its commands
        progress = _PROGRESS.match(text)
        if progress is None:
            if text:
                self.kept.append(text[:400])
            return
        now = self._clock()
        if progress[1] != self._phase or now - self._emitted_at >= _PAUSE:
            self._phase, self._emitted_at = progress[1], now
            shown = text.removeprefix("remote: ")[:100]
            fields = {"phase": progress[1], "elapsed": round(now - self._began, 1), "next": "the session"}
            self._emit(Event("info", "clone.progress", f"cloning: {shown}", fields))
