"""The credential families as data: which directory of the home goes where, and what of it stays behind.

The reader inside is hostile, so of a family goes what an agent logs in with and the operator's own
settings. What an agent recorded about *other* projects stays, and so does what it makes again by
itself. The names are those that claude 2.1 and codex 0.169 write (ADR 0011).
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import NamedTuple

HOME = "/root"  # of the sandbox's user

_PAST = "a record of sessions in other projects"
_SETTINGS_OF_OTHERS = "it names other projects, with their settings and keys of tool servers"
_CACHE = "the agent makes it again by itself"
_HOST = "it belongs to processes or programs of this host"


class Family(NamedTuple):
    """``login``: the file at the top of the directory that is the login.

    ``excluded``: a pattern for names at the top of the directory -> why those are not copied.
    """

    name: str
    directory: str
    login: str
    excluded: Mapping[str, str]

    @property
    def target(self) -> str:
        """Where the family lies inside: ``/root/.claude``."""
        return f"{HOME}/{self.directory}"

    def reason_to_exclude(self, name: str) -> str | None:
        """Why ``name``, at the top of the family, is left out; None when it is not."""
        return next((reason for pattern, reason in self.excluded.items() if fnmatchcase(name, pattern)), None)


def _table(rows: Mapping[str, str]) -> Mapping[str, str]:
    return {name: reason for reason, names in rows.items() for name in names.split()}


CLAUDE = Family(
    "claude",
    ".claude",
    ".credentials.json",
    _table(
        {
            _PAST: "projects sessions session-env history.jsonl file-history shell-snapshots todos tasks plans teams "
            "jobs agent-memory paste-cache image-cache uploads downloads traces shares debug dump-prompts feedback "
            "feedback-bundles usage-data",
            # .config.json is the older place of ~/.claude.json, and backups holds whole copies of it.
            _SETTINGS_OF_OTHERS: "backups .config.json*",
            _CACHE: "cache statsig telemetry startup-perf stats-cache.json *-discovery-cache gh-pr-status-cache.json",
            _HOST: "ide chrome local daemon daemon.* remote-control *.lock .last-*",
        }
    ),
)
CODEX = Family(
    "codex",
    ".codex",
    "auth.json",
    _table(
        {
            _PAST: "sessions archived_sessions session_index.jsonl history.jsonl log logs shell_snapshots memories "
            "memories_* attachments generated_images worktrees *.sqlite *.sqlite-*",
            _CACHE: "cache .tmp tmp models_cache.json version.json",
            _HOST: "packages *.lock",
        }
    ),
)
FAMILIES: Mapping[str, Family] = {family.name: family for family in (CLAUDE, CODEX)}
