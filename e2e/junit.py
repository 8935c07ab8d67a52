"""pytest's reports as JUnit files, and text between marks of a page."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Counts:
    """``failures``: names of failed tests; ``slowest``: (seconds, name), the slowest first."""

    passed: int = 0
    failures: tuple[str, ...] = ()
    slowest: tuple[tuple[float, str], ...] = ()


def counted(junit: str) -> Counts:
    """The results in one report. It may come from a machine of a test, so it has no entities to expand.

    Raises ValueError for a document type, and ET.ParseError for what is no XML.
    """
    if "<!DOCTYPE" in junit or "<!ENTITY" in junit:
        raise ValueError("a report with a document type")
    passed, failures, took = 0, [], []
    for case in ET.fromstring(junit).iter("testcase"):
        kinds = {child.tag for child in case}
        name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name', '')}"
        took.append((float(case.get("time", "0")), name))
        if kinds & {"failure", "error"}:
            failures.append(name)
        elif "skipped" not in kinds:
            passed += 1
    return Counts(passed, tuple(failures), tuple(sorted(took, reverse=True)))


def total(reports: Iterable[str]) -> Counts:
    """The sum of several reports."""
    each = [counted(report) for report in reports]
    slowest = sorted((entry for one in each for entry in one.slowest), reverse=True)
    return Counts(sum(one.passed for one in each), tuple(name for one in each for name in one.failures), tuple(slowest))


def placed(page: str, text: str, begin: str, end: str = "<!-- end -->") -> str:
    """``page`` with ``text`` between the marks. Raises ValueError when it has none."""
    before, found, rest = page.partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise ValueError(f"the page has lost its marks: {begin}")
    return f"{before}{begin}\n{text}\n{end}{after}"


def duration(seconds: float) -> str:
    """``61 s`` or ``12 min``."""
    return f"{seconds / 60:.0f} min" if seconds >= 90 else f"{seconds:.0f} s"
