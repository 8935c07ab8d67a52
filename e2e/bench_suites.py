"""The rows of ``make bench`` for workspaces: from nothing to a tool's first result, beside Podman's own commands."""

from __future__ import annotations

import functools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from e2e.bench import compare, first_result
from e2e.harness import World
from e2e.suites import ident
from podbot.suites import LazyWorkspace, LocalBackend, PodmanBackend

ASKED = "<= 0.6"
CALLERS = 8
TEXT = "def function(argument): return argument + 1\n" * 200  # 8.8 kB


def bench_suites(world: World, rounds: int) -> list[dict[str, Any]]:
    """The rows. What is made is removed between two measurements."""
    podman, env, work = PodmanBackend(world.env), world.podman_env(), world.workspace()
    local = LocalBackend(world.env, root=f"{world.root}/local")

    def workspace(backend: PodmanBackend | LocalBackend) -> float:
        begin = time.perf_counter()
        with LazyWorkspace(backend, ident=ident()) as made:
            listed = made.suite().tool("ls").invoke({})
            seconds = time.perf_counter() - begin
        assert listed.success, listed.message
        return seconds

    def commands() -> float:
        return first_result(world.image, work, "ls", env)

    other = "podman create, start, exec"
    rows = [
        compare("a new workspace's first ls, Podman", lambda: workspace(podman), other, commands, ASKED, rounds),
        compare("a new workspace's first ls, this host", lambda: workspace(local), other, commands, "", rounds),
    ]
    with LazyWorkspace(podman, ident=ident()) as made:
        rows += _callers(made, rounds)
    return rows


def _callers(made: LazyWorkspace, rounds: int) -> list[dict[str, Any]]:
    """CALLERS threads that use the tools of one workspace at once, beside one that does the same work."""
    suite = made.suite()
    assert suite.tool("write_file").invoke({"file_path": "text", "content": TEXT}).success

    def seconds(tool: str, arguments: dict[str, Any], callers: int, calls: int) -> float:
        def work(_: int) -> None:
            for _call in range(calls):
                done = suite.tool(tool).invoke(arguments)
                assert done.success, done.message

        with ThreadPoolExecutor(callers) as pool:
            begin = time.perf_counter()
            list(pool.map(work, range(callers)))
            return time.perf_counter() - begin

    rows = []
    for name, tool, arguments, calls, asked in (
        ("commands that sleep 0.1 s", "shell_execute", {"command": ["sleep", "0.1"]}, 2, "<= 0.2"),
        ("read_file of 8.8 kB", "read_file", {"file_path": "text"}, 20, ""),
    ):
        rows.append(
            compare(
                f"{CALLERS} callers at once of one workspace's tools: {name}",
                functools.partial(seconds, tool, arguments, CALLERS, calls),
                "one caller, the same calls",
                functools.partial(seconds, tool, arguments, 1, CALLERS * calls),
                asked,
                rounds,
            )
        )
    return rows
