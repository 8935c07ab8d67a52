"""A command to run in a container. A module of its own: it is all of ``launch`` that ``podbot exec`` needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ExecSpec:
    """A command to run in a container. ``env`` may hold secrets: it goes in a request body only.

    ``secrets`` names the variables in ``env`` whose values are never shown. ``stdin`` false: the
    command sees end of file at once.
    """

    command: tuple[str, ...]
    workdir: str | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: frozenset[str] = frozenset()
    tty: bool = False
    stdin: bool = True
    user: str | None = None
