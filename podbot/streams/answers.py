"""Reading away what a terminal still answers to a program that has ended, before a shell reads it as typed."""

from __future__ import annotations

import contextlib
import os
import re
import select
import time

# Questions that every terminal answers, a Linux console too, in the order in which they come (measured with tmux:
# 0.1-0.7 ms each, at most 26 ms; 23 ms behind 200 kB of text).
_QUESTIONS = {b"\x1b[5n": "status", b"\x1b[6n": "cursor", b"\x1b[c": "device"}
_ANSWER = re.compile(rb"\x1b\[(?:(?P<status>0n)|(?P<cursor>[0-9]+;[0-9]+R)|(?P<device>\?[0-9;]*c))")
_NUMBER = 8  # of questions; their order is random, 1 in 6,561
_KEPT = 4096  # bytes of what was read, in which the answers are looked for
SILENCE = 1.0  # seconds without a byte after which the terminal is taken for one that answers nothing
MOST = 3.0  # seconds in all, for a terminal that has much to answer, or that somebody types at


def drain(source: int, terminal: int) -> bool:
    """Ask ``terminal``, and read ``source``, which is in raw mode, until the answers have come; whether they have.

    What the program asked before is answered before. It cannot leave an answer that passes for ours: it does not
    know the order of the questions. What was typed meanwhile is lost as well.
    """
    asked = chosen()
    if not write(terminal, b"".join(asked)):
        return False
    wanted = [_QUESTIONS[question] for question in asked]
    end = time.monotonic() + MOST
    read = b""
    while (left := end - time.monotonic()) > 0:
        if not _ready(source, select.POLLIN, min(left, SILENCE)):
            return False
        try:
            data = os.read(source, _KEPT)
        except OSError:
            return False  # the terminal is gone
        if not data:
            return False
        read = (read + data)[-_KEPT:]
        if [found.lastgroup for found in _ANSWER.finditer(read)][-_NUMBER:] == wanted:
            return True
    return False


def chosen() -> list[bytes]:
    """The questions, in an order that is not to be guessed."""
    known = list(_QUESTIONS)
    return [known[byte % len(known)] for byte in os.urandom(_NUMBER)]  # `random` takes 4 ms to import


def write(terminal: int, data: bytes) -> bool:
    """All of ``data``, unless the terminal is gone, or takes nothing for a while."""
    with contextlib.suppress(OSError):
        while data:
            if not _ready(terminal, select.POLLOUT, SILENCE):
                return False
            data = data[os.write(terminal, data) :]
        return True
    return False


def _ready(fd: int, events: int, seconds: float) -> bool:
    poller = select.poll()
    poller.register(fd, events)
    return any(found & events for _, found in poller.poll(seconds * 1000))
