"""One command: its processes and how it ends."""

from __future__ import annotations

import os
import time

from podbot.guest.inside import processes, spawn, terminfo, users
from podbot.guest.inside.loop import Loop
from podbot.guest.inside.standard_streams import Sink, Streams

TYPE_CHECKING = False  # the module `typing` costs 0.5 MB
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from podbot.guest.inside.jobs import Job

_SURE = 5.0  # seconds within which processes must end after KILL
# Seconds that the guest waits, after a command has ended, for children that have its output open but end right after
# it, or redirect their own output: a shell does that in the child, after the fork.
_PARTING = 0.05
_RETRY = 0.1  # seconds before the guest tries again after an unexpected error
_TERM, _KILL = 15, 9
_NOT_A_CAUSE = (0, 126, 127)  # the statuses of a command that ended well, or did not start
_BY_KEY = (1, 2, 3)  # HUP, INT, QUIT: what the kernel sends to the processes of a terminal
# Why the kernel sends a signal, by its number. Any process may send the same: a parent is not told who did.
_KERNEL_CAUSES = {
    **dict.fromkeys((4, 5, 6, 7, 8, 11), "fault"),  # ILL, TRAP, ABRT, BUS, FPE, SEGV
    13: "closed_pipe",
    **dict.fromkeys((14, 26, 27), "timer"),  # ALRM, VTALRM, PROF
    **dict.fromkeys((24, 25), "limit"),  # XCPU, XFSZ
    31: "refused_call",  # SYS
}


