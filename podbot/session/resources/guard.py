"""The guard: a scan of the workspace before anything runs, and a report when the container is gone."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from podbot.engine.port import ContainerInfo
from podbot.launch.resources.guard import GuardPlan
from podbot.session.guarding import Watch
from podbot.session.resources.resource import Opening, SessionResource


class Resource(SessionResource[GuardPlan]):
    """See ``session.guarding``."""

    def __init__(self, plan: GuardPlan, session: Opening) -> None:
        super().__init__(plan, session)
        self._watch = Watch(session.plan.session, plan, session.directory, session.emit, session.scanner)

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """See SessionResource. The result is ``directory.guard``."""
        self._watch.begin()
        try:
            yield
        finally:
            try:
                self.session.directory.guard = self._watch.end()
            finally:
                self._watch.close()

    def starting(self) -> None:
        """See SessionResource."""
        self._watch.ready()

    def inspected(self, found: ContainerInfo) -> None:
        """See SessionResource."""
        self._watch.started(found)

    def ending(self) -> None:
        """See SessionResource."""
        self._watch.prepare()
