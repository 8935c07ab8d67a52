"""A process in the workspace exchanges directories and links while all tools of a suite run.

Its links lead to a directory that exists both where the commands run and on this host, with the same path: neither the
tools there nor podbot's own work on this host may touch it. ``test_tool_files`` does the same with the files alone.
"""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from e2e.harness import World, processes, wait_for
from e2e.suites import KINDS, Tools, opened
from tests.tools.swapping import PATHS, SWAPPER

ROUNDS = {"podman": 10_000, "local": 1_000}
CALLS = 600
MAKE = "mkdir -p {0}/e; for f in file e/file kept; do echo OUTSIDE > {0}/$f; done"
NOW = "cd {0} && find . -printf '%p %m %s %T@\\n' | sort; tail -n +1 file e/file kept"


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_outside_is_touched_while_all_tools_run(shared_world: World, kind: str) -> None:
    outside = Path(shared_world.workspace("outside"))
    with opened(shared_world, kind) as tools:
        tools.run(MAKE.format(outside))
        if kind == "podman":
            (outside / "e").mkdir()
            for name in ("file", "e/file", "kept"):
                (outside / name).write_text("OUTSIDE\n")
        on_host, inside = facts(outside), tools.run(NOW.format(outside))
        start_swapping(tools, str(outside), ROUNDS[kind])
        seen = Counter[str]()
        for number in itertools.count():
            use(tools, number, seen)
            if number >= CALLS and not number % 50 and "enough" in tools.value("read_file", file_path="said").content:
                break
        assert tools.run(NOW.format(outside)) == inside
        if kind == "podman":  # the swapping ends with its container, at some point of a round
            tools.workspace.stop()
            assert tools.value("write_file", file_path="again", content="x").path == "again"
    wait_for(lambda: not [words for _, words in processes() if f" {outside} " in words], what="the end of the swaps")
    assert facts(outside) == on_host
    assert all(seen[tool] for tool in CALLED), seen
    assert seen["link"] > 10, seen


def facts(outside: Path) -> list[tuple[Any, ...]]:
    """Everything in it: name, mode, size, time of the last change, and content."""
    return [
        (str(path.relative_to(outside)), found.st_mode, found.st_size, found.st_mtime_ns,
         path.read_bytes() if path.is_file() else b"")
        for path in sorted([outside, *outside.rglob("*")])
        for found in [path.lstat()]
    ]  # fmt: skip


def start_swapping(tools: Tools, outside: str, rounds: int) -> None:
    """It runs until it is killed, with the end of its container or of the workspace."""
    tools.value("write_file", file_path="swap.py", content=SWAPPER)
    line = f'sleep 3600 | python3 swap.py "$PWD" {outside} {rounds} > said'
    job = tools.workspace.shell.start(["sh", "-c", line])
    wait_for(lambda: "ready" in tools.run("cat said 2>/dev/null; true"), what="the swaps")
    assert job.poll().running


CALLED = ("read_file", "ls", "edit_file", "write_file", "grep", "glob", "rm", "shell_execute", "evaluate_python")


def use(tools: Tools, number: int, seen: Counter[str]) -> None:
    """One call. ``seen``: counts the successes of each tool, and refusals for a link."""
    names = PATHS[number // 11 % len(PATHS)]
    path, directory = "/".join(names), "/".join(names[:-1])
    calls: tuple[tuple[str, dict[str, Any]], ...] = (
        ("read_file", {"file_path": path}),
        ("ls", {"path": directory}),
        ("edit_file", {"file_path": path, "old_string": "mine", "new_string": "mine"}),
        ("edit_file", {"file_path": path, "old_string": "OUTSIDE", "new_string": "mine"}),
        ("write_file", {"file_path": f"{directory}/new{number}", "content": "mine\n"}),
        ("grep", {"pattern": "E|m", "glob": "[fk]*"}),
        ("glob", {"pattern": "**/kept", "path": directory}),
        ("rm", {"path": names[0]}),
        ("grep", {"pattern": "OUTSIDE", "path": directory, "glob": "[fk]*"}),
        ("shell_execute", {"command": ["true"], "cwd": directory}),
        ("evaluate_python", {"code": "open('program', 'w').write('x')"}),
    )
    tool, arguments = calls[number % len(calls)]
    result = tools.call(tool, **arguments)
    seen[tool] += result.success
    seen["link"] += "is a symbolic link" in result.message
    if result.success:
        text = result.render()
        assert "OUTSIDE" not in text, text
        assert "kept" not in text, text
