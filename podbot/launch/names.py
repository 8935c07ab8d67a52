"""Names and labels by which podbot recognizes its sessions.

A session's name is also that of its container and its runtime directory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from podbot.errors import InvalidValue

if TYPE_CHECKING:
    from podbot.launch.types import Keep

LONGEST = 63  # a container's name becomes its host name, and this is the limit of a DNS label
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*\Z", re.ASCII)
_UNSAFE = re.compile(r"[^a-z0-9]+", re.ASCII)
_SLUG = 40
_MADE = "podbot-"  # with it begin the names that podbot makes: podbot-SLUG-NONCE
_NONCE = 6
_HEXADECIMAL = frozenset("0123456789abcdef")

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


def session_name(chosen: str | None, workspace: str, nonce: str, origin: str) -> str:
    """The name chosen in ``origin``, or one made from the workspace's last component. Raises InvalidValue."""
    if chosen is None:
        return f"{_MADE}{slug(workspace.rstrip('/').rpartition('/')[2])}-{nonce}"
    if not is_name(chosen):
        raise InvalidValue(
            field="session name",
            origin=origin,
            reason=f"{chosen[:80]!r} is not a valid session name",
            hint=f"Use letters, digits, '_', '.' and '-', the first a letter or digit, at most {LONGEST} characters.",
        )
    return chosen


def names_meant(given: str, names: Iterable[str]) -> list[str]:
    """Those of ``names`` that ``given`` can mean, in their order. If there are several, the operator has to say more.

    A whole name counts first, then every name that it :func:`begins`. Where it is the whole name of a workspace's
    directory, ``shop``, podbot's names for longer ones are not meant, ``podbot-shop-api-1a2b3c``.
    """
    found = [name for name in names if begins(given, name)]
    if given in found:
        return [given]
    whole = [name for name in found if _workspace_in(name) == given]
    return [name for name in found if name in whole or name.startswith(given)] if whole else found


def begins(given: str, name: str) -> bool:
    """Whether ``given`` is the beginning of ``name``, or of what follows ``podbot-`` in a name that podbot made."""
    return given != "" and (
        name.startswith(given) or (bool(_workspace_in(name)) and name.startswith(given, len(_MADE)))
    )


def _workspace_in(name: str) -> str:
    """The workspace's part of a name that podbot made; empty for one that the operator chose."""
    start, dash, nonce = name.rpartition("-")
    made = dash and start.startswith(_MADE) and len(nonce) == _NONCE and _HEXADECIMAL.issuperset(nonce)
    return start.removeprefix(_MADE) if made else ""


def keep_label(keep: Keep) -> str:
    """The value of the label :data:`KEEP`."""
    return _KEEPS[keep]


def keep_of(labels: Mapping[str, str]) -> Keep:
    """Whether to keep a container, according to its labels."""
    return next((keep for keep, text in _KEEPS.items() if labels.get(KEEP) == text), "never")
