"""The store of conversations, locked while a session mounts it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from podbot.launch.resources.history import HistoryPlan
from podbot.session.conversation_store import history_in_use
from podbot.session.resources.resource import SessionResource


class Resource(SessionResource[HistoryPlan]):
    """See ``session.conversation_store``."""

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """See SessionResource. Raises FilesystemError subclasses."""
        with history_in_use(self.plan):
            yield
