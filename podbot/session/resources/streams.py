"""The directory of named pipes: made anew for each session."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from podbot.launch.pipes import pipes_directory
from podbot.launch.resources.streams import StreamsPlan
from podbot.places import private_dir
from podbot.session.resources.resource import SessionResource
from podbot.session.sessions import remove_directory


class Resource(SessionResource[StreamsPlan]):
    """It goes with the session's own directory."""

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """See SessionResource."""
        # A new directory: another engine, which was not asked, may have a container that mounts the one there.
        remove_directory(self.plan.directory)
        private_dir(self.plan.directory)
        yield

    @classmethod
    def restore(cls, session_dir: str) -> None:
        """See SessionResource."""
        private_dir(pipes_directory(session_dir))
