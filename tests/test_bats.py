"""e2e/bats.py: what bats says of its tests, and how it is compared with what is expected."""

from __future__ import annotations

import pytest

from e2e.bats import PASSED, Result, results, unexpected

SAID = """1..4
ok 1 one - test
not ok 2 two
# (in test file a.bats, line 3)
#   `false' failed
ok 3 three # skip only in rootless mode
ok 4 four # skip
"""
FOUND = {
    "one - test": PASSED,
    "two": Result("failed", "# (in test file a.bats, line 3)\n#   `false' failed\n"),
    "three": Result("skipped", "only in rootless mode"),
    "four": Result("skipped", ""),
}
EXPECTED = {"two": Result("failed", "`false'"), "three": Result("skipped", "rootless"), "four": Result("skipped")}


def test_each_result_with_its_reason() -> None:
    assert results(SAID) == FOUND
    assert unexpected(FOUND, tuple(FOUND), EXPECTED) == []


def test_a_run_that_ended_early_has_no_result() -> None:
    with pytest.raises(AssertionError):
        results(SAID.replace("1..4", "1..5"))
    with pytest.raises(AssertionError):
        results("")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"one - test": Result("failed", "why")}, "one - test: failed, expected was passed \nwhy"),
        ({"two": PASSED}, "two: passed, expected was failed `false'\n"),
        ({"two": Result("failed", "another")}, "two: failed, expected was failed `false'\nanother"),
        ({"three": Result("skipped", "another")}, "three: skipped, expected was skipped rootless\nanother"),
        ({"five": PASSED}, "unknown: five"),
    ],
)
def test_what_is_not_as_expected(changed: dict[str, Result], said: str) -> None:
    assert unexpected({**FOUND, **changed}, tuple(FOUND), EXPECTED) == [said]


def test_a_test_that_did_not_run() -> None:
    assert unexpected(FOUND, (*FOUND, "five"), EXPECTED) == ["not run: five"]
