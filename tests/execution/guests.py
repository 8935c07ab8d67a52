"""Real guests at a real socket in a directory, as processes of this host: one for each connection."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

from podbot.guest.reach import listen
from podbot.guest.source import guest_text
from tests.waiting import wait_until


def lives(pid: int) -> bool:
    """Whether a process exists and has not ended; one that its new parent has not reaped yet has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class Guests:
    """``directory``: where podbot finds the socket."""

    def __init__(self, directory: Path) -> None:
        self.directory = str(directory)
        self.processes: list[subprocess.Popen[bytes]] = []
        self._text = directory / "guest.py"
        self._text.write_text(guest_text())
        self._listener = listen(self.directory)
        self._listener.setblocking(True)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connected, _ = self._listener.accept()
                with connected:
                    words = [sys.executable, "-I", "-S", str(self._text), "stream"]
                    self.processes.append(subprocess.Popen(words, stdin=connected.fileno(), stdout=connected.fileno()))

    def process(self, number: int) -> subprocess.Popen[bytes]:
        """The guest that was started as the ``number``-th one, from 0. Its entry may follow its greeting."""
        wait_until(lambda: len(self.processes) > number, f"guest {number}")
        return self.processes[number]

    def close(self) -> None:
        """Take no more connections, and wait for the guests to end, as they do when podbot has left."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        for process in self.processes:
            process.wait(60)


@contextlib.contextmanager
def guests(directory: Path) -> Iterator[Guests]:
    """See :class:`Guests`."""
    made = Guests(directory)
    try:
        yield made
    finally:
        made.close()
