"""Names: of a session (its container and its runtime directory) and of networks."""

from __future__ import annotations

import re

from podbot.errors import InvalidValue

LONGEST = 63  # a container's name is also its host name's source, and a DNS label ends there
_NAME = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9_.-]*\Z", re.ASCII)
_UNSAFE = re.compile(r"[^a-z0-9]+", re.ASCII)
_SLUG = 40


def is_name(text: str) -> bool:
    """Whether the engine takes ``text`` as a name, and a path and a label can carry it."""
    return len(text) <= LONGEST and _NAME.match(text) is not None


def slug(text: str) -> str:
    """``text`` as a part of a name: lower case, letters, digits and single dashes, at most 40 characters."""
    return _UNSAFE.sub("-", text.lower())[:_SLUG].strip("-") or "workspace"


def session_name(chosen: str | None, workspace: str, nonce: str) -> str:
    """The name that was chosen, or one made of the workspace's last component. Raises InvalidValue."""
    if chosen is None:
        return f"podbot-{slug(workspace.rstrip('/').rpartition('/')[2])}-{nonce}"
    if not is_name(chosen):
        raise InvalidValue(
            field="session name",
            origin="flag --name",
            reason=f"{chosen[:80]!r} is not a name that the engine takes",
            hint=f"Letters, digits, '_', '.' and '-', the first a letter or digit, at most {LONGEST} characters.",
        )
    return chosen
