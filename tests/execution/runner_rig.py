"""What the tests of ``run_exec`` on a fake engine share: real sockets, the real relay, commands that are functions."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from podbot.engine.port import Size
from podbot.exec_spec import ExecSpec
from podbot.execution.runner import ExecIO, ExecStatus, run_exec
from podbot.execution.time_limits import TimeLimits
from podbot.testing import Command
from tests.execution.running import Running
from tests.waiting import HANG

NEVER = TimeLimits(term=HANG, kill=HANG, last_output=HANG, status=HANG, shell=HANG)


@dataclass
class Rig(Running):
    terminal: list[str] = field(default_factory=list)
    size: Size | None = None
    limits: TimeLimits = NEVER

    def run(
        self,
        command: Command,
        *,
        tty: bool = False,
        stdin: bool = True,
        io: ExecIO | None = None,
        sandbox_ends: bool = False,
    ) -> ExecStatus:
        self.engine.on("it", command)
        spec = ExecSpec(command=("it", "--flag"), tty=tty, stdin=stdin)
        return self.exec(spec, io, sandbox_ends=sandbox_ends)

    def exec(self, spec: ExecSpec, io: ExecIO | None = None, *, sandbox_ends: bool = False) -> ExecStatus:
        return run_exec(
            self.engine,
            self.name,
            spec,
            io or self.io(),
            self.wake,
            sandbox_ends=sandbox_ends,
            limits=self.limits,
        )

    def io(self) -> ExecIO:
        return ExecIO(self.stdin.read, self.stdout.write, self.stderr.write, lambda: self.size, self.on_terminal)

    @contextlib.contextmanager
    def on_terminal(self) -> Iterator[None]:
        self.terminal.append("raw")
        try:
            yield
        finally:
            self.terminal.append("restored")

    @property
    def session_codes(self) -> list[int | None]:
        return [session.code for session in self.engine.sessions.values() if session.spec.command[0] == "it"]
