"""Runs INSIDE the sandbox, as root: attacks the guest that runs the agent's commands. Stdlib only.

usage: attack_guest.py ATTACK PLACE; how many things it could reach is written into the file PLACE.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import stat
import sys
import time
from collections.abc import Iterator

RAW = b"\x1b]0;e2e-owned\x07\x1b[2Je2e-owned\n"  # what must be seen nowhere
PIDFD_OPEN, PIDFD_GETFD = 434, 438  # the same on every machine


def guest() -> int:
    """The guest's pid."""
    for entry in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{entry}/cmdline", "rb") as file:
            words = file.read().split(b"\0")
            if any(word.endswith(b"/guest.py") for word in words) and b"serve" in b" ".join(words):
                return int(entry)
    raise SystemExit("there is no guest")


def sockets(pid: int) -> Iterator[socket.socket]:
    """Every socket that the guest has open."""
    call = ctypes.CDLL(None, use_errno=True).syscall
    holder = call(PIDFD_OPEN, pid, 0)
    for number in sorted(map(int, os.listdir(f"/proc/{pid}/fd"))):
        fd = call(PIDFD_GETFD, holder, number, 0)
        if fd >= 0 and stat.S_ISSOCK(os.fstat(fd).st_mode):
            yield socket.socket(fileno=fd)


def sent(sock: socket.socket, data: bytes) -> int:
    """How much of it the socket takes now."""
    with contextlib.suppress(OSError):
        return sock.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
    return 0


def flood(found: list[socket.socket]) -> None:
    """Take nothing more, and send credit of 0 bytes without end."""
    for sock in found:
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RD)
    junk = b"\0\0\0\4\x26\0\0\0\2\0\0\0\0" * 5000
    rest = dict.fromkeys(found, junk)
    while True:
        for sock, left in rest.items():
            rest[sock] = left[sent(sock, left) :] or junk


def overwrite(pid: int, place: str) -> None:
    """Write into all of its memory that is its own."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as file:
        areas = [line.split() for line in file]
    try:
        target = os.open(f"/proc/{pid}/mem", os.O_WRONLY)
    except PermissionError:
        report(place, 0)
        return
    report(place, 1)
    for area in areas:
        if area[1].startswith("rw") and (len(area) < 6 or area[5] in ("[heap]", "[stack]")):
            begin, end = (int(number, 16) for number in area[0].split("-"))
            with contextlib.suppress(OSError):
                os.pwrite(target, (RAW * ((end - begin) // len(RAW) + 1))[: end - begin], begin)


def files() -> int:
    """Replace the guest's text and its socket; returns how often that was possible."""
    taken = 0
    for name in ("guest.py", "channel", "new"):
        for flags in (os.O_WRONLY | os.O_TRUNC, os.O_WRONLY | os.O_CREAT):
            with contextlib.suppress(OSError):
                os.write(os.open(f"/run/podbot/guest/{name}", flags), RAW)
                taken += 1
        with contextlib.suppress(OSError):
            os.unlink(f"/run/podbot/guest/{name}")
            taken += 1
    return taken


def report(place: str, reached: int) -> None:
    """Write it at once."""
    with open(f"{place}.new", "w", encoding="ascii") as file:
        file.write(str(reached))
    os.replace(f"{place}.new", place)


def main(attack: str, place: str) -> None:
    """Attack, say so in ``place``, and stay."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    pid = guest()
    if attack == "stop":
        os.kill(pid, signal.SIGSTOP)
        report(place, 1)
    elif attack == "kill":
        report(place, 1)
        os.kill(pid, signal.SIGKILL)
    elif attack == "files":
        report(place, files())
    elif attack == "corrupt":
        report(place, sum(sent(sock, RAW * 100) > 0 for sock in sockets(pid)))
    elif attack == "overwrite":
        overwrite(pid, place)
    else:
        os.kill(pid, signal.SIGSTOP)
        found = list(sockets(pid))
        report(place, len(found))
        flood(found)
    time.sleep(600)


main(*sys.argv[1:])
