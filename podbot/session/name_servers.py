"""The notice for a sandbox that resolves names by an engine's public servers, and not by this host's."""

from __future__ import annotations

import os

from podbot.engine.port import ContainerInfo
from podbot.events import Event
from podbot.launch.types import SandboxPlan

# Podman's default servers, which it uses if none of the host's can be reached from a container: a server at a loopback
# address, or with an IPv6 address on a network without IPv6.
PUBLIC = frozenset({"8.8.8.8", "8.8.4.4"})
_HOSTS = ("etc/resolv.conf", "run/systemd/resolve/resolv.conf")  # Podman reads the second one where the first names it
_SIZE = 64 << 10


def public_servers(plan: SandboxPlan, found: ContainerInfo, root: str = "/") -> Event | None:
    """A notice if the container has Podman's default servers although the host has other ones.

    ``root``: of this host's files.
    """
    if plan.container.network != "default" or not servers(found.resolv_conf) >= PUBLIC:
        return None
    ours = set[str]().union(*(servers(os.path.join(root, name)) for name in _HOSTS))
    if ours >= PUBLIC:
        return None
    named = f" ({', '.join(sorted(ours))})" if ours else ""
    text = (
        f"names inside are resolved by 8.8.8.8 and 8.8.4.4, not by this host's servers{named}: Podman uses public ones"
    )
    text += " where a container cannot reach the host's. Other servers: `dns_servers` in the table [containers] of"
    text += " containers.conf; or `--network filtered`, where this host resolves the names"
    return Event("notice", "network.public_servers", text, {"session": plan.session, "host": sorted(ours)})


def servers(path: str) -> set[str]:
    """The name servers of a resolv.conf file; none if it cannot be read. A sandbox can have changed its own one."""
    if not path:
        return set()
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:
            text = file.read(_SIZE).decode("utf-8", "replace")
    except OSError:
        return set()
    lines = (line.split() for line in text.splitlines())
    return {words[1] for words in lines if len(words) > 1 and words[0] == "nameserver"}
