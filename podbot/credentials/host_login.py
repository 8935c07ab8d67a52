"""One session's copy of the host's login (ADR 0048). It follows the host, and no other session sees it.

``<state>/logins/<kind>.host/<session>/`` is a store of podbot's, as for a login of its own, with this session alone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from podbot.agents.definition import OwnLogin
from podbot.atomic import replace_file, sweep_at
from podbot.credentials.login_access import FLAGS, digest, is_foreign, opened, read_file
from podbot.credentials.login_store import NAME, LoginStore
from podbot.credentials.own_login import Refused, accepted, renewed, tokens_of

_GIVEN = "given"  # the mark of the login that the host gave last


class HostLogin(LoginStore):
    """The copy of the session ``name``, in the directory ``root`` of its own. ``refused``: see LoginStore."""

    def __init__(
        self,
        root: str,
        spec: OwnLogin,
        name: str,
        *,
        refused: Callable[[str, str], object] = lambda _name, _reason: None,
    ) -> None:
        super().__init__(root, spec, refused=refused)
        self.name = name
        self._given_path = os.path.join(root, _GIVEN)

    def follow(self, found: bytes | None, *, emptied: bool = False) -> None:
        """Keep the login in ``found``, the host's file, unless the session has renewed it since the host gave it.

        None: the host has none any more, and the copy is removed. ``emptied``: its file has no login, as Claude leaves
        it when the server refuses its token; then a renewed login stays. A login that the user made inside stays in the
        session. Raises Refused and FilesystemError subclasses.
        """
        data = accepted(self._spec, found) if found is not None else None
        with self._locked():
            login = self._login()
            if login is not None:
                self._synchronize(login)
            if data is None:
                if not (emptied and self._is_renewed()):
                    self._end()
            elif self._login() is None or self._given() != self._mark(data):
                self._begin(data)

    def synchronize(self) -> bool:
        """See LoginStore. Nothing is made where the copy was removed, as by `podbot stop --rm`."""
        return os.path.isdir(self.root) and super().synchronize()

    def is_left(self) -> bool:
        """Whether no podbot uses the copy. Raises FilesystemError subclasses."""
        if not os.path.isdir(self.root):
            return False
        with self._locked():
            return not self.is_in_use(self.name)

    def withdraw(self) -> None:
        """Take the login out of the session, which is stopped; only one that it has renewed is kept for its next start.

        A login that the user made inside stays where it is, and so does a file that podbot cannot read. Raises
        FilesystemError subclasses.
        """
        if not os.path.isdir(self.root):
            return
        with self._locked():
            login = self._login()
            if login is not None:
                self._synchronize(login)
            with contextlib.suppress(OSError), opened(self._mounted) as handle:
                sweep_at(handle, self._file)
                if is_foreign(handle, self._file) or self._is_users(handle):
                    return
                os.unlink(self._file, dir_fd=handle)
            if not self._is_renewed():
                self._drop()

    @property
    def _mounted(self) -> str:
        return os.path.join(self._sessions(), self.name, NAME)

    # --- with the lock ---

    def _begin(self, data: bytes) -> None:
        """Keep another login of the host."""
        if self._has_users():
            replace_file(self.path, data, operation="keep the host's login")
        elif (login := self._login()) is None or self._mark(login) != self._mark(data):
            self._save(data)
        replace_file(self._given_path, self._mark(data).encode(), operation="note the host's login")

    def _end(self) -> None:
        if self._has_users():
            self._drop()
        else:
            self._remove()

    def _drop(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.path)

    def _has_users(self) -> bool:
        with contextlib.suppress(OSError), opened(self._mounted) as handle:
            return self._is_users(handle)
        return False

    def _is_users(self, handle: int) -> bool:
        """Whether the session's file has a login that is not the host's, which the user must have made inside."""
        login, found = self._login(), read_file(handle, self._file)
        if found is None:
            return False
        try:
            if login is None:
                accepted(self._spec, found[0])
                return True
            renewed(self._spec, login, found[0])
        except Refused as exc:
            return exc.another
        return False

    def _is_renewed(self) -> bool:
        """Whether the login is another one than the host gave."""
        login = self._login()
        return login is not None and self._mark(login) != self._given()

    def _mark(self, login: bytes) -> str:
        """A text that differs for another login. The host's agent can change the rest of its file at any time."""
        try:
            return digest(tokens_of(self._spec, login))
        except Refused:  # podbot wrote it
            return ""

    def _given(self) -> str:
        try:
            with open(os.open(self._given_path, FLAGS), "rb") as file:
                return file.read(4096).decode("ascii", "replace")
        except OSError:
            return ""
