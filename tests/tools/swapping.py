"""A process that swaps directories with links that lead outside, while a test uses the same paths by the tools.

It has no podbot: ``e2e`` runs its text inside a sandbox. A round is five swaps. It says "ready" before the first round
and "enough" after the last one that was asked for, and goes on until its stdin ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from podbot.errors import FileRefused
from podbot.tools.files import Files, How

PATHS = (("d", "file"), ("d", "e", "file"), ("file",), ("spare", "file"), ("to-directory", "file"))
# It keeps to descriptors itself, so that it never moves or writes what is outside.
HOW: tuple[How, ...] = ("overwrite", "append", "replace", "create")
SWAPPER = r"""
import ctypes, os, sys
root, outside, rounds = *sys.argv[1:3], int(sys.argv[3])
libc = ctypes.CDLL(None, use_errno=True)
top = os.open(root, os.O_RDONLY)
def exchange(one, other):  # in one step: each name is always there
    libc.renameat2(one[0], one[1].encode(), other[0], other[1].encode(), 2)
def directory(fd, name):
    try: os.mkdir(name, dir_fd=fd)
    except OSError: pass
    try: return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=fd)
    except OSError: return -1
def fill(fd):
    try:
        file = os.open("file", os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW, 0o644, dir_fd=fd)
        os.write(file, b"mine\n")
        os.close(file)
    except OSError: pass
def fill_all():
    fill(top)
    real = -1
    for name, target in (("to-directory", outside), ("to-file", outside + "/file"), ("to-inner", outside + "/e")):
        try: os.symlink(target, name, dir_fd=top)
        except OSError: pass
    for name in ("d", "spare", "to-directory"):
        fd = directory(top, name)
        if fd >= 0:
            fill(fd)
            inner = directory(fd, "e")
            if inner >= 0:
                fill(inner)
                os.close(inner)
            if real >= 0: os.close(real)
            real = fd
    return real
real = fill_all()
print("ready", flush=True)
os.set_blocking(0, False)
number = 0
while True:
    number += 1
    if number == rounds: print("enough", flush=True)
    if not number % 20:
        if real >= 0: os.close(real)
        real = fill_all()
        try:
            if os.read(0, 1) == b"": break
        except BlockingIOError: pass
    exchange((top, "d"), (top, "to-directory"))
    exchange((top, "file"), (top, "to-file"))
    exchange((top, "spare"), (top, "to-directory"))
    exchange((real, "e"), (top, "to-inner"))
    exchange((real, "file"), (top, "file"))
    os.sched_yield()
"""


class Attempts:
    """Calls of all tools, one after another. ``outside``: what they returned of a text that lies outside.

    ``done``: how many succeeded; ``refused``: how often each kind of refusal came.
    """

    def __init__(self, files: Files) -> None:
        self.outside: list[str] = []
        self.done = 0
        self.refused: Counter[str] = Counter()
        self._files = files

    def make(self, number: int) -> None:
        """The call of that number."""
        files, path = self._files, PATHS[number // 13 % len(PATHS)]
        directory, fresh = path[:-1], (*path[:-1], f"new{number}")
        calls: tuple[Callable[[], object], ...] = (
            lambda: files.read(path), lambda: files.ls(directory), lambda: files.edit(path, "mine", "mine"),
            lambda: files.edit(path, "OUTSIDE", "mine"), lambda: files.write(fresh, "mine\n"),
            lambda: files.grep("E|m"), lambda: files.glob("**/kept", directory),
            lambda: files.rm(directory[:1] or path), lambda: files.grep("OUTSIDE"), lambda: files.piece(path),
            lambda: files.put(path, b"mine\n", how=HOW[number // 13 % len(HOW)]),
            lambda: files.mkdir((*fresh, "e")), lambda: self._staged(path, number),
        )  # fmt: skip
        try:
            result = repr(calls[number % len(calls)]())
        except FileRefused as refusal:
            self.refused[refusal.kind] += 1
            return
        self.done += 1
        if "OUTSIDE" in result or "kept" in result:
            self.outside.append(result)

    def _staged(self, path: tuple[str, ...], number: int) -> None:
        token = f"{number:016x}"
        self._files.begin(path, token, how="overwrite")
        self._files.stage(path, token, b"mine\n", offset=0)
        self._files.commit(path, token, size=5, how="overwrite")
