from __future__ import annotations

from typing import get_args

import pytest

from podbot.launch.names import KEEP, keep_label, keep_of
from podbot.launch.types import Keep


@pytest.mark.parametrize("keep", get_args(Keep))
def test_the_label_is_read_back(keep: Keep) -> None:
    assert keep_of({KEEP: keep_label(keep)}) == keep


@pytest.mark.parametrize("labels", [{}, {KEEP: ""}, {KEEP: "yes"}])
def test_any_other_label_keeps_nothing(labels: dict[str, str]) -> None:
    assert keep_of(labels) == "never"
