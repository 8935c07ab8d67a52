"""The guest: runs commands for podbot, inside the sandbox. Started as ``python3 -I -S FILE`` and

``stream [SECONDS]``: with one connection, on stdin and stdout, which may be one socket; the guest ends with it, and its
commands after at most so many seconds between TERM and KILL.
``serve SOCKET``: as a sandbox's main process, to which podbot has already passed the socket: see ``socket_handover``.
``serve-or-end SOCKET``: the same, but the sandbox ends if no podbot passes the socket; with ``serve`` it keeps running.
"""

from __future__ import annotations

import os
import sys

from podbot.guest import frames
from podbot.guest.inside import processes, socket_handover
from podbot.guest.inside.connection import Connection
from podbot.guest.inside.guest import Guest
from podbot.guest.inside.server import Server


def keep_to_itself() -> None:
    """Prevent commands from inheriting descriptors other than stdin, stdout and stderr."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            processes.quietly(os.set_inheritable, int(name), False)


def serve_stream(most: float | None) -> None:
    """Serve one connection on stdin and stdout, and end with it. ``most``: see :meth:`Guest.end`."""
    keep_to_itself()
    source, target = os.dup(0), os.dup(1)
    same = os.path.sameopenfile(0, 1)
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    guest = Guest()
    if same:
        os.close(target)
        target = source
    Connection(guest, source, target, lambda _: guest.end(most))
    guest.loop.run()


def serve_socket() -> None:
    """Serve connections on the socket that podbot has handed over, until the sandbox ends."""
    keep_to_itself()
    guest = Guest()
    Server(guest)
    guest.loop.run()


def stay() -> None:
    """After an error: remain the sandbox's main process, so that it keeps running, but serve no connections."""
    if socket_handover.said == [frames.LEASED]:
        owner = socket_handover.taken[0]
        owner.setblocking(True)
        os.dup2(owner.fileno(), 0)
        processes.quietly(os.execvp, "cat", ["cat"])  # which ends when podbot does: then the connection is closed
    os.execvp("sleep", ["sleep", "infinity"])  # noqa: S606


def main(words: list[str]) -> int:
    """Returns the exit status."""
    if words[:1] == ["stream"] and len(words) <= 2:
        serve_stream(float(words[1]) if words[1:] else None)
        return 0
    if words[:1] in (["serve"], ["serve-or-end"]) and len(words) == 2:
        try:
            serve_socket()
        except BaseException:  # noqa: BLE001 - no error may end the sandbox
            stay()
        return 0
    sys.stderr.write("usage: guest.py stream [SECONDS] | serve SOCKET | serve-or-end SOCKET\n")
    return 2
