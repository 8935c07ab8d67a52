"""The additional certificate authorities. They are files of the session, so there is nothing to open."""

from __future__ import annotations

from podbot.launch.resources.certificates import CertificatesPlan
from podbot.session.resources.resource import SessionResource


class Resource(SessionResource[CertificatesPlan]):
    """See ``session.own_files``."""
