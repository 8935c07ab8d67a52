"""A real guest as a process of this host, and a files worker that it runs in a temporary workspace."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.guest.local import LocalGuest
from podbot.tools.files import Files
from tests.guest.liar import PATIENT
from tests.inside import PROGRAM
from tests.tools.workers import files_in


@pytest.fixture(scope="module")
def guest() -> Iterator[LocalGuest]:
    with LocalGuest.start(patience=PATIENT, program=PROGRAM) as found:
        yield found


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The workspace. What is beside it must not be reached."""
    made = tmp_path / "workspace"
    made.mkdir()
    return made


@pytest.fixture
def files(guest: LocalGuest, root: Path) -> Iterator[Files]:
    with files_in(guest, root) as found:
        yield found
