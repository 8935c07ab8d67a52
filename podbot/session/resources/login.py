"""The session's copy of a login that podbot keeps: made before the container, and kept in step with the others."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

from podbot.credentials.login_store import LoginStore
from podbot.errors import FilesystemError
from podbot.events import Event
from podbot.launch.resources.login import LoginPlan
from podbot.session.login_copies import forget, login_store, sweep
from podbot.session.resources.resource import Opening, SessionResource
from podbot.streams.wake import signals_blocked

_PAUSE = 1.0  # seconds between two looks at the files: one lstat for each session
_JOIN = 2.0


class Resource(SessionResource[LoginPlan]):
    """``pause``: seconds between two looks at the sessions' files."""

    def __init__(self, plan: LoginPlan, session: Opening, *, pause: float = _PAUSE) -> None:
        super().__init__(plan, session)
        self._pause = pause
        self._troubled = False

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """See SessionResource. Raises FilesystemError subclasses."""
        session, name = self.session, self.plan.name
        store = login_store(self.plan.store, self.plan.kind, self._refused)
        sweep(store, os.path.dirname(session.directory.path), but=name)
        with store.in_use(name):
            if not store.hand_out(name):
                text = f"the login that `podbot login {self.plan.kind}` made is gone; the agent starts without one"
                session.emit(Event("warning", "login.gone", text, {"agent": self.plan.kind}))
            stop = threading.Event()
            thread = threading.Thread(target=self._follow, args=(stop, store), name="podbot-login", daemon=True)
            with signals_blocked():
                thread.start()
            try:
                yield
            finally:
                stop.set()
                thread.join(_JOIN)
                self._end(store)

    def _follow(self, stop: threading.Event, store: LoginStore) -> None:
        while not stop.wait(self._pause):
            self._synchronize(store)

    def _synchronize(self, store: LoginStore) -> None:
        try:
            store.synchronize()
        except FilesystemError as exc:
            self._trouble(exc)

    def _end(self, store: LoginStore) -> None:
        """The last renewal, and the end of the copy unless the container is kept."""
        directory = self.session.directory
        try:
            store.synchronize()
            if not (directory.has_container or directory.handed_over):
                forget(store, self.plan.name)
        except FilesystemError as exc:
            self._trouble(exc)

    def _trouble(self, exc: FilesystemError) -> None:
        if not self._troubled:
            self._troubled = True
            text = f"a renewed login of {self.plan.kind} cannot be kept: {exc.message}"
            self.session.emit(Event("warning", "login.not_kept", text, {"agent": self.plan.kind}))

    def _refused(self, name: str, reason: str) -> None:
        if name == self.plan.name:
            text = f"what the agent wrote to its {self.plan.kind} login is not kept for other sessions: {reason}"
            self.session.emit(Event("warning", "login.refused", text, {"agent": self.plan.kind, "reason": reason}))
