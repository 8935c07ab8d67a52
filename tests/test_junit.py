"""pytest's JUnit reports are counted, and none of them is trusted."""

from __future__ import annotations

import pytest

from e2e.junit import Counts, counted, duration, placed, total

REPORT = """<testsuites><testsuite>
<testcase classname="e2e.test_a" name="test_one[x]" time="2.5"/>
<testcase classname="e2e.test_a" name="test_two" time="9"><failure message="m">long</failure></testcase>
<testcase classname="e2e.test_b" name="test_three"><error message="m"/></testcase>
<testcase classname="e2e.test_b" name="test_four"><skipped/></testcase>
</testsuite></testsuites>"""


def test_a_report_is_counted() -> None:
    found = counted(REPORT)
    assert (found.passed, found.failures) == (1, ("test_a::test_two", "test_b::test_three"))
    assert found.slowest[:2] == ((9.0, "test_a::test_two"), (2.5, "test_a::test_one[x]"))


def test_several_reports_are_added() -> None:
    found = total([REPORT, REPORT])
    assert (found.passed, len(found.failures), found.slowest[1][0]) == (2, 4, 9.0)
    assert total([]) == Counts()


@pytest.mark.parametrize("words", ['<!DOCTYPE a [<!ENTITY b "c">]><a/>', "<!ENTITY b 'c'>"])
def test_a_report_with_entities_is_refused(words: str) -> None:
    with pytest.raises(ValueError, match="document type"):
        counted(words)


def test_the_text_is_inserted_between_the_marks() -> None:
    assert (
        placed("a\n<!-- b -->\nold\n<!-- end -->\nb\n", "new", "<!-- b -->") == "a\n<!-- b -->\nnew\n<!-- end -->\nb\n"
    )
    with pytest.raises(ValueError, match="marks"):
        placed("a\n", "new", "<!-- b -->")


def test_durations() -> None:
    assert (duration(61.2), duration(700)) == ("61 s", "12 min")
