"""A command to run in a container: what every way to start one is asked for."""

from __future__ import annotations

from collections.abc import Mapping

from podbot.frozen import Frozen, field


class ExecSpec(Frozen):
    """A command to run in a container. ``env`` may contain secrets and is sent only in a request body.

    ``secrets`` names the variables in ``env`` whose values are never shown. If ``stdin`` is false, the command gets
    end of file at once.
    """

    command: tuple[str, ...]
    workdir: str | None = None
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    secrets: frozenset[str] = frozenset()
    tty: bool = False
    stdin: bool = True
    user: str | None = None
