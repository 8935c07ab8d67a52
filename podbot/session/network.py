"""A session's network: a separate one where sessions could reach each other over the engine's default network.

Also the notice for a sandbox that resolves names by an engine's public servers, and not by this host's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from podbot.engine.port import ContainerInfo, Engine
from podbot.errors import ContainerError
from podbot.events import Emit, Event
from podbot.launch.names import LABEL
from podbot.launch.types import SandboxPlan

if TYPE_CHECKING:
    from podbot.launch.types import SandboxPlan


# Podman's default servers, which it uses if none of the host's can be reached from a container: a server at a loopback
# address, or with an IPv6 address on a network without IPv6.
PUBLIC = frozenset({"8.8.8.8", "8.8.4.4"})
_HOSTS = ("etc/resolv.conf", "run/systemd/resolve/resolv.conf")  # Podman reads the second one where the first names it
_SIZE = 64 << 10


def isolate(engine: Engine, container: str, plan: SandboxPlan, emit: Emit) -> None:
    """Move ``container``, created but not started, to the session's own network. Raises ContainerError subclasses.

    A network that the operator chose stays. A failure ends the start; otherwise anything that causes failures would
    expose the sessions to each other. Only an engine without isolated networks is used as it is, with a warning.
    """
    if plan.container.network != "default":
        return
    unmet = engine.isolate(container, network_of(plan.session), _labels(plan.session))
    if unmet is not None:
        text = f"sessions on this engine can reach each other: it has no isolated networks ({unmet.got})"
        emit(Event("warning", "network.shared", text, {"session": plan.session, "reason": unmet.got}))


def remove_sandbox(
    engine: Engine, container: str, session: str, *, kill: bool = True, ended: Callable[[], bool] = lambda: False
) -> None:
    """Remove the container of ``session``, then its network. ``kill``: also if it runs.

    ``ended``: ends processes of it that the engine left or could not end, and returns whether there were any. Raises
    ContainerError subclasses.
    """
    try:
        engine.remove(container, kill=kill)
    except ContainerError:
        if not kill or not ended():  # without kill it may run, and is left alone then
            raise
        engine.remove(container, kill=kill)
    else:
        ended()
    remove_network(engine, session)


def remove_network(engine: Engine, session: str) -> None:
    """Remove the network that :func:`isolate` made, unless a container uses it. Raises ContainerError subclasses."""
    engine.remove_network(network_of(session), _labels(session))


def network_of(session: str) -> str:
    """The network's name. It differs from the session's, because the operator may have a network of that name."""
    return f"{session}-net"


def _labels(session: str) -> Mapping[str, str]:
    return {f"{LABEL}.managed": "true", f"{LABEL}.session": session}


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
