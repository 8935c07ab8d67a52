"""The labels by which podbot recognizes its containers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podbot.launch.types import Keep

LABEL = "io.podbot"
HISTORY = f"{LABEL}.history"  # the key of the conversations that it mounts, or empty
KEEP = f"{LABEL}.keep"  # stored on the container, because a reboot empties the runtime directory
RESOURCES = f"{LABEL}.resources"  # the names of the session's resources, in their order, with commas
MANAGED = f"{LABEL}.managed=true"

_KEEPS: Mapping[Keep, str] = {"always": "true", "never": "false", "when_unsaved": "when_unsaved"}


def keep_label(keep: Keep) -> str:
    """The value of the label :data:`KEEP`."""
    return _KEEPS[keep]


def keep_of(labels: Mapping[str, str]) -> Keep:
    """Whether to keep a container, according to its labels."""
    return next((keep for keep, text in _KEEPS.items() if labels.get(KEEP) == text), "never")
