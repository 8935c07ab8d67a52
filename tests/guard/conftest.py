"""What the tests of this room share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guard.trees import checkout


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return checkout(tmp_path / "shop")
