"""The session's copy of a login that podbot keeps: made before the container, and kept in step with the others."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

from podbot.credentials.login_reading import copied_login, read_login_files
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
            if self.plan.of_host:
                self._follow_host(store)
            if not store.hand_out(name):
                whose = (
                    "that this host had for it" if self.plan.of_host else f"that `podbot login {self.plan.kind}` made"
                )
                text = f"the login of {self.plan.kind} {whose} is gone; the agent starts without one"
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

    def _follow_host(self, store: LoginStore) -> None:
        """Take the host's login of this moment. Raises FilesystemError subclasses."""
        directory, name = os.path.split(self.plan.source)
        found = read_login_files(directory, (name,)).get(name, "") if name else ""
        login, alone = copied_login(self.plan.kind, found, renewable=self.plan.renewable)
        store.follow(login if alone and isinstance(login, bytes) else None)

    def _follow(self, stop: threading.Event, store: LoginStore) -> None:
        while not stop.wait(self._pause):
            self._synchronize(store)

    def _synchronize(self, store: LoginStore) -> None:
        try:
            store.synchronize()
        except FilesystemError as exc:
            self._trouble(exc)

    def _end(self, store: LoginStore) -> None:
        """The last renewal, and the end of the copy; a container that is kept gets it again when it is started."""
        directory = self.session.directory
        try:
            store.synchronize()
            if not (directory.has_container or directory.handed_over):
                forget(store, self.plan.name)
            elif not directory.handed_over:
                store.withdraw(self.plan.name)
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
