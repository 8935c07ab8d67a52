"""An interactive bash on a terminal of a sandbox: what is typed, and how the end of a command is found in the output.

Each command is a file that bash reads with ``.``, so its length and its line breaks do not matter to the terminal, and
its effects stay in the shell. Marks with a random number are printed before and after it.
"""

from __future__ import annotations

import codecs
import contextlib
import re
import secrets
import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

import podbot
from podbot.errors import PodbotError

BASH = ("/bin/sh", "-c", "stty -echo; exec bash --noediting")
START_SECONDS = 30.0
_SLICE = 1.0  # seconds of one read, after which a cancellation is noticed
_KEPT = 1 << 20  # characters of an output that are kept of its beginning, and as many of its end
_BACK = 4096  # characters of a mark or an expected text that may have come before the newest piece of output
_CONTROL = re.compile(r"\x1b[@-_][0-?]*[ -/]*[@-~]")
_INTERRUPT, _SUSPEND = b"\x03", b"\x1a"


class SessionEnded(Exception):
    """The shell has ended, for example by ``exit``."""


class SessionTimedOut(Exception):
    """The time limit has passed; the command goes on."""


class Answer(NamedTuple):
    """``code``: the command's status; None if it has not ended. ``matched``: the expected text that was found."""

    output: str
    code: int | None
    matched: str = ""


class BashSession:
    """One shell. A single thread at a time calls it; any other may call :meth:`cancel`."""

    def __init__(self, shell: podbot.PodmanShell, *, cwd: str) -> None:
        """See :meth:`start`. Raises ContainerError and ChannelLost, as all methods do."""
        self._shell = shell
        self._nonce = secrets.token_hex(8)
        made = shell.execute(["mktemp", "-d"], cwd="/")
        if not made.success:
            raise SessionEnded(f"the sandbox has no directory for temporary files: {made.stderr.strip()}")
        self._directory = made.stdout.strip()
        self._file = f"{self._directory}/command"
        self._terminal = shell.terminal(BASH, cwd=cwd, env={"TERM": "xterm"}, columns=200, rows=50)
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._text = ""
        self._searched = 0
        self._cancelled = threading.Event()

    def start(self, files: Sequence[str], seconds: float) -> str:
        """Read ``files`` with ``source``; returns their output. Raises SessionTimedOut and SessionEnded."""
        return self.run("".join(f"source {path}\n" for path in files), seconds + START_SECONDS).output

    def run(self, command: str, seconds: float | None, expected: Sequence[str] = ()) -> Answer:
        """Run a command to its end, or until its output has one of the ``expected`` texts, regular expressions.

        Raises SessionTimedOut and SessionEnded.
        """
        self._cancelled.clear()
        stored = self._shell.execute(["/bin/sh", "-c", 'cat > "$1"', "sh", self._file], stdin=command, cwd="/")
        if not stored.success:
            raise SessionEnded(f"the command cannot be stored in {self._file}: {stored.stderr.strip()}")
        self._type(f"builtin printf 'B%s' {self._nonce}; . {self._file}; {self._after()}")
        begin, end = f"B{self._nonce}", rf"E{self._nonce}:(\d+);([\s\S]*){self._prompt}"
        output, found = self._until([end, *expected], seconds)
        output = output.rpartition(begin)[2]
        if found.re.pattern != end:
            return Answer(self._plain(output), None, found.re.pattern)
        return Answer(self._plain(output + found[2]), int(found[1]))

    def interact(self, line: str, seconds: float | None, expected: Sequence[str], *, leaves: bool) -> Answer:
        """Type a line, and wait for one of the ``expected`` texts or the shell's prompt. ``leaves``: the line ends the
        program that was interacted with. Raises SessionTimedOut and SessionEnded.
        """
        self._cancelled.clear()
        self._type(line)
        output, found = self._until([*expected, self._prompt], seconds)
        if leaves:
            self._reset()
        said = self._plain(output)
        return Answer(said if leaves else said.lstrip().removeprefix(line).strip(), 0, found.re.pattern)

    def interrupt(self, seconds: float, tries: int, expected: Sequence[str]) -> Answer:
        """Press Ctrl-C; if that does not help, stop what runs with Ctrl-Z and kill it. Raises as :meth:`interact`."""
        self._cancelled.clear()
        wanted = [*expected, self._prompt]
        for _ in range(tries):
            self._terminal.write(_INTERRUPT)
            try:
                output, found = self._until(wanted, seconds)
            except SessionTimedOut:
                continue
            return Answer(self._plain(output).strip(), 0, found.re.pattern)
        self._terminal.write(_SUSPEND)
        stopped, _ = self._until(wanted, max(seconds, START_SECONDS))
        self._type("kill -9 %1; wait -f %1")  # so that the shell reports its end here, and not to a later command
        output, found = self._until(wanted, max(seconds, START_SECONDS))
        return Answer(self._plain(stopped + output).strip(), 0, found.re.pattern)

    def cancel(self) -> None:
        """Make the call that waits return."""
        self._cancelled.set()

    def close(self) -> None:
        """End the shell, and remove its directory."""
        self._terminal.close()
        with contextlib.suppress(PodbotError):  # the sandbox may have ended
            self._shell.execute(["rm", "-rf", "--", self._directory], cwd="/")

    @property
    def _prompt(self) -> str:
        return f"P{self._nonce}"

    def _after(self) -> str:
        """What is typed behind a command. Programs and settings such as a virtual environment's change the prompt and
        the echo. The marks are typed in two parts, so that an echo is not taken for one.
        """
        prompt = f"PS1='P''{self._nonce}' PS2= PROMPT_COMMAND="
        return f"_podbot=$?; stty -echo; {prompt}; builtin printf 'E%s:%s;' {self._nonce} $_podbot"

    def _reset(self) -> None:
        self._type(self._after())
        self._until([rf"E{self._nonce}:\d+;[\s\S]*{self._prompt}"], START_SECONDS)

    def _type(self, line: str) -> None:
        self._terminal.write(line.encode("utf-8", "surrogateescape") + b"\n")

    def _until(self, patterns: Sequence[str], seconds: float | None) -> tuple[str, re.Match[str]]:
        """(the output before the first of ``patterns``, its match); what follows stays for the next call."""
        wanted = [re.compile(pattern) for pattern in patterns]
        limit = None if seconds is None else time.monotonic() + seconds
        self._searched = 0
        while True:
            for pattern in wanted:
                found = pattern.search(self._text, max(0, self._searched - _BACK))
                if found is not None:
                    output, self._text = self._text[: found.start()], self._text[found.end() :]
                    return output, found
            self._searched = len(self._text)
            self._read(limit)

    def _read(self, limit: float | None) -> None:
        left = _SLICE if limit is None else limit - time.monotonic()
        if left <= 0 or self._cancelled.is_set():
            raise SessionTimedOut
        data = self._terminal.read(min(left, _SLICE))
        if not data and self._terminal.wait(0) is not None:
            raise SessionEnded("the shell has ended")
        self._text += self._decoder.decode(data)
        if len(self._text) > 4 * _KEPT:
            missing = len(self._text) - 2 * _KEPT
            note = f"\n[{missing} characters are missing here]\n"
            self._text = self._text[:_KEPT] + note + self._text[-_KEPT:]
            self._searched = min(self._searched, _KEPT)

    def _plain(self, output: str) -> str:
        """Without the marks and the terminal's control sequences, and with its line ends as programs write them."""
        without = re.sub(rf"[BP]{self._nonce}|E{self._nonce}:\d+;", "", output)
        return _CONTROL.sub("", without).replace("\r\n", "\n")
