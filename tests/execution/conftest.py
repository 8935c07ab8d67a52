"""What the tests of this room share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.execution.hosted_rig import Rig
from tests.execution.running import Running, running


@pytest.fixture
def container() -> Iterator[Running]:
    """A running container without a guest."""
    with running() as made:
        yield made


@pytest.fixture
def rig(container: Running) -> Rig:
    return Rig(**vars(container))
