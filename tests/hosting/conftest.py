"""What the tests of this room share."""

from __future__ import annotations

import pytest

from podbot.events import Event


@pytest.fixture
def events() -> list[Event]:
    """What was reported, when ``events.append`` is the ``emit``."""
    return []
