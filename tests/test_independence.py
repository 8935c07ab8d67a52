"""No fast test depends on the machine's speed, or on the order in which tests run: the kinds of code that would."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator

import pytest

TESTS = os.path.dirname(__file__)
E2E = os.path.join(os.path.dirname(TESTS), "e2e")
ALLOWED = "waiting.py"  # what every other test waits with

CLOCKS = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns"}


def complaints(source: str) -> list[tuple[int, str]]:
    """(Line, what is wrong there) of a test's source."""
    if not any(word in source for word in (*CLOCKS, "sleep", "setattr")):
        return []
    tree = ast.parse(source)
    ours = set(_podbot_names(tree))
    return sorted({found for node in ast.walk(tree) for found in _wrong(node, ours)})


def _wrong(node: ast.AST, ours: set[str]) -> Iterator[tuple[int, str]]:
    if (
        isinstance(node, ast.ImportFrom)
        and node.module == "time"
        and {name.name for name in node.names} & {"sleep", *CLOCKS}
    ):
        yield node.lineno, "write `import time`, so that its use can be seen"
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        if name == "time.sleep":
            yield node.lineno, "sleeps: wait_until or pause of tests/waiting.py"
        if name in {"asyncio.sleep", "anyio.sleep"} and ast.unparse(node.args[0]) != "0":
            yield node.lineno, "sleeps: async_wait_until of tests/waiting.py"
        if name.endswith(".setattr") and node.args and _is_ours(node.args[0], ours):
            yield node.lineno, "patches podbot: hand the value in"
    for bounded, _ in _upper_bounds(node):
        if _reads_clock(bounded):
            yield bounded.lineno, "an upper bound on elapsed time: wait for an event with tests/waiting.py"


def _upper_bounds(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """(What is bounded, its bound) of a comparison; nothing of other nodes."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
            if isinstance(operator, ast.Lt | ast.LtE):
                yield left, right
            elif isinstance(operator, ast.Gt | ast.GtE):
                yield right, left


def _podbot_names(tree: ast.Module) -> Iterator[str]:
    """What the test calls podbot's modules and what it imported from them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "podbot":
            yield from (name.asname or name.name for name in node.names)
        if isinstance(node, ast.Import):
            yield from (name.asname or "podbot" for name in node.names if name.name.partition(".")[0] == "podbot")


def _is_ours(target: ast.expr, ours: set[str]) -> bool:
    if isinstance(target, ast.Constant):
        return str(target.value).startswith("podbot.")
    return ast.unparse(target).partition(".")[0] in ours


def _reads_clock(side: ast.expr) -> bool:
    return any(
        isinstance(node, ast.Attribute) and ast.unparse(node) in {f"time.{name}" for name in CLOCKS}
        for node in ast.walk(side)
    )


def sources(folder: str) -> Iterator[tuple[str, str]]:
    """(Path below the folder, text) of each Python file."""
    for place, _, names in os.walk(folder):
        for name in filter(lambda name: name.endswith(".py"), names):
            path = os.path.join(place, name)
            with open(path, encoding="utf-8") as file:
                yield os.path.relpath(path, folder), file.read()


def test_no_fast_test_depends_on_speed() -> None:
    found = [
        f"{path}:{line}: {what}" for path, text in sources(TESTS) if path != ALLOWED for line, what in complaints(text)
    ]
    assert not found, "\n".join(found)


def test_the_bounds_of_end_to_end_tests_are_longer_on_a_slow_machine() -> None:
    """A bound that is a plain number would not be; so `bound` or `patient` of e2e/patience.py makes it."""
    found = [
        f"{path}:{bounded.lineno}"
        for path, text in sources(E2E)
        if os.path.basename(path).startswith("test_") and "monotonic" in text
        for node in ast.walk(ast.parse(text))
        for bounded, by in _upper_bounds(node)
        if _reads_clock(bounded) and isinstance(by, ast.Constant)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "time.sleep(0.1)",
        "from time import sleep",
        "from time import monotonic as now",
        "async def f(): await asyncio.sleep(0.1)",
        "assert time.monotonic() - began < 5",
        "assert 5 >= time.perf_counter() - began",
        "while not done() and time.monotonic() < end: pass",
        "monkeypatch.setattr('podbot.session.guarding.FIRST', 1)",
        "from podbot.session import guarding\nmonkeypatch.setattr(guarding, 'FIRST', 1)",
        "from podbot.github.app_client import Requester\npatch.setattr(Requester.time, 'sleep', print)",
        "import podbot.events\npatch.setattr(podbot.events, 'Event', print)",
    ],
)
def test_what_is_not_allowed(line: str) -> None:
    assert len(complaints(line)) == 1


@pytest.mark.parametrize(
    "line",
    [
        "relay.run(time.monotonic() + 0.02)",
        "assert time.monotonic() - began >= 0.03",
        "async def f(): await asyncio.sleep(0)",
        "monkeypatch.setattr(os, 'write', print)",
        "program = 'import time; time.sleep(60)'",
    ],
)
def test_what_is_allowed(line: str) -> None:
    assert not complaints(line)
