"""Facts about this machine for Podman: those of any machine, Podman's programs, and its network configuration."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
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


def conf_files(environ: Mapping[str, str], *, rootless: bool, root: str = "/") -> list[str]:
    """The files that CONTAINERS_CONF replaces, lowest priority first, as Podman reads them."""
    bases = [os.path.join(root, "usr/share/containers"), os.path.join(root, "etc/containers")]
    if rootless:
        home = environ.get("HOME", "")
        bases.append(os.path.join(environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "containers"))
    bases = [base for base in bases if os.path.isabs(base)]  # never a file in the working directory
    found: list[str] = []
    for base in bases:
        main = os.path.join(base, "containers.conf")
        found.append(main)
        found += sorted(os.path.join(main + ".d", name) for name in _listdir(main + ".d") if name.endswith(".conf"))
    return [name for name in found if os.path.isfile(name)]


def _listdir(path: str) -> Iterable[str]:
    try:
        return os.listdir(path)
    except OSError:
        return ()
