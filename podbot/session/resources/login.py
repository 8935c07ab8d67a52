"""The session's copy of a login that podbot keeps: made before the container, and kept in step with the others."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

from podbot.credentials.host_login import HostLogin
from podbot.credentials.login_access import Mark, mark
from podbot.credentials.login_reading import login_to_copy, read_login_files
from podbot.credentials.login_store import LoginStore
from podbot.errors import FilesystemError
from podbot.events import Event
from podbot.launch.resources.login import LoginPlan
from podbot.session.login_copies import end_host_copy, forget, host_copy, login_store, sweep, sweep_host
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
        self._host: Mark | None = None  # of the host's file when it was last read

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """See SessionResource. Raises FilesystemError subclasses."""
        session, name, kind = self.session, self.plan.name, self.plan.kind
        store = self._store()
        stop = threading.Event()
        thread = threading.Thread(target=self._follow, args=(stop, store), name="podbot-login", daemon=True)
        with store.in_use(name):
            try:
                if isinstance(store, HostLogin):
                    self._follow_host(store)
                if not store.hand_out(name):
                    which = f"this host's login of {kind}"
                    if not self.plan.of_host:
                        which = f"the login that `podbot login {kind}` made"
                    text = f"{which} is gone; the agent starts without one"
                    session.emit(Event("warning", "login.gone", text, {"agent": kind}))
                with signals_blocked():
                    thread.start()
                yield
            finally:
                stop.set()
                if thread.ident is not None:
                    thread.join(_JOIN)
                self._end(store)

    def _store(self) -> LoginStore:
        plan, runtime = self.plan, os.path.dirname(self.session.directory.path)
        if plan.of_host:
            sweep_host(os.path.dirname(plan.store), plan.kind, runtime, but=plan.name)
            return host_copy(plan.store, plan.kind, self._refused)
        store = login_store(plan.store, plan.kind, self._refused)
        sweep(store, runtime, but=plan.name)
        return store

    def _follow_host(self, copy: HostLogin) -> None:
        """Take the host's login of this moment. Raises FilesystemError subclasses."""
        if not self.plan.is_there:
            return
        self._host = mark(self.plan.source)
        if not os.path.lexists(self.plan.source):
            copy.follow(None)
        elif isinstance(found := self._host_file(), bytes):  # what cannot be read says nothing
            copy.follow(self._login_in(found), emptied=True)

    def _host_file(self) -> bytes | str | None:
        directory, name = os.path.split(self.plan.source)
        return read_login_files(directory, (name,)).get(name) if self.plan.is_there else None

    def _login_in(self, found: bytes) -> bytes | None:
        login, alone = login_to_copy(self.plan.kind, found, renewable=self.plan.renewable)
        return login if alone and isinstance(login, bytes) else None

    def _follow(self, stop: threading.Event, store: LoginStore) -> None:
        while not stop.wait(self._pause):
            self._synchronize(store)

    def _synchronize(self, store: LoginStore) -> None:
        try:
            if isinstance(store, HostLogin) and (now := mark(self.plan.source)) != self._host:
                found = self._host_file()
                # The host may be writing it at this moment: a missing or empty one counts at the next start.
                if isinstance(found, bytes) and (login := self._login_in(found)) is not None:
                    store.follow(login)
                self._host = now  # from before it was read; not noted if it could not be kept, so that this is repeated
            store.synchronize()
        except FilesystemError as exc:
            self._trouble(exc)

    def _end(self, store: LoginStore) -> None:
        """The last renewal, and the end of the copy. A container that is kept gets the host's again when it starts."""
        directory = self.session.directory
        try:
            store.synchronize()
            if directory.handed_over:
                return
            if isinstance(store, HostLogin):
                store.withdraw() if directory.has_container else end_host_copy(store)
            elif not directory.has_container:
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
            whom = "" if self.plan.of_host else " for other sessions"
            text = f"what the agent wrote to its {self.plan.kind} login is not kept{whom}: {reason}"
            self.session.emit(Event("warning", "login.refused", text, {"agent": self.plan.kind, "reason": reason}))
