"""Names and labels by which podbot recognizes its sessions.

A session's name is also that of its container and its runtime directory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from podbot.errors import InvalidValue

if TYPE_CHECKING:
    from podbot.launch.types import Keep

LONGEST = 63  # a container's name becomes its host name, and this is the limit of a DNS label
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*\Z", re.ASCII)
_UNSAFE = re.compile(r"[^a-z0-9]+", re.ASCII)
_SLUG = 40

LABEL = "io.podbot"
HISTORY = f"{LABEL}.history"  # the key of the conversations that it mounts, or empty
KEEP = f"{LABEL}.keep"  # stored on the container, because a reboot empties the runtime directory
RESOURCES = f"{LABEL}.resources"  # the names of the session's resources, in their order, with commas
MANAGED = f"{LABEL}.managed=true"
_KEEPS: Mapping[Keep, str] = {"always": "true", "never": "false", "when_unsaved": "when_unsaved"}


def is_name(text: str) -> bool:
    """Whether the engine accepts ``text`` as a name, and it is safe in a path and a label."""
    return len(text) <= LONGEST and _NAME.match(text) is not None


def slug(text: str) -> str:
    """``text`` as a part of a name: lower case, letters, digits and single dashes, at most 40 characters."""
    return _UNSAFE.sub("-", text.lower())[:_SLUG].strip("-") or "workspace"


def session_name(chosen: str | None, workspace: str, nonce: str) -> str:
    """The chosen name, or one made from the workspace's last component. Raises InvalidValue."""
    if chosen is None:
        return f"podbot-{slug(workspace.rstrip('/').rpartition('/')[2])}-{nonce}"
    if not is_name(chosen):
        raise InvalidValue(
            field="session name",
            origin="flag --name",
            reason=f"{chosen[:80]!r} is not a valid session name",
            hint=f"Use letters, digits, '_', '.' and '-', the first a letter or digit, at most {LONGEST} characters.",
        )
    return chosen


def keep_label(keep: Keep) -> str:
    """The value of the label :data:`KEEP`."""
    return _KEEPS[keep]


def keep_of(labels: Mapping[str, str]) -> Keep:
    """Whether to keep a container, according to its labels."""
    return next((keep for keep, text in _KEEPS.items() if labels.get(KEEP) == text), "never")
