"""Finds unsaved work in a clone's container by running git inside, in one command, bounded in time and memory.

The agent controls the answers, so a hostile one can hide work. To prevent accidents, every doubt counts as unsaved
work: a command that fails, an answer that is late or incomplete, a container that is gone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from podbot.engine.port import Engine
from podbot.errors import PodbotError
from podbot.exec_spec import ExecSpec
from podbot.execution.capture import Lines, run_fed
from podbot.execution.time_limits import TIME_LIMITS, TimeLimits
from podbot.streams.wake import Wake
from podbot.visible_text import printable

SECONDS = 10.0
_NAMED = 3  # names of each kind that a notice shows
_LONGEST_NAME = 60

# $1: the clone, $2: when the session began. Options on the command line override settings that hide work. Commits
# reachable only from a tag, and those of submodules, count if they are newer than the session: a clone may contain
# older ones that are on no branch of the server. Only `origin` counts as a server: another remote may be a directory
# in the sandbox, which is removed with it. A push from a single-branch clone creates no remote-tracking branch, so
# commits that look unpushed are compared with the server's branches if the server answers. `set -e` is not used,
# because each step checks its own status.
SCRIPT = r"""
cd -- "$1" || exit 9
since=$2
g() { git -c core.fsmonitor=false -c core.quotePath=true -c status.relativePaths=false -c core.abbrev=10 "$@"; }
part() { echo "= $1"; shift; "$@" || exit 9; }
unfinished() {
  d=$(git rev-parse --git-dir) || return 1
  for f in MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD BISECT_LOG rebase-merge rebase-apply sequencer; do
    [ ! -e "$d/$f" ] || echo "$f"
  done
}
unpushed() {
  local_only=$(g rev-list --oneline --max-count=1 HEAD --branches --not --remotes=origin --) || return 1
  [ -n "$local_only" ] || return 0
  if heads=$(git ls-remote --heads origin 2>/dev/null); then
    echo "$heads" | while read -r id _; do [ -z "$id" ] || echo "^$id"; done |
      g rev-list --oneline --ignore-missing --stdin HEAD --branches --not --remotes=origin
  else
    g rev-list --oneline HEAD --branches --not --remotes=origin --
  fi
}
submodules() {
  [ -f .gitmodules ] || return 0
  PODBOT_SINCE=$since git submodule foreach --quiet --recursive '
    git rev-list --oneline --since="$PODBOT_SINCE" HEAD --branches --not --remotes=origin -- && git stash list'
}
part changes g status --porcelain=v1 --untracked-files=normal --ignore-submodules=none --no-renames
part stashes git stash list
part commits unpushed
part tags g rev-list --oneline --since="$since" --tags --not --remotes=origin --branches HEAD --
part unfinished unfinished
part worktrees git worktree list --porcelain
part submodules submodules
echo "= end"
"""
PARTS = ("changes", "stashes", "commits", "tags", "unfinished", "worktrees", "submodules")
_WORDS: Mapping[str, tuple[str, str]] = {
    "staged": ("staged change", "staged changes"),
    "changed": ("uncommitted change", "uncommitted changes"),
    "untracked": ("untracked file", "untracked files"),
    "stashes": ("stash", "stashes"),
    "commits": ("unpushed commit", "unpushed commits"),
    "tags": ("unpushed commit of a tag", "unpushed commits of tags"),
    "unfinished": ("unfinished operation", "unfinished operations"),
    "worktrees": ("more worktree", "more worktrees"),
    "submodules": ("unpushed commit or stash in a submodule", "unpushed commits or stashes in submodules"),
}


@dataclass(frozen=True)
class Unsaved:
    """Work that exists only in the container. ``counts``: number for each kind; ``names``: the first few of each kind.

    ``doubt``: why the search is incomplete; empty when it is complete.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    doubt: str = ""

    def __bool__(self) -> bool:
        return bool(self.doubt or self.counts)

    def __str__(self) -> str:
        """One line; the repository and the agent control the names in it."""
        parts = [self._described(kind, count) for kind, count in self.counts.items()]
        if self.doubt:
            parts.append(f"perhaps {'more ' * bool(parts)}unsaved work: {self.doubt}")
        return "; ".join(parts)

    def _described(self, kind: str, count: int) -> str:
        names = self.names.get(kind, ())
        shown = f" ({', '.join(names)}{', …' * (count > len(names))})" if names else ""
        return f"{count} {_WORDS[kind][count != 1]}{shown}"


