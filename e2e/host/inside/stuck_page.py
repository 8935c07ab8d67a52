"""Runs INSIDE the sandbox: writes a page to stdout that its own file system never delivers. Stdlib only.

The kernel copies the page under the lock of the pipe, so any process that uses that pipe waits as well, where no
signal reaches it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import threading
import time
from pathlib import Path

INIT, LOOKUP, GETATTR, OPEN, OPENDIR, READ = 26, 1, 3, 14, 27, 15
UNANSWERED = (2, 36)  # FORGET, INTERRUPT
NEWUSER, NEWNS = 0x10000000, 0x20000
PLACE = "/tmp/stuck"
WANTED = "page-wanted"  # in the working directory; exists once the kernel waits for the page

libc = ctypes.CDLL(None, use_errno=True)


def checked(result: int, what: str) -> None:
    """Print which step failed."""
    if result < 0:
        raise OSError(ctypes.get_errno(), what)


def mounted() -> int:
    """The server's end of a file system in namespaces of our own."""
    uid, gid = os.getuid(), os.getgid()
    os.makedirs(PLACE, exist_ok=True)
    checked(libc.unshare(NEWUSER | NEWNS), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with contextlib.suppress(OSError):  # denied already, in an ordinary user's sandbox
            Path(f"/proc/self/{name}").write_text(text, encoding="ascii")
    fd = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={fd},rootmode=40000,user_id=0,group_id=0".encode()
    checked(libc.mount(b"x", PLACE.encode(), b"fuse", 0, options), "mount")
    return fd


def attributes(node: int) -> bytes:
    """A directory with one file of 64 KiB."""
    mode = 0o40755 if node == 1 else 0o100644
    return struct.pack("<QQQQQQIIIIIIIIII", node, (node == 2) << 16, 128, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def serve(fd: int) -> None:
    """Answer everything except a read."""
    while True:
        request = os.read(fd, 1 << 17)
        _, kind, number, node = struct.unpack_from("<IIQQ", request)
        if kind == READ:
            # Not on stderr: the process that would relay it is the one that waits for the page.
            Path(WANTED).touch()
        elif kind not in UNANSWERED:
            body = answer(kind, node)
            failed = -38 if body is None else 0  # ENOSYS
            os.write(fd, struct.pack("<IiQ", 16 + len(body or b""), failed, number) + (body or b""))


def answer(kind: int, node: int) -> bytes | None:
    """None: there is no such call."""
    if kind == INIT:
        return struct.pack("<IIIIHHIIHHI8I", 7, 31, 65536, 0, 16, 12, 65536, 1, 32, 0, 0, *([0] * 8))[:64]
    if kind == LOOKUP:
        return struct.pack("<QQQQII", 2, 1, 1000, 1000, 0, 0) + attributes(2)
    if kind == GETATTR:
        return struct.pack("<QII", 1000, 0, 0) + attributes(node)
    return struct.pack("<QII", 1, 0, 0) if kind in (OPEN, OPENDIR) else None


def keep_printing() -> None:
    """So that a process reads the pipe at that very moment."""
    while True:
        os.write(1, b"x")


def main() -> None:
    """Never returns."""
    fd = mounted()
    if os.fork() == 0:
        os.setsid()
        serve(fd)
    file = os.open(f"{PLACE}/f", os.O_RDONLY)
    os.close(fd)
    libc.mmap.restype = ctypes.c_void_p
    page = libc.mmap(None, 4096, 1, 2, file, 0)
    threading.Thread(target=keep_printing, daemon=True).start()
    time.sleep(0.5)
    libc.write(1, ctypes.c_void_p(page), 4096)


if __name__ == "__main__":
    main()
