"""The state that a guest's connections share: commands, jobs, the event loop."""

from __future__ import annotations

import os
import sys
import time

from podbot.guest import frames
from podbot.guest.inside import plain_json, processes, spawn
from podbot.guest.inside.guest_command import Command
from podbot.guest.inside.jobs import Job, Jobs
from podbot.guest.inside.loop import Loop, attempt

TYPE_CHECKING = False  # the module `typing` costs 0.5 MB
if TYPE_CHECKING:
    from typing import Any

_TERM = 15
_FACT = 20_000  # the most bytes of one fact in JSON; three of the facts can be long
_GRACE = 2.0  # seconds between TERM and the end of a sandbox whose podbot has exited
_SHELLS = ("/bin/bash", "/usr/bin/bash", "/bin/sh", "/usr/bin/sh")


class Guest:
    """``commands``: those whose first process runs, by its pid. ``ended``: those whose first process has ended, but not
    all of whose output was read, or whose background processes are a job. ``ending``: exit when no process is left."""

    def __init__(self) -> None:
        self.counters = processes.Counters()
        self.environment = spawn.first_environment()
        self.cwd = os.getcwd()
        os.chdir("/")
        self.jobs = Jobs()
        self.loop = Loop(self._ended)
        self.commands: dict[int, Command] = {}
        self.ended: list[Command] = []
        self.ending = False
        self.leave_at = 0.0  # time of the monotonic clock at which the sandbox ends at the latest; 0: it is not ending

    def add(self, command: Command) -> None:
        """Register a command that was started."""
        self.commands[command.pid] = command

    def adopt(self, command: Command) -> Job | None:
        """Make a job of a command's background processes. Returns None if too many such jobs run."""
        job = self.jobs.adopt(command.words, command.keep_left)
        if job is not None:
            job.command = command
        return job

    def _ended(self, pid: int, status: int) -> None:
        command = self.commands.pop(pid, None)  # the next process may get the same pid
        if command is not None:
            self.ended.append(command)
            attempt(command, command.exited, status)
        self._settle()

    def _settle(self) -> None:
        """Forget the commands whose end is reported. Stop the loop if the guest is ending and no process is left."""
        self.commands = {pid: command for pid, command in self.commands.items() if not command.reported}
        self.ended = [command for command in self.ended if not command.reported]
        if self.ending:
            self.loop.over = not any(command.running or command.stopping for command in self._known())

    def _known(self) -> list[Command]:
        return [*self.commands.values(), *self.ended]

    def end(self, most: float | None = None) -> None:
        """Terminate all commands, including jobs, and then end the guest. ``most``: see :meth:`Command.terminate`."""
        self.ending = True
        for command in self._known():
            attempt(command, command.terminate, most)
        self._watch_end()

    def _watch_end(self) -> None:
        self._settle()
        if not self.loop.over:
            self.loop.after(0.02, self, self._watch_end)

    def leave(self) -> None:
        """End the sandbox: send TERM to all its processes, and exit when they have ended or after the grace.

        The guest is the sandbox's main process, so the kernel then kills all others. The podbot that owned the sandbox
        has exited, so nothing is reported to it; the ends of commands of other podbots are.
        """
        for command in self._known():
            command.senders[_TERM] = "sandbox_end"
        processes.quietly(os.kill, -1, _TERM)  # every process except the init and the guest itself
        self.leave_at = time.monotonic() + _GRACE
        self._watch_others()

    def _watch_others(self) -> None:
        self.loop.over = time.monotonic() >= self.leave_at or not processes.others()
        if not self.loop.over:
            self.loop.after(0.02, (self, "others"), self._watch_others)

    def fail(self) -> None:
        """Called after an unexpected error. A guest that is ending still ends, and not later than before."""
        if self.leave_at:
            self.loop.after(0.02, (self, "others"), self._leave_in_time)
        if self.ending:
            self.loop.after(0.02, self, self._watch_end)

    def _leave_in_time(self) -> None:
        self.loop.over = time.monotonic() >= self.leave_at
        self.fail()

    def facts(self) -> dict[str, Any]:
        """The facts that are sent to podbot when it connects."""
        return {
            "version": frames.VERSION,
            "python": ".".join(str(part) for part in sys.version_info[:3]),
            "uid": os.getuid(),
            "gid": os.getgid(),
            "pid": os.getpid(),
            "cwd": _short(self.cwd),
            "root": "/",
            "shell": next((path for path in _SHELLS if os.access(path, os.X_OK)), ""),
            "path": _short(self.environment.get(b"PATH", b"").decode("utf-8", "replace")),
            "home": _short(self.environment.get(b"HOME", b"").decode("utf-8", "replace")),
        }


def _short(text: str) -> str:
    """The beginning of ``text``: at most what podbot accepts, and short enough for all facts to fit in one frame."""
    text = text[: frames.TEXT_LIMIT]
    while len(plain_json.dumps(text)) > _FACT:
        text = text[: len(text) * 3 // 4]
    return text
