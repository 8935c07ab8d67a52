"""A server on local workspaces, and the official client on it in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.mcp.pipes import Pipes
from tests.mcp.workspaces import Served


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path)
    yield made
    made.registry.close_all()


@pytest.fixture
def pipes(served: Served) -> Iterator[Pipes]:
    made = Pipes(served)
    yield made
    if not made.number:
        made.leave()
        made.ended()
