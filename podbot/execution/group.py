"""Signalling the process group of a command inside a container.

Closing an exec stream does not end the command (measured). Its process leads a group: on a local engine that
group is signalled from the host, which needs nothing of the engine but answers. An ordinary user may do so too:
the user namespace that rootless Podman made is theirs, with all processes in it, whatever their user ids. Only where
that fails (a remote engine) a shell inside the container does it: an exec, for which the engine writes files, so it
is not to be had when its storage is full.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import time

from podbot.engine.port import Engine, ExecStream
from podbot.errors import ContainerError
from podbot.launch.command import ExecSpec

_ID = re.compile("[0-9a-f]{64}")  # a shorter one could be in any control group's name


def signal_group(engine: Engine, container: str, exec_id: str, number: int) -> bool:
    """Send signal ``number`` to the exec session's whole group. False when nobody could be signalled."""
    try:
        pid = engine.exec_inspect(exec_id).pid
        if pid <= 1:  # group 1 is everybody to the kernel's kill
            return False
        if engine.local and _from_host(engine, container, pid, number):
            return True
        return _from_inside(engine, container, pid, number)
    except (ContainerError, OSError):  # OSError: from the stream of the command that signals
        return False


def is_gone(engine: Engine, container: str, pid: int) -> bool:
    """This host's kernel no longer has process ``pid`` of ``container``. An engine whose storage is full cannot
    write down that a command ended, and calls it running for ever (measured). False when that cannot be told.
    """
    if not engine.local or pid <= 1 or os.path.exists(f"/proc/{pid}"):
        return False
    try:
        found = engine.inspect(container)
        named = bool(_ID.fullmatch(found.id)) and found.id in _read(f"/proc/{found.pid}/cgroup")
        return named or _inner_pid(found.pid) == 1  # otherwise the engine's process numbers are not this host's
    except (ContainerError, OSError):
        return False


def _from_host(engine: Engine, container: str, pid: int, number: int) -> bool:
    """Signal group ``pid`` here, once sure that it is the container's and not a reused number."""
    if not hasattr(os, "pidfd_open"):
        return False
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not _is_the_containers(engine, container, pid):
            return False
        signal.pidfd_send_signal(handle, 0)  # still the process that the handle was opened for
        os.killpg(pid, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _is_the_containers(engine: Engine, container: str, pid: int) -> bool:
    """Process ``pid`` of this host, if there is one, is in ``container``.

    Its control group says so. Where containers have none of their own (rootless on cgroup v1), the engine and this
    host's kernel must agree on its number inside and on that of the container's first process: an engine that has
    other process numbers than we (podbot in a container, with the host's socket) names strangers.
    """
    found = engine.inspect(container)
    if _ID.fullmatch(found.id) and found.id in _read(f"/proc/{pid}/cgroup"):
        return True
    inner = engine.processes(container).get(pid)
    if inner is None or _inner_pid(pid) != inner or _inner_pid(found.pid) != 1:
        return False
    return _namespace(pid) == _namespace(found.pid)


def _namespace(pid: int) -> str:
    return os.readlink(f"/proc/{pid}/ns/pid")


def _inner_pid(pid: int) -> int | None:
    """The number of process ``pid`` in its own namespace; None when that is ours."""
    for line in _read(f"/proc/{pid}/status").splitlines():
        name, *numbers = line.split()
        if name == "NSpid:" and len(numbers) > 1:
            return int(numbers[-1])
    return None


def _read(path: str) -> str:
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read()


def _from_inside(engine: Engine, container: str, pid: int, number: int) -> bool:
    inner = engine.processes(container).get(pid)
    if inner is None:
        return False
    name = signal.Signals(number).name.removeprefix("SIG")
    # The shell's own kill: slim images have no program of that name.
    spec = ExecSpec(command=("sh", "-c", f"kill -{name} -{inner}"), stdin=False, user="0")
    exec_id = engine.exec_create(container, spec)
    stream = engine.exec_start(exec_id, tty=False, size=None)
    with contextlib.closing(stream):
        stream.shut_write()
        _wait_for_end(stream)
    return engine.exec_inspect(exec_id).exit_code == 0  # 127: an image without a shell


def _wait_for_end(stream: ExecStream) -> None:
    """Read a short command's stream to its end, for 2 s at the most."""
    poller = select.poll()
    poller.register(stream.fileno(), select.POLLIN)
    end = time.monotonic() + 2
    while time.monotonic() < end and poller.poll(200):
        with contextlib.suppress(BlockingIOError):
            if not stream.recv(65536):
                return
