"""The operator's logins: read before the container is created, and copied into it before it starts."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator

from podbot.credentials.pack import Bundle, pack, upload
from podbot.errors import SessionNotRestorable
from podbot.events import ignore
from podbot.launch.resources.credentials import CredentialsPlan
from podbot.session.resources.resource import Opening, SessionResource


class Resource(SessionResource[CredentialsPlan]):
    """The archive is held in memory only."""

    def __init__(self, plan: CredentialsPlan, session: Opening) -> None:
        super().__init__(plan, session)
        self._bundle = Bundle()
        self._emit = session.emit

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """See SessionResource. Raises CredentialUnreadable and CredentialsTooLarge."""
        with self.session.wake.interruptible():
            self._bundle = pack(self.plan, self.session.emit)
        yield

    def starting(self) -> None:
        """See SessionResource. Raises SessionNotRestorable for a link that the copy would follow."""
        session = self.session
        if not (session.again and self._bundle.archive):
            return
        found = link_in(session.engine.inspect(session.plan.session).storage, self._bundle.through)
        if found is not None:
            path, text = found
            raise SessionNotRestorable(
                session=session.plan.session,
                reason=f"its {path} was replaced by a link to {text}, which a copy of your settings would follow",
                hint="Remove it; the engine's own program can still start the container.",
            )

    def created(self, container: str) -> None:
        """See SessionResource. Raises UploadFailed."""
        upload(self.session.engine, container, self._bundle, self._emit)
        self._emit = ignore  # a second attempt reports nothing again


def link_in(storage: str, directories: Iterable[str]) -> tuple[str, str] | None:
    """The first of the ``directories`` inside that is a link in a stopped container's own files, and its text.

    ``storage``: the directory on this host with what was written inside, or empty. ``directories``: absolute, parents
    first. None also where there is no telling: another storage driver, or a store of another user's. The copy would
    follow a link, into the workspace too, where its files are on this host. An agent can put them there itself, but
    only knowingly, and podbot must not do it for one.
    """
    for path in directories if storage else ():
        place = os.path.join(storage, path.lstrip("/"))
        try:
            if stat.S_ISLNK(os.lstat(place).st_mode):
                return path, os.readlink(place)
        except OSError:  # it is as in the image, or cannot be seen
            continue
    return None
