"""What a workspace is made from."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Mapping, Sequence

from podbot.frozen import Frozen, field, refuse_text
from podbot.sections.host_mounts import HostMount, checked_mounts
from podbot.tools.paths import invalid

LONGEST = 30 * 86400  # seconds of a time limit
_IDENT = re.compile(r"[a-z0-9][a-z0-9-]{0,47}\Z")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


class WorkspaceSettings(Frozen):
    """``mounts``: copied into the workspace before its first use; ``allowed_host_roots``: directories below which they
    lie.

    ``environment``: variables of its commands, besides PYTHONDONTWRITEBYTECODE=1; no place for secrets, since the
    engine shows them. ``image``, ``memory`` (bytes, or a number and a unit as in ``sandbox.memory``), ``cpus`` (cores)
    and ``pids`` (processes and threads) are for Podman only; without an ``image`` it is the configured one.
    ``idle_seconds``: after so long without a call and without a running job the container is removed; the files stay,
    and the next call starts another one. ``uptime_seconds``: after so long the container is removed in any case.
    Raises ToolValidationError.
    """

    mounts: Sequence[HostMount] = ()
    allowed_host_roots: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    image: str | None = None
    memory: str = "1g"
    cpus: float = 1.0
    pids: int = 512
    idle_seconds: float | None = None
    uptime_seconds: float | None = None

    def resolved_mounts(self) -> tuple[tuple[HostMount, ...], tuple[str, ...]]:
        """The mounts and the roots, without links in the roots and in what leads to them."""
        roots = [(os.path.abspath(root), os.path.realpath(root)) for root in self.allowed_host_roots]
        return tuple(_below(mount, roots) for mount in self.mounts), tuple(real for _, real in roots)

    def __post_init__(self) -> None:
        checked_mounts(self.mounts)
        check_roots("WorkspaceSettings()", self.allowed_host_roots)
        for name, value in self.environment.items():
            if not _NAME.match(name) or "\0" in value:
                raise invalid("environment", name, "a variable has a name of letters, digits and _, and no NUL in it")
        for field_name in ("idle_seconds", "uptime_seconds"):
            seconds = getattr(self, field_name)
            if seconds is not None and not 0 < seconds <= LONGEST:
                raise invalid(field_name, seconds, f"it is a number of seconds above 0, at most {LONGEST}")


def _below(mount: HostMount, roots: Sequence[tuple[str, str]]) -> HostMount:
    """The mount, whose absolute path may begin with a root as it was given."""
    for given, real in roots:
        if mount.host_path == given or mount.host_path.startswith(f"{given.rstrip('/')}/"):
            return dataclasses.replace(mount, host_path=real + mount.host_path[len(given) :])
    return mount


def check_roots(call: str, roots: object) -> None:
    """Raise TypeError if ``roots`` is one path, in place of a list of them. ``call``: who takes them."""
    refuse_text(call, "allowed_host_roots", os.fspath(roots) if isinstance(roots, os.PathLike) else roots)


def is_ident(text: str) -> bool:
    """Whether ``text`` can name a workspace."""
    return _IDENT.match(text) is not None


def checked_ident(ident: str) -> str:
    """``ident``, which names a workspace's directory and container. Raises ToolValidationError."""
    if not is_ident(ident):
        raise invalid("ident", ident, "it has 1 to 48 of the characters a-z, 0-9 and -, and begins with no -")
    return ident
