"""The clone: made when the container runs, and removed with it."""

from __future__ import annotations

from podbot.launch.resources.clone import ClonePlan
from podbot.launch.resources.guest import guest_of
from podbot.session.resources.resource import SessionResource


class Resource(SessionResource[ClonePlan]):
    """See ``session.cloning``. Unsaved work is searched for when the container is disposed of."""

    def started(self, container: str) -> None:
        """See SessionResource. Raises CloneError subclasses."""
        from podbot.session.cloning import Inside, clone_repository

        session = self.session
        image, guest = session.plan.container.image, guest_of(session.plan)
        inside = Inside(session.engine, container, image, session.wake, guest)
        clone_repository(inside, self.plan, session.emit)
