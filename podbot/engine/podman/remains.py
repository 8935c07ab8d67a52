"""What Podman (4.3.1) leaves of a container, and does not list, if its service or the monitor is killed.

While it creates one: the container's storage, whose name no container can have then. While it starts one: the monitor,
and a child of that, a process of the OCI runtime's that would become the container's first one and waits to be told so.
Where the monitor was killed: the runtime's record with the control groups. For the network see ``bridges``.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from podbot.engine.podman.leftovers import PROC, delete_record, is_id, runtime_directories
from podbot.engine.podman.mapping import check_removed, refusal
from podbot.engine.podman.request_text import quote
from podbot.engine.podman.rest_answers import seconds

if TYPE_CHECKING:
    from podbot.engine.podman.networks import Call

_MONITOR = b"conmon"
_OWN = 1.0  # seconds for a monitor to end by itself
_LOOK = 0.05
_CREATION = 1.0  # seconds: longer than what is being created has storage, and is not listed


def clear(
    call: Call,
    name: str,
    container: str,
    since: float,
    *,
    on_this_host: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """See ``Engine.clear``. ``on_this_host``: :func:`clear_processes` if the engine's processes are here.

    Storage is removed if it is still there a second later: that of every container is, for a moment, while it is
    created, which takes less than 0.1 s. Raises the errors of ``mapping.refusal``, and one of
    ``rest_answers.MISSHAPEN`` for an unexpected response.
    """
    found = _storage(call, name, container, since)
    if found:
        sleep(_CREATION)
        found = [ident for ident in _storage(call, name, container, since) if ident in found]
    for ident in found:
        response = call("DELETE", f"/containers/{quote(ident)}?force=true")
        if response.status != 404:
            check_removed(response, name)
    on_this_host(container)


def clear_processes(container: str) -> None:
    """End a removed container's monitor, and delete the runtime's record. ``container``: a whole id, or nothing is."""
    end_monitors(container)
    delete_record(container, runtime_directories(os.environ, os.getuid()))


def _storage(call: Call, name: str, container: str, since: float) -> list[str]:
    response = call("GET", "/containers/json?all=true&external=true")
    if response.status >= 300:
        raise refusal("list containers", response)
    return storage(response.json(), name, container, since)


def storage(found: Any, name: str, container: str, since: float) -> list[str]:
    """The ids of the storage of ``container``, and of what is called ``name`` and was created at ``since`` or later.

    ``found``: Podman's answer. The storage of a build is another one.
    """

    def is_meant(item: Mapping[str, Any]) -> bool:
        is_new = seconds(item.get("Created")) + 1 > since  # it may be rounded down
        return item["Id"] == container or (is_new and name in (item.get("Names") or ()))

    left = [item for item in found or () if item.get("State") == "storage" and item.get("Command") == ["storage"]]
    return [item["Id"] for item in left if is_meant(item)]


def end_monitors(container: str, *, seconds: float = _OWN, proc: str = PROC) -> None:
    """Kill the monitor of a removed container (a whole id) and its children, if it does not end in ``seconds``."""
    if not is_id(container):
        return
    until = time.monotonic() + seconds
    while pids := _monitors(container.encode(), proc):
        if time.monotonic() > until:
            for pid in pids:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            return
        time.sleep(_LOOK)


def _monitors(container: bytes, proc: str) -> list[int]:
    pids = [int(name) for name in os.listdir(proc) if name.isdigit()]
    found = [pid for pid in pids if _is_monitor(_read(proc, pid, "cmdline"), container) and _is_own(proc, pid)]
    return found + ([pid for pid in pids if _parent(_read(proc, pid, "stat")) in found] if found else [])


def _is_monitor(command: bytes, container: bytes) -> bool:
    words = command.split(b"\0")
    return os.path.basename(words[0]) == _MONITOR and b"\0-c\0" + container + b"\0" in command


def _is_own(proc: str, pid: int) -> bool:
    """Whether the process runs as this user: any user may name a program so."""
    with contextlib.suppress(OSError):
        return os.stat(os.path.join(proc, str(pid))).st_uid == os.getuid()
    return False


def _parent(stat: bytes) -> int:
    """The pid after the command in brackets, which may contain any byte, and the state; 0 for a process that ended."""
    words = stat.rpartition(b")")[2].split()
    return int(words[1]) if len(words) > 1 else 0


def _read(proc: str, pid: int, name: str) -> bytes:
    with contextlib.suppress(OSError), open(os.path.join(proc, str(pid), name), "rb") as file:
        return file.read()
    return b""
