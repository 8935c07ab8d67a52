"""The ways in which podbot runs a command by a guest, for guests that lie: `exec`, `run` and `host`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from podbot.events import Event
from podbot.exec_spec import ExecSpec
from podbot.execution.hosted_end import HostedEnd, HostedLimits
from podbot.execution.runner import ExecIO, ExecSession, ExecStatus, run_exec, run_in_guest
from podbot.execution.sandbox_start import SandboxStart
from podbot.testing import STDOUT, ExecPeer, FakeEngine
from tests.execution.running import Running, Told, running
from tests.streams.channels import LineFilter
from tests.streams.plumbing import in_thread
from tests.waiting import HANG

ENGINES = b"by the engine\n"  # what the command prints if the engine runs it
SPEC = ExecSpec(("it",))
# Until the engine is asked whether the sandbox has ended, and once more, nothing is waited for.
NEVER = HostedLimits(
    term=HANG, kill=0.01, last_output=HANG, status=HANG, greeting=HANG, start_after_signal=HANG, grace=HANG,
    rest=HANG, flush=HANG, look=HANG, delivery=HANG,
)  # fmt: skip


@dataclass
class Rig(Running):
    """``place``: of the liar's socket. ``engines``: how often the engine ran the command. ``discards``: nobody
    wants its output, and the guest is told so by `exec` and `run`. ``opened``: how often `exec` opened the engine.
    ``terms``: what was told of the TERM inside."""

    place: str
    limits: HostedLimits = NEVER
    discards: bool = False
    spec: ExecSpec = SPEC
    engines: int = 0
    opened: int = 0
    witness: Told = field(default_factory=Told)
    out: bytes = b""
    err: bytes = b""
    events: list[Event] = field(default_factory=list)
    terms: list[tuple[str, bool]] = field(default_factory=list)

    def io(self) -> ExecIO:
        if self.discards:
            return ExecIO(self.stdin.read, None, None)
        told = lambda term, looked: self.terms.append((term, looked))  # noqa: E731
        return ExecIO(self.stdin.read, self.stdout.write, self.stderr.write, on_term=told)

    def by_engine(self, peer: ExecPeer) -> int:
        self.engines += 1
        peer.write(STDOUT, ENGINES)
        return 5

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        """A client that reads all that is printed; afterwards it is ``out`` and ``err``."""

        def drain_out() -> None:
            self.out = self.stdout.drain()

        def drain_err() -> None:
            self.err = self.stderr.drain()

        with in_thread(drain_out), in_thread(drain_err):
            try:
                yield
            finally:
                self.stdout.close(self.stdout.write)
                self.stderr.close(self.stderr.write)


@contextlib.contextmanager
def rigged(directory: Path) -> Iterator[Rig]:
    """See :class:`Rig`."""
    with running() as made:
        place = directory / "guest"
        os.mkdir(place)
        rig = Rig(**vars(made), place=str(place))
        made.engine.on("it", rig.by_engine)
        yield rig


def by_exec(rig: Rig) -> ExecStatus | None:
    """As `podbot exec`: None if the guest started nothing."""

    def connect() -> FakeEngine:
        rig.opened += 1
        return rig.engine

    return run_in_guest(
        rig.place, rig.name, rig.spec, rig.io(), rig.wake, connect=connect, limits=rig.limits, witness=rig.witness
    )


def by_run(rig: Rig) -> ExecStatus | None:
    """As `podbot run`."""
    return run_exec(
        rig.engine, rig.name, rig.spec, rig.io(), rig.wake, sandbox_ends=True, guest=rig.place, limits=rig.limits,
        witness=rig.witness,
    )  # fmt: skip


def by_host(rig: Rig) -> ExecStatus | None:
    """As `podbot host`, through a filter."""
    session = ExecSession(
        SandboxStart(rig.engine, rig.name, guest=rig.place, witness=rig.witness),
        spec=rig.spec,
        io=rig.io(),
        wake=rig.wake,
        policy=HostedEnd(rig.events.append, limits=rig.limits),
        through=LineFilter(),
        sandbox_ends=True,
    )
    return session.run()


Door = Callable[[Rig], ExecStatus | None]
DOORS: dict[str, Door] = {"exec": by_exec, "run": by_run, "host": by_host}
DISCARDING = {"exec": by_exec, "run": by_run}
