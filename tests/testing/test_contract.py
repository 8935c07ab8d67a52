"""FakeEngine behaves as the engine contract says."""

from __future__ import annotations

import pytest

from podbot.testing import IMAGE, FakeEngine
from podbot.testing.engine_contract import EngineContract


class TestFakeEngine(EngineContract):
    @pytest.fixture
    def bare_engine(self) -> FakeEngine:
        return FakeEngine()

    @pytest.fixture
    def image(self) -> str:
        return IMAGE
