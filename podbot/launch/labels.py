"""The labels that make a container podbot's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podbot.launch.types import Keep

LABEL = "io.podbot"
HISTORY = f"{LABEL}.history"  # the key of the conversations that it mounts; empty when it mounts none
KEEP = f"{LABEL}.keep"  # on the container and not only in the runtime directory, which a reboot empties
MANAGED = f"{LABEL}.managed=true"

_KEEPS: Mapping[Keep, str] = {"always": "true", "never": "false", "when_unsaved": "when_unsaved"}


def keep_label(keep: Keep) -> str:
    """What the label :data:`KEEP` says."""
    return _KEEPS[keep]


def keep_of(labels: Mapping[str, str]) -> Keep:
    """What a container's labels say of its end."""
    return next((keep for keep, text in _KEEPS.items() if labels.get(KEEP) == text), "never")
