"""What the tests of this room share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.github.still import REPO, StillGitHub


@pytest.fixture
def github() -> Iterator[StillGitHub]:
    with StillGitHub(repositories=(REPO, "octo/other")) as server:
        yield server
