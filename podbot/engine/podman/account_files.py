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
            kind = next(filter(None, (_kind(layer, name, own=layer == self.upper) for layer in layers)), "")
            if kind not in ("", "a file"):
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


def _kind(layer: str, name: str, *, own: bool) -> str:
    """Empty if the layer does not have the file. A link of the image's is not followed, and not judged."""
    try:
        found = os.lstat(os.path.join(layer, name))
    except OSError:
        return ""
    if stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
        return "a file"  # it was removed
    if stat.S_ISLNK(found.st_mode):
        return "a link" if own else "a file"
    return _KINDS.get(stat.S_IFMT(found.st_mode), "a file")


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
