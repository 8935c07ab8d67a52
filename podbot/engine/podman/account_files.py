"""Finds what a container has in place of the files that Podman and its runtime read before they run something in it.

They open them as whatever they are: at a FIFO the runtime waits for ever, Podman holds the container's lock meanwhile,
and every later command that looks at containers hangs (4.3.1, measured: `podman ps`, and each start of another one).
"""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from typing import Any

from podbot.engine.http import BadResponse, Response
from podbot.frozen import Frozen

_FILES = ("etc/passwd", "etc/group")
_KINDS = {stat.S_IFIFO: "a FIFO", stat.S_IFSOCK: "a socket", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}
_MOST_LINKS = 40
_ROUNDS, _BETWEEN = 50, 0.02  # Podman opens several files one after another: so often they are looked at, and seconds
_PATH = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC if hasattr(os, "O_PATH") else 0
PROC = "/proc"


class AccountFiles(Frozen):
    """Where a container of this machine has them; without any place nothing is known of them.

    ``upper``: the directory with what was written inside. ``lower``: those of the image's own files. ``pid``: of the
    container's first process, 0 if it does not run.
    """

    upper: str = ""
    lower: tuple[str, ...] = ()
    pid: int = 0

    def odd(self) -> str:
        """What is wrong with one of them; empty for nothing, or where it cannot be seen."""
        if self.upper and os.path.islink(os.path.join(self.upper, "etc")):
            return "its /etc is a link"
        layers = [layer for layer in (self.upper, *self.lower) if layer]
        for name in _FILES:
            written = self.upper and os.path.islink(os.path.join(self.upper, name))
            kind = "a link" if written else _kind(layers, name)
            if kind:
                return f"its /{name} is {kind}, and the engine would wait for ever at it"
        return ""

    def release(self, *, proc: str = PROC, sleep: Callable[[float], object] = time.sleep) -> str:
        """Let an engine go on that waits at a FIFO. Returns which one it was, as ``odd`` does; empty if at none.

        Whoever opens a FIFO for writing lets its readers go on, who then read its end.
        """
        found = ""
        for _ in range(_ROUNDS if self.pid else 0):
            for name, file in _open_files(os.path.join(proc, str(self.pid), "root")):
                with contextlib.suppress(OSError):  # ENXIO: nobody waits there
                    os.close(os.open(f"/proc/self/fd/{file}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC))
                    found = f"its /{name} is a FIFO, at which the engine waited"
            sleep(_BETWEEN)
        return found


def account_files(answer: Response) -> AccountFiles:
    """``answer``: to ``GET /containers/{name}/json``, which names the directories of the container's layers."""
    try:
        return _in(answer.json()) if answer.status == 200 else AccountFiles()
    except (BadResponse, AttributeError):
        return AccountFiles()


def _in(found: Any) -> AccountFiles:
    data = (found.get("GraphDriver") or {}).get("Data") or {}
    upper = str(data.get("UpperDir") or data.get("dir") or "")
    lower = tuple(layer for layer in str(data.get("LowerDir") or "").split(":") if layer)
    pid = (found.get("State") or {}).get("Pid")
    return AccountFiles(upper, lower, pid if isinstance(pid, int) and pid > 0 else 0)


def _kind(layers: list[str], name: str) -> str:
    """What the file is, its links followed within the container; empty for a file, and where there is none."""
    here: list[str] = []
    rest, mode, links = name.split("/"), stat.S_IFREG, 0
    while rest:
        part = rest.pop(0)
        if part in ("", "."):
            continue
        if part == "..":
            del here[-1:]
            continue
        mode, leads = _uppermost(layers, [*here, part])
        if not mode:
            return ""
        if not leads:
            here.append(part)
            continue
        links += 1
        if links > _MOST_LINKS:
            return ""  # the engine follows no more either
        here = [] if leads.startswith("/") else here
        rest = [*leads.split("/"), *rest]
    return _KINDS.get(stat.S_IFMT(mode), "")


def _uppermost(layers: list[str], path: list[str]) -> tuple[int, str]:
    """Mode and link of what the container has at a path in which no directory is a link; 0 if there is nothing."""
    for layer in layers:
        with contextlib.suppress(OSError), contextlib.ExitStack() as opened:
            handle = -1
            for part in (layer, *path[:-1]):
                within = None if handle < 0 else handle
                handle = os.open(part, _PATH if handle >= 0 else _PATH & ~os.O_NOFOLLOW, dir_fd=within)
                opened.callback(os.close, handle)
                if not stat.S_ISDIR(os.fstat(handle).st_mode):
                    return 0, ""  # it hides what the layers below have there
            found = os.stat(path[-1], dir_fd=handle, follow_symlinks=False)
            removed = stat.S_ISCHR(found.st_mode) and found.st_rdev == 0
            leads = os.readlink(path[-1], dir_fd=handle) if stat.S_ISLNK(found.st_mode) else ""
            return (0, "") if removed else (found.st_mode, leads)
    return 0, ""


def _open_files(root: str) -> Iterator[tuple[str, int]]:
    """The names and descriptors of those that are FIFOs, below a directory whose content is hostile: by O_PATH."""
    with contextlib.suppress(OSError), contextlib.ExitStack() as opened:

        def place(name: str, within: int | None, flags: int) -> int:
            made = os.open(name, flags, dir_fd=within)
            opened.callback(os.close, made)
            return made

        # The kernel's own link leads into the container; none of the container's is followed.
        top = place(root, None, _PATH & ~os.O_NOFOLLOW | os.O_DIRECTORY)
        etc = place("etc", top, _PATH | os.O_DIRECTORY)
        for name in _FILES:
            with contextlib.suppress(OSError):
                file = place(os.path.basename(name), etc, _PATH)
                if stat.S_ISFIFO(os.fstat(file).st_mode):
                    yield name, file
