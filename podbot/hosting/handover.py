"""Handing the end of a hosted session over to a helper process, because clients do not wait for podbot to end it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from podbot.children import interpreter
from podbot.engine.environment import for_helper
from podbot.events import Emit, Event
from podbot.execution.command_control import LeftCommand
from podbot.session.directory import SessionDirectory
from podbot.session.disposal import Disposal
from podbot.session.flags import ENDING, flagged

if TYPE_CHECKING:
    import threading

    from podbot.engine.port import Engine
    from podbot.launch.types import SandboxPlan

SOON = 0.4  # seconds after the client's end within which podbot removes the container itself (takes 0.2-0.3 s)


class Handover:
    """A session that a helper process can take over; see ``execution.hosted_end.Successor``.

    ``helper``: path of the helper's program, which opens the engine and calls ``hosting.ending.run``.
    """

    def __init__(
        self, engine: Engine, plan: SandboxPlan, directory: SessionDirectory, emit: Emit, *, helper: str
    ) -> None:
        self._helper = helper
        self._engine = engine.words.kind
        self._endpoint = engine.endpoint
        self._disposal = Disposal.of(plan)
        self._slow = any(resource.slow_to_end for resource in plan.resources.values())
        self._directory = directory
        self._emit = emit
        self.reaper: threading.Thread | None = None  # ends with the helper process

    def clean_up_unless_soon(self, elapsed: float) -> None:
        """After the agent's end, start the helper unless the rest is quick. ``elapsed``: seconds since the client's."""
        # Searching for unsaved work, stopping and the guard's scan can take seconds. The client has left and sees no
        # report, so the next podbot command shows it.
        if elapsed > SOON or self._slow or self._disposal.keep != "never":
            self(LeftCommand(), hurried=False)

    def __call__(self, left: LeftCommand, *, hurried: bool) -> bool:
        with flagged(self._directory.path, ENDING) as ending:
            try:
                self._start(left, ending, hurried=hurried)
            except OSError as exc:
                text = f"no helper process could be started ({exc}); podbot ends the session itself"
                self._emit(Event("warning", "host.no_helper", text, {"session": self._disposal.container}))
                return False
        self._directory.handed_over = True
        text = f"the client has left; a helper process ends the session {self._disposal.container}"
        self._emit(Event("debug", "host.handover", text, {"session": self._disposal.container}))
        return True

    def _start(self, left: LeftCommand, ending: int, *, hurried: bool) -> None:
        """Raises OSError. The helper has its own process session, so killing podbot's process group does not end it."""
        import subprocess  # imported here: most sessions end without it
        import threading

        job = {
            "directory": self._directory.path,
            "endpoint": self._endpoint,
            "engine": self._engine,
            "lock": self._directory.lock,
            "container": self._disposal.container,
            "labels": dict(self._disposal.labels),
            "keep": self._disposal.keep,
            "clone": self._disposal.clone,
            "files": self._disposal.files,
            "exec_id": left.exec_id,
            "connection": left.connection,
            "state": left.state,
            "hurried": hurried,
        }
        held = [fd for fd in (self._directory.lock, self._directory.lease, ending, left.connection) if fd >= 0]
        child = subprocess.Popen(
            [interpreter(self._helper), "-I", self._helper],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=held, cwd="/",
            env=for_helper(os.environ), start_new_session=True,
        )  # fmt: skip
        # It should outlive us; if it ends first, this thread reaps it.
        self.reaper = threading.Thread(target=child.wait, name="podbot-helper-reaper", daemon=True)
        self.reaper.start()
        assert child.stdin is not None  # noqa: S101 - it is a pipe
        with child.stdin as stdin:
            stdin.write(json.dumps(job).encode())
