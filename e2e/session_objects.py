"""What a session has beside its container and its files: network namespaces, interfaces, the process of its gateway.

Also what the engine and its runtime have of a container that the engine does not list.
"""

from __future__ import annotations

import contextlib
import glob
import json
import os
from urllib.parse import urlencode

from e2e.harness import World, processes
from e2e.listing import asked_of_service

GATEWAY = "gateway_process.py"


class SessionObjects:
    """Those that a session was seen with.

    A name alone does not identify them, because the engine gives ``podman1`` to another session later: an interface
    counts by its index, which the kernel never uses again, and a process by when it was started.
    """

    def __init__(self, world: World, session: str) -> None:
        self._world, self._session = world, session
        self._namespaces: set[str] = set()
        self._interfaces: set[int] = set()
        self._gateways: set[tuple[int, str]] = set()

    def look(self, owner: int) -> None:
        """Note those that are there now. ``owner``: the process that started the session."""
        socket = self._world.service_socket
        found = asked_of_service(socket, f"containers/{self._session}/json")
        if isinstance(found, dict) and (namespace := found["NetworkSettings"].get("SandboxKey")):
            self._namespaces.add(namespace)
        for entry in networks(self._world, self._session):
            bridge = entry.get("network_interface", "")
            members = glob.glob(f"/sys/class/net/{bridge}/brif/*")
            self._interfaces |= {_index(name) for name in (bridge, *map(os.path.basename, members))} - {0}
        self._gateways |= {
            (pid, since)
            for pid, since in _gateways()
            if stat_fields(pid)[1:2] == [str(owner)] or _has_open(pid, self._session)
        }

    def gateway(self) -> int:
        """The pid of its gateway; 0 if none was seen or it has ended."""
        return next((pid for pid, since in self._gateways if _since(pid) == since), 0)

    def left(self) -> list[str]:
        """Those that were seen and are still there, in words."""
        found = [f"network namespace {path}" for path in self._namespaces if os.path.lexists(path)]
        here = {_index(name): name for name in os.listdir("/sys/class/net")}
        found += [f"network interface {here[index]}" for index in self._interfaces & here.keys()]
        if pid := self.gateway():
            found.append(f"gateway {pid}")
        return found


def unlisted(world: World, session: str, container: str) -> list[str]:
    """What is there, in words, of a container that the engine does not list. ``container``: its id, or empty."""
    found = asked_of_service(world.service_socket, "containers/json?all=true&external=true")
    listed = (
        found
        if isinstance(found, list)
        else json.loads(world.podman("ps", "--all", "--external", "--format", "json").stdout or "[]")
    )
    left = [f"storage {item['Id']}" for item in listed if session in (item.get("Names") or ())]
    if not container:
        return left
    left += [f"control group {path}" for path, _, _ in os.walk("/sys/fs/cgroup") if container in os.path.basename(path)]
    base = "/run" if os.getuid() == 0 else world.env["XDG_RUNTIME_DIR"]
    places = (os.path.join(base, runtime, container) for runtime in ("runc", "crun"))
    return left + [f"record {path}" for path in places if os.path.lexists(path)]


def networks(world: World, session: str) -> list[dict[str, str]]:
    """The engine's entries for the networks of a session."""
    query = urlencode({"filters": json.dumps({"label": [f"io.podbot.session={session}"]})})
    found = asked_of_service(world.service_socket, f"networks/json?{query}")
    if isinstance(found, list):
        return found
    listed = world.podman("network", "ls", "--format", "json", "--filter", f"label=io.podbot.session={session}")
    return list(json.loads(listed.stdout or "[]") or [])


def _gateways() -> list[tuple[int, str]]:
    return [(pid, _since(pid)) for pid, line in processes() if GATEWAY in line]


def _has_open(pid: int, session: str) -> bool:
    """Whether the process has a file of the session open, as a gateway has its log."""
    with contextlib.suppress(OSError):
        base = f"/proc/{pid}/fd"
        return any(session in os.readlink(f"{base}/{name}") for name in os.listdir(base))
    return False


def _index(name: str) -> int:
    """The index of a network interface; 0 if it is gone."""
    with contextlib.suppress(OSError, ValueError), open(f"/sys/class/net/{name}/ifindex", encoding="ascii") as file:
        return int(file.read())
    return 0


def stat_fields(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the third on, behind the name: the state, the parent, …; empty if it has ended."""
    with contextlib.suppress(OSError, IndexError), open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(")", 1)[1].split()
        return [] if fields[0] == "Z" else fields
    return []


def _since(pid: int) -> str:
    return "".join(stat_fields(pid)[19:20])
