"""One session's copy of the host's login (ADR 0048). It follows the host, and no other session sees it.

``<state>/logins/<kind>.host/<session>/`` is a store of podbot's, as for a login of its own, with this session alone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

from podbot.agents.definition import OwnLogin
from podbot.atomic import replace_file
from podbot.credentials.login_access import FLAGS, digest, is_foreign, opened, read_file
from podbot.credentials.login_store import NAME, LoginStore
from podbot.credentials.own_login import Refused, accepted, renewed

_GIVEN = "given"  # the digest of the login that the host gave last


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
        it when the server refuses its token; then a renewed login stays. Raises Refused and FilesystemError subclasses.
        """
        data = accepted(self._spec, found) if found is not None else None
        with self._locked():
            login = self._login()
            if login is not None:
                self._synchronize(login)
            if data is None:
                if not (emptied and self._is_renewed()):
                    self._remove()
            elif login is None or self._given() != digest(data):
                self._save(data)
                replace_file(self._given_path, digest(data).encode(), operation="note the host's login")

    def is_left(self) -> bool:
        """Whether no podbot uses the copy. Raises FilesystemError subclasses."""
        if not os.path.isdir(os.path.dirname(self._mounted)):
            return False  # also while a session makes it, with the lock
        with self._locked():
            return not self.is_in_use(self.name)

    def withdraw(self) -> None:
        """Take the login out of the session, which is stopped; only one that it has renewed is kept for its next start.

        A login of another account, which the user made inside, stays where it is, and so does a file that podbot cannot
        read. Raises FilesystemError subclasses.
        """
        with self._locked():
            login = self._login()
            if login is not None:
                self._synchronize(login)
            with contextlib.suppress(OSError), opened(self._mounted) as handle:
                if is_foreign(handle, self._file) or self._is_another(handle):
                    return
                os.unlink(self._file, dir_fd=handle)
            if not self._is_renewed():
                with contextlib.suppress(OSError):
                    os.unlink(self.path)

    @property
    def _mounted(self) -> str:
        return os.path.join(self._sessions(), self.name, NAME)

    def _is_another(self, handle: int) -> bool:
        """Whether the session's file has a login of another account than the host's."""
        login, found = self._login(), read_file(handle, self._file)
        if login is None or found is None:
            return False
        try:
            renewed(self._spec, login, found[0])
        except Refused as exc:
            return exc.another
        return False

    def _is_renewed(self) -> bool:
        """Whether the login is another one than the host gave."""
        login = self._login()
        return login is not None and digest(login) != self._given()

    def _given(self) -> str:
        try:
            with open(os.open(self._given_path, FLAGS), "rb") as file:
                return file.read(4096).decode("ascii", "replace")
        except OSError:
            return ""
