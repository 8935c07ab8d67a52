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
_SHORTEST_NONCE = 4  # digits of it that tell sessions on one directory apart
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
    return _slug(text) or "workspace"


def _slug(text: str) -> str:
    """As :func:`slug`, but empty for a text without a letter or digit, such as ``.``, which names no directory."""
    return _UNSAFE.sub("-", text.lower())[:_SLUG].strip("-")


def session_name(chosen: str | None, workspace: str, nonce: str, origin: str) -> str:
    """The name chosen in ``origin``, or one made from the workspace's last component. Raises InvalidValue."""
    if chosen is None:
        return f"{_MADE}{slug(workspace.rstrip('/').rpartition('/')[2])}-{nonce}"
    if not is_name(chosen):
        from podbot.config.checks import shown

        raise InvalidValue(
            field="session name",
            origin=origin,
            reason=f"{shown(chosen, 80)} is not a valid session name",
            hint=f"Use letters, digits, '_', '.' and '-', the first a letter or digit, at most {LONGEST} characters.",
        )
    return chosen


def names_meant(given: str, names: Iterable[str]) -> list[str]:
    """Those of ``names`` that ``given`` can mean, in their order. If there are several, the operator has to say more.

    A whole name counts first, and then every name that :func:`can_mean` finds.
    """
    found = [name for name in names if can_mean(given, name)]
    return [given] if given in found else found


def can_mean(given: str, name: str) -> bool:
    """Whether ``given`` is the beginning of ``name``, or the directory in a name that podbot made.

    Only the whole directory: with a part of it, ``podbot rm --force ci`` would remove the session on ``cinema``. Behind
    it, a dash and at least four digits of what follows choose among several sessions there: fewer could be the end of
    another directory's name, ``shop-2``.
    """
    if not given:
        return False
    directory, nonce = _made_of(name)
    # What each name of podbot's begins with is no choice among them: `podbot rm podbot` is about a directory podbot.
    if name.startswith(given) and not (directory and _MADE.startswith(given)):
        return True
    begin, _, digits = given.rpartition("-")
    return _is_directory(given, directory) or (
        len(digits) >= _SHORTEST_NONCE and nonce.startswith(digits) and _is_directory(begin, directory)
    )


def _is_directory(given: str, directory: str) -> bool:
    """Whether a directory called ``given`` is called ``directory`` in a name that podbot makes."""
    return directory != "" and "/" not in given and _slug(given) == directory


def _made_of(name: str) -> tuple[str, str]:
    """The directory and the digits in a name that podbot made; both are empty for one that the operator chose."""
    start, _, nonce = name.rpartition("-")
    made = start.startswith(_MADE) and len(nonce) == _NONCE and _HEXADECIMAL.issuperset(nonce)
    return (start.removeprefix(_MADE), nonce) if made else ("", "")


def keep_label(keep: Keep) -> str:
    """The value of the label :data:`KEEP`."""
    return _KEEPS[keep]


def keep_of(labels: Mapping[str, str]) -> Keep:
    """Whether to keep a container, according to its labels."""
    return next((keep for keep, text in _KEEPS.items() if labels.get(KEEP) == text), "never")
