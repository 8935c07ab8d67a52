"""Pseudo-terminals in the places of podbot's own descriptors."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Iterator

import pytest

from tests.waiting import HANG, wait_until

_QUESTION = re.compile(rb"\x1b\[(?:5n|6n|c)")
_ANSWERS = {b"\x1b[5n": b"\x1b[0n", b"\x1b[6n": b"\x1b[1;1R", b"\x1b[c": b"\x1b[?6c"}
_END = b"end of the test"


def _width(typed: int) -> int:
    """How many bytes a terminal shows for it: ``^[`` for ESC, CR LF for a newline, and nothing for control-D."""
    return 0 if typed == 4 else 1 if typed >= 32 else 2


class Emulator:
    """The other end of a terminal, which answers what every terminal answers. ``terminal``: a descriptor of ours."""

    def __init__(self) -> None:
        self.controller, self.terminal = os.openpty()
        self._said = b""
        self._over = threading.Event()
        threading.Thread(target=self._run, daemon=True).start()

    def type(self, data: bytes) -> None:
        """Returns when its echo has appeared: the kernel passes on what is typed in the background, perhaps late."""
        shown = len(self._said) + sum(map(_width, data))
        os.write(self.controller, data)
        wait_until(lambda: len(self._said) >= shown, "the echo of what was typed")

    def said(self) -> bytes:
        """All that was written to the terminal. Called once, at the end."""
        os.write(self.terminal, _END)
        assert self._over.wait(HANG)
        return self._said.partition(_END)[0]

    @contextlib.contextmanager
    def in_place_of(self, *descriptors: int) -> Iterator[None]:
        """Within a test, not in a fixture: pytest captures descriptor 1 anew between the two."""
        before = {fd: os.dup(fd) for fd in descriptors}
        for fd in descriptors:
            os.dup2(self.terminal, fd)
        try:
            yield
        finally:
            for fd, old in before.items():
                os.dup2(old, fd)
                os.close(old)

    @contextlib.contextmanager
    def as_streams(self) -> Iterator[None]:
        """Also in the places of sys.stdin and sys.stderr, where pytest has put others."""
        with (
            self.in_place_of(0, 1, 2),
            open(0, closefd=False, encoding="utf-8") as stdin,
            open(2, "w", closefd=False, encoding="utf-8") as stderr,
            pytest.MonkeyPatch.context() as patch,
        ):
            patch.setattr("sys.stdin", stdin)
            patch.setattr("sys.stderr", stderr)
            yield

    def close(self) -> None:
        if not self._over.is_set():
            self.said()
        os.close(self.terminal)
        os.close(self.controller)

    def _run(self) -> None:
        answered = 0
        while _END not in self._said:
            self._said += os.read(self.controller, 1000)
            for question in _QUESTION.finditer(self._said, answered):
                os.write(self.controller, _ANSWERS[question[0]])
                answered = question.end()
        self._over.set()


@contextlib.contextmanager
def terminal_on(*descriptors: int) -> Iterator[None]:
    """A terminal in place of each of ``descriptors`` while the block runs."""
    with contextlib.closing(Emulator()) as emulator, emulator.in_place_of(*descriptors):
        yield


@contextlib.contextmanager
def no_terminal() -> Iterator[None]:
    """stdin is none, however the tests were started."""
    before, null = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(null)
