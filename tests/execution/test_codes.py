from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.execution.codes import BY_SIGNAL, OWN_FAILURE, exit_code


@pytest.mark.parametrize(
    ("status", "code"),
    [(0, 0), (1, 1), (2, 2), (126, 126), (127, 127), (143, 143), (255, 255), (256, 255), (2**31, 255), (-1, 1)],
)
def test_the_table(status: int, code: int) -> None:
    assert exit_code(status) == code


@given(st.integers())
def test_any_status_is_a_byte_and_only_success_is_success(status: int) -> None:
    code = exit_code(status)
    assert 0 <= code <= 255
    assert (code == 0) == (status == 0)
    if 0 <= status <= 255:
        assert code == status


def test_podbots_own_codes() -> None:
    assert (OWN_FAILURE, BY_SIGNAL) == (1, 128)
