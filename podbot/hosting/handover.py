"""Leaving the end of a hosted session to a process of its own, because clients do not wait for podbot's."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from podbot.children import interpreter
from podbot.events import Emit, Event
from podbot.launch.resources.guard import GuardPlan
from podbot.session.disposal import Disposal
from podbot.session.flags import ENDING, flagged
from podbot.session.sessions import SessionDirectory

if TYPE_CHECKING:
    import threading

    from podbot.engine.port import Engine
    from podbot.launch.types import SandboxPlan

SOON = 0.4  # seconds since the client left within which podbot removes a container by itself (0.2-0.3 s)
_PASSED_ON = ("PATH", "HOME", "LD_LIBRARY_PATH", "XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR")


class Handover:
    """A session that a helper process can take over; see ``execution.hosted.Successor``.

    ``helper``: path of the program that is the helper process; it opens the engine and calls ``hosting.ending.run``.
    """

    def __init__(
        self, engine: Engine, plan: SandboxPlan, directory: SessionDirectory, emit: Emit, *, helper: str
    ) -> None:
        self._helper = helper
        self._engine = engine.words.kind
        self._endpoint = engine.endpoint
        self._disposal = Disposal.of(plan)
        self._guarded = plan.find(GuardPlan) is not None
        self._directory = directory
        self._emit = emit
        self.reaper: threading.Thread | None = None  # ends with the helper process

    def clean_up_unless_soon(self, elapsed: float) -> None:
        """For an agent that has ended. ``elapsed``: seconds since the client left."""
        # To look for unsaved work, to stop, and to look at what the agent left can take seconds; and who has left reads
        # no report, which the next podbot command says.
        if elapsed > SOON or self._guarded or self._disposal.keep != "never":
            self("", (), hurried=False)

    def __call__(self, exec_id: str, descriptors: Sequence[int], *, hurried: bool) -> bool:
        with flagged(self._directory.path, ENDING) as ending:
            try:
                self._start(exec_id, list(descriptors), ending, hurried=hurried)
            except OSError as exc:
                text = f"no helper process could be started ({exc}); podbot ends the session itself"
                self._emit(Event("warning", "host.no_helper", text, {"session": self._disposal.container}))
                return False
        self._directory.handed_over = True
        text = f"the client has left; a helper process ends the session {self._disposal.container}"
        self._emit(Event("debug", "host.handover", text, {"session": self._disposal.container}))
        return True

    def _start(self, exec_id: str, descriptors: list[int], ending: int, *, hurried: bool) -> None:
        """Raises OSError. In a session of its own: who kills podbot's process group does not end it."""
        import subprocess  # here, for most sessions end without it
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
            "exec_id": exec_id,
            "descriptors": descriptors,
            "hurried": hurried,
        }
        held = [fd for fd in (self._directory.lock, ending, *descriptors) if fd >= 0]
        child = subprocess.Popen(
            [interpreter(self._helper), "-I", self._helper],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=held, cwd="/",
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ}, start_new_session=True,
        )  # fmt: skip
        # It is meant to outlive us; where it does not, somebody must reap it.
        self.reaper = threading.Thread(target=child.wait, name="podbot-helper-reaper", daemon=True)
        self.reaper.start()
        assert child.stdin is not None  # noqa: S101 - it is a pipe
        with child.stdin as stdin:
            stdin.write(json.dumps(job).encode())
