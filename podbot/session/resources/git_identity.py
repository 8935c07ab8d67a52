"""The operator's name and address for git. It is one of the session's files, so there is nothing to open."""

from __future__ import annotations

from podbot.launch.resources.git_identity import GitIdentityPlan
from podbot.session.resources.resource import SessionResource


class Resource(SessionResource[GitIdentityPlan]):
    """See ``session.own_files``."""
