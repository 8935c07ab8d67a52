"""One files worker: a running command that answers one request after another.

Its text comes over its stdin, so no file has to be mounted.
"""

from __future__ import annotations

import contextlib
import functools
import json
import time
from collections.abc import Mapping
from typing import Any

from podbot.errors import CommandRefused, WorkerLost, WorkerUnavailable
from podbot.guest.messages import Ended, GuestCommand
from podbot.guest.program_text import PRELUDE, modules
from podbot.shell.cancellation import waiting_for
from podbot.shell.ports import Commands, RunningCommand
from podbot.shell.reconnecting import BROKEN
from podbot.tools import worker_frames as frames
from podbot.tools.answers import Lie, message_from

_STDOUT = 1
_IDS = 1 << 31
_NO_START, _NOT_FOUND = 126, 127  # exit statuses of a program that cannot be started


_PACKAGES = ("podbot", "podbot.tools", "podbot.tools.inside")
_PARTS = (
    "podbot.tools.worker_frames",
    "podbot.tools.inside.refusals",
    "podbot.tools.inside.beneath",
    "podbot.tools.inside.reading",
    "podbot.tools.inside.glob_pattern",
    "podbot.tools.inside.walking",
    "podbot.tools.inside.finding",
    "podbot.tools.inside.required_run",
    "podbot.tools.inside.required_text",
    "podbot.tools.inside.line_search",
    "podbot.tools.inside.grep",
    "podbot.tools.inside.edits",
    "podbot.tools.inside.writing",
    "podbot.tools.inside.removal",
    "podbot.tools.inside.pieces",
    "podbot.tools.inside.placing",
    "podbot.tools.inside.inventory",
    "podbot.tools.inside.worker",
)
TOO_OLD = 38  # exit status for a Python before 3.8
_LOADER = f"""import os,sys
if sys.version_info<(3,8):sys.exit({TOO_OLD})
def r(n):
 t=b""
 while len(t)<n:
  d=os.read(0,n-len(t))
  if not d:sys.exit(1)
  t+=d
 return t
exec(compile(r(int(r(8))),"podbot-files","exec"))"""
# Regular expressions of an agent may draw warnings; names of files are UTF-8 whatever the locale.
_FLAGS = ("-I", "-S", "-W", "ignore", "-X", "utf8", "-c")


class TooLong(Exception):
    """A request is longer than REQUEST_BYTES. Nothing was sent."""


class _Inbox:
    """Assembles answers from the worker's output. ``wrong``: why no more is taken; empty until then."""

    def __init__(self) -> None:
        self.wrong = ""
        self._held = bytearray()
        self._size: int | None = None  # of the answer that is arriving

    def take(self, stream: int, data: bytes) -> None:
        """What the worker prints. At most one answer of the largest size is held. Its stderr is dropped."""
        if stream != _STDOUT or self.wrong:
            return
        self._held += data
        header = frames.HEADER.size
        if self._size is None and len(self._held) >= header:
            self._size = int(frames.HEADER.unpack_from(self._held)[0])
            del self._held[:header]
        if self._size is not None and self._size > frames.ANSWER_BYTES:
            self._refuse(f"it announced an answer of {self._size} bytes, over the limit of {frames.ANSWER_BYTES}")
        elif self._size is not None and len(self._held) > self._size:
            self._refuse("it sent more than one answer")

    def _refuse(self, reason: str) -> None:
        self.wrong = reason
        self._held.clear()

    @property
    def is_empty(self) -> bool:
        return not self._held and self._size is None

    @property
    def is_complete(self) -> bool:
        return self._size is not None and len(self._held) == self._size

    def answer(self) -> bytes:
        """The complete answer, which is taken out."""
        data = bytes(self._held)
        self._held.clear()
        self._size = None
        return data


