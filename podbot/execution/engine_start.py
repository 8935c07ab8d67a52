"""Starting a command by the engine, whose connection carries its streams.

Its runtime may say there, in place of output, that it could not start the command: several lines in the words of
programs of which the user has not heard. podbot says it in its own.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping

from podbot.engine.port import Engine, Size, StartRefusal
from podbot.errors import ContainerError, ExecFailed, SandboxPaused
from podbot.exec_spec import ExecSpec
from podbot.execution.command_control import NOTHING_SEEN, CommandControl, Started, Witness
from podbot.execution.engine_command import EngineCommand
from podbot.execution.kernel_counts import KernelCounts, counts_of
from podbot.execution.time_limits import TimeLimits
from podbot.streams.demux import Piece
from podbot.streams.sides import Duplex, EngineSide
from podbot.streams.wake import Wake


def unwatched(_exec_id: str) -> None:
    """Nobody needs to know the command's id."""


class EngineStart:
    """See ``CommandStart``. ``witness``: see Witness.

    ``created`` gets the engine's id of the command before that starts.
    """

    def __init__(
        self,
        engine: Engine,
        container: str,
        witness: Witness = NOTHING_SEEN,
        created: Callable[[str], object] = unwatched,
    ) -> None:
        self.container = container
        self._witness, self._created = witness, created
        self.control: CommandControl | None = None
        self._engine = engine

    def begin(self, spec: ExecSpec, size: Callable[[], Size | None], wake: Wake, limits: TimeLimits) -> Started:
        """See CommandStart."""
        program = spec.command[0]
        counts = self._counts()
        before = counts.read() if counts is not None else (0, 0)
        exec_id = self._engine.exec_create(self.container, spec)
        self._created(exec_id)
        try:
            stream = self._engine.exec_start(
                exec_id,
                tty=spec.tty,
                size=size() if spec.tty else None,
                sooner=lambda: limits.engine_after_signal if wake.has_signal else None,
            )
        except SandboxPaused as exc:
            raise SandboxPaused(**exc.fields | {"container": self.container}) from exc
        except ExecFailed as exc:  # the engine's answer to a start names neither
            raise ExecFailed(**exc.fields | {"container": self.container, "command": program}) from exc
        control = self.control = EngineCommand(
            self._engine,
            self.container,
            exec_id,
            program,
            limits,
            counts=counts,
            before=before,
            witness=self._witness,
        )
        side = WatchedSide(
            stream,
            tty=spec.tty,
            read=self._engine.words.start_refusal,
            runs=control.is_running,
            explain=lambda refusal: control.refused(refusal, spec),
        )
        return Started(control, side, stream.close)

    def _counts(self) -> KernelCounts | None:
        """What the kernel counts of the sandbox, if that can be seen here."""
        with contextlib.suppress(ContainerError):
            if self._engine.local:
                found = self._engine.inspect(self.container)
                return counts_of(found.id, found.pid)
        return None


class WatchedSide(EngineSide):
    """See :class:`~podbot.streams.sides.CommandSide`.

    ``read``: what the whole output says if the runtime wrote it. ``runs``: whether the command is running after all.
    ``explain``: podbot's words for a refusal, or None if the output is the command's own; it may raise.
    """

    def __init__(
        self,
        stream: Duplex,
        *,
        tty: bool,
        read: Callable[[bytes], StartRefusal | None],
        runs: Callable[[], bool],
        explain: Callable[[StartRefusal], bytes | None],
    ) -> None:
        super().__init__(stream, tty=tty)
        self._read_refusal, self._runs, self._explain = read, runs, explain
        self._error_stream = 1 if tty else 2
        self._held: list[Piece] = []
        self._settled = False

    def receive(self, ready: Mapping[int, int]) -> list[Piece]:
        """See CommandSide. The first output is held back while it reads like a refusal."""
        pieces = super().receive(ready)
        if self._settled:
            return pieces
        new = [Piece(stream, bytes(data)) for stream, data in pieces if data]
        first = bool(new) and not self._held
        self._held += new
        if not self._held:
            return []
        refusal = self._read_refusal(b"".join(bytes(data) for _, data in self._held))
        if refusal is None or (first and not self.ended and self._runs()):
            return self._release()
        if not self.ended:
            return []
        text = self._explain(refusal)
        return self._release() if text is None else [Piece(self._error_stream, text)]

    def _release(self) -> list[Piece]:
        held, self._held, self._settled = self._held, [], True
        return held
