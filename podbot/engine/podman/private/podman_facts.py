"""What this machine offers Podman: the machine's own facts, Podman's programs, and what its configuration says."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from podbot import machine
from podbot.machine import MachineFacts

INITS = ("catatonit", "tini", "dumb-init")
PROGRAMS = (
    "podman", "conmon", "crun", "runc", "netavark", "nft", "iptables", "slirp4netns", "pasta", "fuse-overlayfs",
    "newuidmap", "newgidmap", *INITS,
)  # fmt: skip
# Where Podman itself looks for its helpers, beyond PATH: an ordinary user's PATH lacks the sbin directories.
HELPER_DIRECTORIES = (
    "/usr/local/libexec/podman", "/usr/local/lib/podman", "/usr/libexec/podman", "/usr/lib/podman",
    "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PodmanFacts(MachineFacts):
    """One machine, for Podman. ``network_conf``: what the operator's containers.conf files say in ``[network]``."""

    network_conf: Mapping[str, Any] = field(default_factory=dict)

    @property
    def init(self) -> str:
        """Path of a program that Podman can use as a container's PID 1, or empty."""
        return next((self.programs[name] for name in INITS if name in self.programs), "")


def detect(environ: Mapping[str, str], root: str = "/") -> PodmanFacts:
    """The facts of this machine; ``root`` as in :func:`podbot.machine.detect`."""
    found = machine.detect(environ, root, programs=PROGRAMS, directories=HELPER_DIRECTORIES)
    known = {entry.name: getattr(found, entry.name) for entry in fields(found)}
    return PodmanFacts(**known, network_conf=_network_conf(environ, root, rootless=found.rootless))


def find_programs(environ: Mapping[str, str], root: str = "/") -> dict[str, str]:
    """Name -> path of the programs of :data:`PROGRAMS` that are installed."""
    return machine.find_programs(environ, PROGRAMS, HELPER_DIRECTORIES, root)


def _network_conf(environ: Mapping[str, str], root: str, *, rootless: bool) -> Mapping[str, Any]:
    """The table ``[network]`` of the operator's containers.conf files; of one that cannot be read, nothing."""
    import tomllib

    from podbot.engine.podman.private.service import conf_files

    chosen = environ.get("CONTAINERS_CONF")
    names = [chosen] if chosen else conf_files(environ, rootless=rootless, root=root)
    found: dict[str, Any] = {}
    for name in [*names, environ.get("CONTAINERS_CONF_OVERRIDE", "")]:
        if not os.path.isabs(name):
            continue  # never a file of the working directory's
        try:
            with open(name, "rb") as file:
                table = tomllib.load(file).get("network")
        except (OSError, ValueError, RecursionError):
            continue  # the service refuses one that is not valid
        found |= table if isinstance(table, dict) else {}
    return found
