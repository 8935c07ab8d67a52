"""A real guest as a process of this host, and its channel."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from podbot.guest.channel import Channel
from podbot.guest.local import LocalGuest
from tests.guest.liar import PATIENT
from tests.inside import PROGRAM


@pytest.fixture(scope="module")
def guest() -> Iterator[LocalGuest]:
    with LocalGuest.start(patience=PATIENT, program=PROGRAM) as found:
        yield found


@pytest.fixture
def channel(guest: LocalGuest) -> Channel:
    return guest.channel
