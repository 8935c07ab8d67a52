"""The rows of ``make bench`` for workspaces: from nothing to a tool's first result, beside Podman's own commands."""

from __future__ import annotations

import random
import subprocess
import time
from typing import Any

from e2e.bench import compare, timed
from e2e.harness import World
from e2e.suites import ident
from podbot.suites import LazyWorkspace, LocalBackend, PodmanBackend

ASKED = "<= 0.6"


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
        name = f"bench-{random.randrange(16**6):06x}"
        options = ["--network", "none", "--init", "-v", f"{work}:/workspace"]
        steps = [
            ["podman", "create", "--name", name, *options, world.image, "sleep", "infinity"],
            ["podman", "start", name],
            ["podman", "exec", "-w", "/workspace", name, "ls"],
        ]
        seconds = timed(steps, env)
        subprocess.run(["podman", "rm", "-f", "-t", "0", name], env=env, capture_output=True, check=True)
        return seconds

    other = "podman create, start, exec"
    return [
        compare("a new workspace's first ls, Podman", lambda: workspace(podman), other, commands, ASKED, rounds),
        compare("a new workspace's first ls, this host", lambda: workspace(local), other, commands, "", rounds),
    ]
