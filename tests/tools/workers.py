"""Makes files workers for tests: real ones, and ones that follow a script of the test's."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from podbot.errors import FileRefused
from podbot.guest.local import LocalGuest
from podbot.shell.reconnecting import Connection
from podbot.tools.files import Files
from tests.inside import PROGRAM
from tests.waiting import HANG

_LIAR = """#!{python}
import json, os, struct, sys, time
def read(size):
    data = b""
    while len(data) < size:
        part = os.read(0, size - len(data))
        if not part:
            sys.exit(0)
        data += part
    return data
def raw(data):
    while data:
        data = data[os.write(1, data):]
def say(words):
    data = json.dumps(words).encode()
    raw(struct.pack("!I", len(data)) + data)
def hear():
    return json.loads(read(struct.unpack("!I", read(4))[0]))
with open({log!r}, "a") as log:
    log.write("started\\n")
"""
_LOADED = "read(int(read(8)))\n"
_GREETING = 'say({"id": 0, "ok": {"version": 1}})\n'


def files_in(guest: LocalGuest, root: Path, *, python: str = PROGRAM, **options: Any) -> Files:
    """The files of ``root``, by a worker that ``guest`` runs."""
    return Files(Connection(lambda: guest.channel), str(root), where="here", python=python, **options)


@contextlib.contextmanager
def files_beside_a_secret() -> Iterator[tuple[Files, Path, Path]]:
    """The files of a workspace, its directory, and a directory beside it with a file ``secret``."""
    with tempfile.TemporaryDirectory() as place, LocalGuest.start(program=PROGRAM) as guest:
        root, outside = Path(place, "root"), Path(place, "outside")
        for directory in (root, outside):
            directory.mkdir()
        (outside / "secret").write_text("SECRET")
        with files_in(guest, root) as files:
            yield files, root, outside


def patient(guest: LocalGuest, root: Path) -> Files:
    """For calls with much to do, so that a slow machine does not reach their time limits."""
    return files_in(guest, root, seconds=10 * HANG, grep_seconds=10 * HANG)


def liar(directory: Path, script: str, *, greets: bool = True) -> str:
    """The path of an interpreter that follows ``script`` instead of the worker's text. It logs each start."""
    path = directory / "liar"
    text = _LIAR.format(python=sys.executable, log=str(directory / "log"))
    path.write_text(text + _LOADED + (_GREETING if greets else "") + script)
    path.chmod(0o755)
    return str(path)


def starts(directory: Path) -> int:
    """How often a liar was started."""
    log = directory / "log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def refused(call: Callable[[], object], kind: str) -> FileRefused:
    """The refusal of that kind that the call raises."""
    with pytest.raises(FileRefused) as caught:
        call()
    assert caught.value.kind == kind, caught.value
    return caught.value


def processes_of(root: Path) -> tuple[list[int], list[int]]:
    """The ids of the workers of ``root``, and of their children, which search."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (entry / "cmdline").read_bytes().endswith(f"\0{root}\0".encode()):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    workers = [pid for pid, parent in parents.items() if parent not in parents]
    return workers, [pid for pid in parents if pid not in workers]


def together(work: Callable[[int], None], count: int) -> None:
    """Call ``work`` with each number below ``count``, in threads, and wait for all."""
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG)
    assert not any(thread.is_alive() for thread in threads)