class Command:
    """A program from its start to its end; then, as a job, the processes that it left in the background.

    ``started``: time of the monotonic clock. ``adopt``: makes that job, or returns None. ``term``: the index of the
    TERM that it got; None if podbot sent no choices or the sandbox describes none of them.
    """

    count = 0

    def __init__(self, guest: Any, spec: dict[str, Any], sink: Sink) -> None:
        self.loop: Loop = guest.loop
        self.counters: processes.Counters = guest.counters
        self.adopt: Callable[[Command], Job | None] = guest.adopt
        # An older podbot does not say "keep_left".
        self.words, self.keep_left = spec["argv"], spec.get("keep_left", 0)
        self.counts_before = self.counters.counts()
        self.streams = Streams(self.loop, sink, self._report, self.fail)
        self.streams.keep_open = self.keep_left > 0 and not spec["tty"]
        self.argv = [spawn.raw(word) for word in spec["argv"]]
        self.grace = spawn.seconds("term_grace", spec["grace"])
        self.deadline = None if spec["deadline"] is None else spawn.seconds("deadline", spec["deadline"])
        self.pid = 0
        self.status = -1
        self.running = self.timed_out = self.stopping = self.reported = False
        self.adopted = False  # whether the program has ended and its background processes are a job
        self.kill_at = self.pause = self.seconds = self.part_until = 0.0
        self.survivors = 0
        self.terminal = bool(spec["tty"])
        self.senders: dict[int, str] = {}  # of the signals that the guest has sent: why, by their numbers
        self.known: dict[int, int] = {}
        try:
            self._start(spec, guest.environment)
        except spawn.CannotStart as failure:
            failure.counts = self.counters.since(self.counts_before)
            raise

    def _start(self, spec: dict[str, Any], base: dict[bytes, bytes]) -> None:
        """Start the program. Raises Refusal, and CannotStart."""
        limits = spawn.checked_limits(spec["rlimits"])
        user = users.identity(spec["user"]) if spec["user"] else None
        env = spawn.environment(base, spec["env"], spec["mode"])
        if user is not None:
            users.change_home(env, spec["env"], user)
        # An older podbot, in whose kept session this guest runs, says neither "term_choices" nor "within".
        choices: list[str] = spec.get("term_choices") or []
        self.term = terminfo.first_described(choices, env) if choices else None
        if self.term is not None:
            env[b"TERM"] = spawn.raw(choices[self.term])
        spawn.enter_directory(spawn.raw(spec["cwd"]) or b"/", spawn.raw(spec.get("within", "")))
        Command.count += 1
        self.mark = processes.mark_next(Command.count)
        program = spawn.Program(self.argv, env, limits)
        theirs: list[int] = []
        try:
            program.fds, program.terminal = self.streams.make(spec, theirs), bool(spec["tty"])
            program.user = user
            if user is not None and program.terminal:
                os.fchown(program.fds[0], user.uid, -1)  # a terminal belongs to its user
            self.started, self.since = time.monotonic(), processes.now()
            self.pid = program.start()
        except BaseException:
            self.streams.close()
            raise
        finally:
            for fd in theirs:
                os.close(fd)
            os.chdir("/")  # the guest's working directory could not be unmounted
        self.running = True
        try:
            self.streams.resume()
        except BaseException:
            processes.quietly(os.killpg, self.pid, _KILL)
            self.streams.close()
            raise
        if self.deadline is not None:
            self.loop.after(self.deadline, (self, "deadline"), self._deadline)

    def send_signal(self, number: int) -> None:
        """Send a signal to its process group. Raises ValueError for a number that is not a signal's."""
        if not processes.is_signal(number):
            raise ValueError("not a signal")
        self.senders[number] = "podbot"
        if self.running:
            processes.quietly(os.killpg, self.pid, number)
        elif self.adopted and not self.reported:
            processes.end(self.pid, self._members(), number)

    def _deadline(self) -> None:
        self.timed_out = True
        self.terminate()

    def terminate(self, most: float | None = None) -> None:
        """Terminate all its processes: TERM, the grace, KILL. The end is reported when they have ended.

        ``most``: an upper limit for the grace in seconds, also for one that has begun; None: no limit.
        """
        if self.reported:
            return
        grace = self.grace if most is None else min(self.grace, most)
        if self.stopping:
            self.kill_at = min(self.kill_at, time.monotonic() + grace)
            return
        self.stopping, self.streams.keep_open = True, False
        self.loop.cancel((self, "deadline"))
        self.senders[_TERM] = "podbot"
        processes.end(self.pid, self._members(), _TERM)
        self.kill_at, self.pause = time.monotonic() + grace, 0.005
        self._await_members()

    def _members(self) -> dict[int, int]:
        return processes.members(self.pid, self.since, self.mark, self.known)

    def _await_members(self) -> None:
        """Poll until no process is left, and kill those that are left after the grace."""
        left, now = self._members(), time.monotonic()
        if left and now >= self.kill_at:
            self.senders[_KILL] = "podbot"
            processes.end(self.pid, left, _KILL)
            if now >= self.kill_at + _SURE:
                self.survivors, left = len(left), {}
        if left or (self.running and not self.survivors):
            until = self.kill_at - now
            self.loop.after(min(self.pause, until) if until > 0 else 0.01, (self, "members"), self._await_members)
            self.pause = min(self.pause * 2, 0.1)
            return
        self.stopping = False
        if self.survivors:
            self.running = False
            self.streams.close()
        elif self.adopted:
            self.streams.finish()  # without waiting for the pipes: another command's process may have them open
        self._report()

    def fail(self) -> None:
        """Called after an unexpected error in the guest: the rest of the output is lost, and the processes are killed.

        The error may be temporary, such as too many open descriptors, so the search for its processes is repeated.
        """
        if not self.reported:
            self.loop.after(_RETRY, (self, "members"), self._await_members)
            now = time.monotonic()
            if not self.stopping:
                self.stopping, self.kill_at = True, now
            if self.running:
                self.senders[_KILL] = "podbot"
                processes.quietly(os.killpg, self.pid, _KILL)
            if now >= self.kill_at + 2 * _SURE:
                self.survivors = self.survivors or 1
                self.running = self.stopping = False
        self.streams.close()
        self._report()

    def exited(self, status: int) -> None:
        """Called when its first process has ended. Output printed before that is still read as the command's."""
        self.running, self.status = False, status
        self.loop.cancel((self, "deadline"))
        now = time.monotonic()
        self.seconds, self.part_until = now - self.started, now + _PARTING
        if self.stopping:
            self.loop.after(0, (self, "members"), self._await_members)
        self.streams.finish()
        self._report()

    def _report(self) -> None:
        if self.running or self.streams.is_open or self.stopping or self.reported:
            return
        if self.streams.keep_open:
            self.streams.close_ended()
        left = self.streams.keep_open and bool(self.streams.kept_open)
        if left and self.streams.are_held() and time.monotonic() < self.part_until:
            self.loop.after(0.005, (self, "parting"), self._report)
            return
        job = self.adopt(self) if left else None
        self.reported = True
        for name in ("deadline", "members", "parting"):
            self.loop.cancel((self, name))
        if job is None and self.streams.kept_open:
            self.streams.close()
        try:
            self.streams.sink.ended(self._outcome(0 if job is None else job.number))
        finally:
            if job is not None:
                self.adopted, self.reported = True, False
                self.started, self.seconds, self.counts_before = time.monotonic(), 0.0, self.counters.counts()
                self.streams.go_on(job)

    def _outcome(self, left_job: int) -> dict[str, Any]:
        code, number = processes.outcome(self.status) if self.status >= 0 else (128 + _KILL, _KILL)
        kills, forks = self.counters.since(self.counts_before)
        # The status is the command's, which says nothing of the end of what it left.
        failed = code not in _NOT_A_CAUSE and not self.timed_out and not self.adopted
        out_of_memory = failed and code == 128 + _KILL and kills > 0
        return {
            "code": code,
            "signal": number,
            "timed_out": self.timed_out,
            "out_of_memory": out_of_memory,
            "seconds": self.seconds or time.monotonic() - self.started,
            "survivors": self.survivors,
            "memory_kills": kills,
            "forks_refused": forks,
            "disk_full": failed and processes.is_full("/"),
            "left_job": left_job,
            "cause": self._cause(number, out_of_memory),
        }

    def _cause(self, number: int | None, out_of_memory: bool) -> str:  # noqa: FBT001
        """Why it ended by something else than itself: a word of ``messages.Cause``."""
        if self.timed_out or out_of_memory:
            return "deadline" if self.timed_out else "out_of_memory"
        if self.adopted:
            return ""
        if self.senders.get(_TERM) == "sandbox_end" and number in (None, _TERM):
            return "sandbox_end"  # also of a program that has handled its TERM
        if number is None:
            return ""
        if self.terminal and number in _BY_KEY and number not in self.senders:
            return "terminal"
        return self.senders.get(number) or _KERNEL_CAUSES.get(number, "sent")