class Examination:
    """Parses the script's output line by line, in bounded memory. Pure."""

    def __init__(self) -> None:
        self._part = ""
        self._parts: list[str] = []
        self._counts: dict[str, int] = {}
        self._names: dict[str, list[str]] = {}

    def take(self, line: str) -> None:
        """One line, without its end."""
        if line.startswith("= "):
            self._part = line[2:]
            self._parts = [*self._parts, self._part][-len(PARTS) - 2 :]
        elif self._part == "changes":
            self._change(line)
        elif self._part == "worktrees":
            if line.startswith("worktree "):
                self._count("worktrees", line.removeprefix("worktree "))
        elif self._part in _WORDS:
            self._count(self._part, line)

    def result(self, *, whole: bool) -> Unsaved:
        """``whole``: the script succeeded in time."""
        counts = dict(self._counts)
        names = {kind: tuple(found) for kind, found in self._names.items()}
        # The first worktree is the clone itself.
        worktrees = counts.pop("worktrees", 0) - 1
        if worktrees > 0:
            counts["worktrees"] = worktrees
        names["worktrees"] = names.get("worktrees", ())[1:]
        seen = self._parts == [*PARTS, "end"] and worktrees >= 0
        return Unsaved(counts, names, "" if whole and seen else "git's report was incomplete")

    def _change(self, line: str) -> None:
        """``XY name`` of git-status: X is the index, Y the working tree."""
        kind = "untracked" if line.startswith("??") else "changed" if line[1:2].strip() else "staged"
        self._count(kind, line[3:])

    def _count(self, kind: str, name: str) -> None:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        names = self._names.setdefault(kind, [])
        # One worktree more than is shown, because the first one is the clone itself.
        if len(names) < _NAMED + (kind == "worktrees"):
            names.append(_short(name))


def examine(
    engine: Engine,
    container: str,
    directory: str,
    since: str,
    *,
    guest: str | None = None,
    seconds: float = SECONDS,
    limits: TimeLimits = TIME_LIMITS,
) -> Unsaved:
    """The unsaved work in the clone in ``directory`` of a running container; false when there is none.

    ``since``: when the session began, ISO 8601. ``guest``, ``limits``: see ``run_exec``. Never raises PodbotError: any
    failure becomes a doubt.
    """
    wake = Wake()  # a separate one: only the deadline ends this, not a second Ctrl-C, which would count as a doubt
    found = Examination()
    lines = Lines(found.take)
    spec = ExecSpec(
        command=("sh", "-c", SCRIPT, "podbot-examine", directory, since),
        workdir="/",
        env={"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"},
        stdin=False,
    )
    try:
        status = run_fed(engine, container, spec, wake, out=lines, seconds=seconds, guest=guest, limits=limits)
    except PodbotError as exc:
        return Unsaved(doubt=f"it could not be examined ({exc.message[:200]})")
    finally:
        wake.close()
    lines.end()
    if status.signal is not None:
        result = found.result(whole=False)
        return Unsaved(result.counts, result.names, f"git took longer than {seconds:g} s")
    return found.result(whole=status.code == 0)


def since_of(labels: Mapping[str, str], created: float) -> str:
    """When a container's session began, in git's date format: from its label in whole seconds, else from the engine."""
    label = re.fullmatch(r"([0-9T:-]{19})(?:\.[0-9]{6})?Z", labels.get("io.podbot.created", ""))
    return f"{label[1]}Z" if label else f"@{int(created)}"


def _short(name: str) -> str:
    name = printable(name[: _LONGEST_NAME + 1], instead="?")
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"
