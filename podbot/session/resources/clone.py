"""The clone: made when the container runs, and gone with it."""

from __future__ import annotations

from podbot.launch.resources.clone import ClonePlan
from podbot.session.resources.resource import SessionResource


class Resource(SessionResource[ClonePlan]):
    """See ``session.clone``. What of it is worth keeping is looked at when the container is disposed of."""

    def started(self, container: str) -> None:
        """See SessionResource. Raises CloneError subclasses."""
        from podbot.session.clone import Inside, clone_repository

        session = self.session
        inside = Inside(session.engine, container, session.plan.container.image, session.wake)
        clone_repository(inside, self.plan, session.emit)
