"""Starting a command in a sandbox: by its guest, or by the engine where there is none or it cannot run the command."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from podbot.execution.command_control import NOTHING_SEEN, CommandControl, CommandStart, Started, Witness
from podbot.execution.engine_start import EngineStart, unwatched

if TYPE_CHECKING:
    from podbot.engine.port import Engine, Size
    from podbot.exec_spec import ExecSpec
    from podbot.execution.time_limits import TimeLimits
    from podbot.streams.wake import Wake


class SandboxStart:
    """See ``CommandStart``. ``guest``: the directory of the socket of the sandbox's guest on this host, if it has one.

    ``discard``: the command's output is not read. ``witness``: see Witness. ``created``: see EngineStart.
    """

    def __init__(
        self,
        engine: Engine,
        container: str,
        *,
        guest: str | None,
        discard: bool = False,
        witness: Witness = NOTHING_SEEN,
        created: Callable[[str], object] = unwatched,
    ) -> None:
        self.container = container
        self._witness, self._created = witness, created
        self._engine, self._discard = engine, discard
        self._guest = guest if engine.local else None
        self._chosen: CommandStart | None = None

    @property
    def control(self) -> CommandControl | None:
        """See CommandStart."""
        return self._chosen.control if self._chosen is not None else None

    def begin(self, spec: ExecSpec, size: Callable[[], Size | None], wake: Wake, limits: TimeLimits) -> Started:
        """See CommandStart. Raises ChannelLost too."""
        started = self._by_guest(self._guest, spec, size, wake, limits) if self._guest is not None else None
        if started is not None:
            return started
        self._chosen = EngineStart(self._engine, self.container, self._witness, self._created)
        return self._chosen.begin(spec, size, wake, limits)

    def _by_guest(
        self, directory: str, spec: ExecSpec, size: Callable[[], Size | None], wake: Wake, limits: TimeLimits
    ) -> Started | None:
        from podbot.execution.guest_start import GuestStart, NotTaken, can_run  # few of podbot's commands need it

        if not can_run(spec):
            return None
        self._chosen = GuestStart(
            directory, self.container, lambda: self._engine, discard=self._discard, witness=self._witness
        )
        try:
            return self._chosen.begin(spec, size, wake, limits)
        except NotTaken:
            return None
