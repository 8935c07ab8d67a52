"""Facts about this machine for Podman: those of any machine, Podman's programs, and its network configuration."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from podbot import machine
from podbot.machine import MachineFacts

INITS = ("catatonit", "tini", "dumb-init")
PROGRAMS = (
    "podman", "conmon", "crun", "runc", "git", "netavark", "aardvark-dns", "nft", "iptables", "slirp4netns", "pasta",
    "fuse-overlayfs", "newuidmap", "newgidmap", "apt-cache", *INITS,
)  # fmt: skip
# Where Podman itself looks for its helpers, beyond PATH: an ordinary user's PATH lacks the sbin directories.
HELPER_DIRECTORIES = (
    "/usr/local/libexec/podman", "/usr/local/lib/podman", "/usr/libexec/podman", "/usr/lib/podman",
    "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class PodmanFacts(MachineFacts):
    """Facts about one machine. ``network_conf``: the table ``[network]`` of the operator's containers.conf files.

    ``conf_chosen``: CONTAINERS_CONF is set, so podbot writes no containers.conf for its service.
    """

    network_conf: Mapping[str, Any] = field(default_factory=dict)
    conf_chosen: bool = False

    @property
    def init(self) -> str:
        """Path of a program that Podman can use as a container's PID 1, or empty."""
        return next((self.programs[name] for name in INITS if name in self.programs), "")


def detect(environ: Mapping[str, str], root: str = "/", uid: int | None = None) -> PodmanFacts:
    """The facts of this machine; ``root`` and ``uid`` as in :func:`podbot.machine.detect`."""
    found = machine.detect(environ, root, uid=uid, programs=PROGRAMS, directories=HELPER_DIRECTORIES)
    known = {entry.name: getattr(found, entry.name) for entry in fields(found)}
    network_conf = _network_conf(environ, root, rootless=found.rootless)
    return PodmanFacts(**known, network_conf=network_conf, conf_chosen=bool(environ.get("CONTAINERS_CONF")))


def _network_conf(environ: Mapping[str, str], root: str, *, rootless: bool) -> Mapping[str, Any]:
    """The table ``[network]`` of the operator's containers.conf files; unreadable files are skipped."""
    import tomllib

    from podbot.engine.podman.private.service import conf_files

    chosen = environ.get("CONTAINERS_CONF")
    names = [chosen] if chosen else conf_files(environ, rootless=rootless, root=root)
    found: dict[str, Any] = {}
    for name in [*names, environ.get("CONTAINERS_CONF_OVERRIDE", "")]:
        if not os.path.isabs(name):
            continue  # never a file in the working directory
        try:
            with open(name, "rb") as file:
                table = tomllib.load(file).get("network")
        except (OSError, ValueError, RecursionError):
            continue  # the service reports an invalid file
        found |= table if isinstance(table, dict) else {}
    return found
