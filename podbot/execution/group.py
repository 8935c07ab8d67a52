"""Signalling the process group of a command inside a container.

Closing an exec stream does not end the command (measured). Its process leads a group: on a local
engine that group is signalled from the host when the kernel lets us; otherwise (rootless sub-uids,
a remote engine) by a shell inside the container.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time

from podbot.engine.port import Engine, ExecStream
from podbot.errors import ContainerError
from podbot.launch.command import ExecSpec


def signal_group(engine: Engine, container: str, exec_id: str, number: int) -> bool:
    """Send signal ``number`` to the exec session's whole group. False when nobody could be signalled."""
    try:
        pid = engine.exec_inspect(exec_id).pid
        if pid <= 0:
            return False
        if engine.local and _from_host(pid, engine.inspect(container).id, number):
            return True
        return _from_inside(engine, container, pid, number)
    except (ContainerError, OSError):  # OSError: from the stream of the command that signals
        return False


def _from_host(pid: int, container_id: str, number: int) -> bool:
    """Signal group ``pid`` here, once sure that it is the container's and not a reused number."""
    if not hasattr(os, "pidfd_open"):
        return False
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        with open(f"/proc/{pid}/cgroup", encoding="ascii", errors="replace") as file:
            if container_id not in file.read():
                return False
        signal.pidfd_send_signal(handle, 0)  # still the process that the handle was opened for
        os.killpg(pid, number)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


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