class WorkerProcess:
    """A worker that has started. One thread uses it at a time. ``where``: for messages."""

    def __init__(self, running: RunningCommand, inbox: _Inbox, where: str) -> None:
        self._running, self._inbox, self._where = running, inbox, where
        self._last_id = 0

    @classmethod
    def start(cls, commands: Commands, root: str, *, python: str, where: str, seconds: float) -> WorkerProcess:
        """Start a worker for the directory ``root``; it must answer within ``seconds``.

        Raises WorkerUnavailable, WorkerLost, and the errors of ``commands``.
        """
        inbox = _Inbox()
        command = GuestCommand(worker_words(python, root), stdin="open", rlimits={"CORE": 0})
        try:
            running = commands.start(command, inbox.take)
        except CommandRefused as exc:
            raise WorkerUnavailable(where=where, reason=exc.reason) from exc
        worker = cls(running, inbox, where)
        try:
            worker._greet(root, seconds)
        except BaseException:
            worker.close()
            raise
        return worker

    def _greet(self, root: str, seconds: float) -> None:
        end = time.monotonic() + seconds
        ended = self._exchange(loaded_text(), end)
        if ended is not None:
            raise self._unavailable(ended)
        greeting = self._answer_to(0, seconds)
        if "error" in greeting:
            raise WorkerUnavailable(where=self._where, reason=f"the directory {root} cannot be opened")
        facts = greeting["ok"]
        if facts.get("version") != frames.VERSION:
            raise self._lost("it uses another version of the protocol")

    def _unavailable(self, ended: Ended) -> WorkerUnavailable | WorkerLost:
        reason = {TOO_OLD: "its python3 is older than 3.8"}.get(ended.code)
        if ended.code == _NOT_FOUND:
            reason = "it has no python3"
        if ended.code == _NO_START:  # by an image, or because there are as many processes as there may be
            return self._lost("its python3 cannot be started, or there are too many processes to start it")
        if reason is None:
            return self._lost(f"it ended with status {ended.code} when it was started")
        return WorkerUnavailable(where=self._where, reason=reason, hint="The image needs python3, 3.8 or later.")

    def ask(self, operation: str, args: Mapping[str, Any], *, seconds: float, grace: float) -> dict[str, Any]:
        """The answer to a request, an object with ``ok`` or ``error``.

        ``seconds``: the time limit that the worker itself keeps; after ``grace`` more it is lost. After any error but
        TooLong the worker must be closed. Raises TooLong, WorkerLost and the errors of the command's connection.
        """
        self._last_id = self._last_id % _IDS + 1
        words = {"id": self._last_id, "op": operation, "args": args, "seconds": seconds}
        request = json.dumps(words).encode("ascii")
        if len(request) > frames.REQUEST_BYTES:
            raise TooLong
        if not self._inbox.is_empty:
            raise self._lost("it sent what was not asked for")
        ended = self._exchange(frames.HEADER.pack(len(request)) + request, time.monotonic() + seconds + grace)
        if ended is not None:
            raise self._lost(_end_in_words(ended))
        return self._answer_to(self._last_id, seconds + grace)

    def has_ended(self) -> bool:
        """Whether it has ended while nothing was asked. Raises the errors of the command's connection."""
        return self._running.wait(0) is not None

    def close(self) -> None:
        """End the worker without waiting for it."""
        with contextlib.suppress(*BROKEN, OSError):
            self._running.abandon()

    def _exchange(self, data: bytes, end: float) -> Ended | None:
        """Send ``data``, and wait for an answer, a violation or the time ``end``; or how the worker ended before."""
        inbox = self._inbox

        def is_over() -> bool:
            return inbox.is_complete or bool(inbox.wrong) or time.monotonic() >= end

        with waiting_for(self._running):
            if not self._running.write(data, seconds=max(0.0, end - time.monotonic())):
                return None
            ended = self._running.wait(max(0.0, end - time.monotonic()), until=is_over)
        return None if inbox.is_complete or inbox.wrong else ended

    def _answer_to(self, ident: int, seconds: float) -> dict[str, Any]:
        inbox = self._inbox
        if inbox.wrong:
            raise self._lost(inbox.wrong)
        if not inbox.is_complete:
            raise self._lost(f"it did not answer within {seconds:g} s")
        try:
            answer = message_from(inbox.answer())
        except Lie as lie:
            raise self._lost(f"its answer is not valid ({lie})") from None
        if answer.get("id") != ident or isinstance(answer.get("id"), bool):
            raise self._lost("its answer has the wrong id")
        if "error" not in answer and not isinstance(answer.get("ok"), dict):
            raise self._lost("its answer has no result")
        return answer

    def _lost(self, reason: str) -> WorkerLost:
        return WorkerLost(where=self._where, reason=reason)

    def lied(self, lie: Lie) -> WorkerLost:
        """The error for an answer that is not valid."""
        return self._lost(f"its answer is not valid ({lie})")


def _end_in_words(ended: Ended) -> str:
    if ended.out_of_memory:
        return "the kernel ended it because memory ran out"
    if ended.signal is not None:
        return f"it was ended by signal {ended.signal}"
    return f"it ended with status {ended.code}"


@functools.cache
def worker_text() -> str:
    """The worker as one Python program, which needs only the standard library of Python 3.8 or later."""
    last = 'sys.exit(sys.modules["podbot.tools.inside.worker"].main(sys.argv[1]))\n'
    return "import sys\n" + PRELUDE + modules(_PARTS, _PACKAGES) + last


def loaded_text() -> bytes:
    """What the worker's command reads first from its stdin."""
    text = worker_text().encode("utf-8")
    return b"%08d" % len(text) + text


def worker_words(python: str, root: str) -> tuple[str, ...]:
    """The worker's command. ``root``: an absolute path."""
    return (python, *_FLAGS, _LOADER, root)
