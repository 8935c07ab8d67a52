"""What bats, which runs tests in shell scripts, says of them, and how it is compared with what is expected."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple


class Result(NamedTuple):
    """``status``: passed, skipped or failed. ``said``: why; of what is expected, a pattern for it."""

    status: str
    said: str = ""


PASSED = Result("passed")


def results(protocol: str) -> dict[str, Result]:
    """The result of each test in the Test Anything Protocol; none may be missing."""
    plan, *parts = re.split(r"(?m)^(?=(?:not )?ok \d+ )", protocol)
    found = {}
    for part in parts:
        first, _, rest = part.partition("\n")
        line = re.fullmatch(r"(not )?ok \d+ (.*?)(?: # skip ?(.*))?", first)
        assert line, first
        if line[3] is not None:
            found[line[2]] = Result("skipped", line[3])
        else:
            found[line[2]] = Result("failed", rest) if line[1] else PASSED
    assert plan.split("\n")[0] == f"1..{len(found)}", protocol
    return found


def unexpected(found: Mapping[str, Result], names: tuple[str, ...], expected: Mapping[str, Result]) -> list[str]:
    """What is not as expected; tests that are not in ``expected`` pass. A difference that has vanished counts, too."""
    wrong = [f"not run: {name}" for name in names if name not in found]
    wrong += [f"unknown: {name}" for name in found if name not in names]
    for name in filter(found.__contains__, names):
        (status, said), wanted = found[name], expected.get(name, PASSED)
        if status != wanted.status or not re.search(wanted.said, said):
            wrong.append(f"{name}: {status}, expected was {wanted.status} {wanted.said}\n{said}")
    return wrong
