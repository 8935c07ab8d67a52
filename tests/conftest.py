"""No deadline for a property's example: the machine may be busy, and a hang is the test's own to bound."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("podbot", deadline=None)
settings.load_profile("podbot")
