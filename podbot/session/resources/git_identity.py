"""The operator's name and address for git: a file among the session's own, so nothing is to be opened."""

from __future__ import annotations

from podbot.launch.resources.git_identity import GitIdentityPlan
from podbot.session.resources.resource import SessionResource


class Resource(SessionResource[GitIdentityPlan]):
    """See ``session.own_files``."""
