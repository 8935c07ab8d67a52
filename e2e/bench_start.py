"""The rows of ``make bench`` about a newcomer: from the installation to Claude's first screen, and the second time."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pexpect

from e2e.bench import CONSOLE, compare, say
from e2e.harness import World, close_world, new_world, wait_for

ROOT = Path(__file__).parents[1]
SCREEN = "Welcome.*to.*Claude.*Code.*v[0-9]+[.]"
QUESTION = r"\[y/N\] "
LIMIT = 900.0  # seconds; only what hangs reaches it


def screen(words: list[str], env: dict[str, str], where: str, *, agrees: bool = False) -> float:
    """Seconds until the command shows Claude's first screen; ``agrees``: it asks one question, answered with yes."""
    begin = time.perf_counter()
    child = pexpect.spawn(
        words[0], words[1:], env=env, cwd=where, dimensions=(40, 120), timeout=LIMIT, encoding="utf-8"
    )
    try:
        if agrees:
            child.expect(QUESTION)
            child.sendline("y")
        child.expect(SCREEN)
        return time.perf_counter() - begin
    finally:
        with contextlib.suppress(pexpect.ExceptionPexpect):  # the terminal goes away; the child needs longer to end
            child.close(force=False)


def bench_second_start(world: World, rounds: int) -> list[dict[str, Any]]:
    """`podbot run claude` in a project, with the image at hand, beside a plain container of the same image."""
    work, before = world.workspace(), world.sessions()

    def ours() -> float:
        seconds = screen([CONSOLE, "run", "claude", work], world.env, work)
        wait_for(lambda: world.sessions() == before, what="the session to end")
        return seconds

    def other() -> float:
        podman_env = world.podman_env()  # complete once podbot has started its service
        name = f"bench-{random.randrange(16**6):06x}"
        options = ["--rm", "-it", "--init", "--name", name, "-v", f"{work}:/workspace", "-w", "/workspace"]
        seconds = screen(["podman", "run", *options, "--network", "none", world.image, "claude"], podman_env, work)
        subprocess.run(["podman", "rm", "-f", "-t", "0", name], env=podman_env, capture_output=True, check=False)
        return seconds

    name = "podbot run claude, the second time, to its first screen"
    return [compare(name, ours, "podman run -it … claude", other, "<= 1.0 s", rounds)]


def bench_first_start() -> list[dict[str, Any]]:
    """`uv tool install` of the wheel, then `podbot run claude` and one yes, where there is neither image nor cache."""
    world = new_world("localhost/none:1")
    try:
        home = world.env["HOME"]
        tools, wheels, project = (os.path.join(world.root, name) for name in ("tools", "wheels", "shop"))
        os.makedirs(project)
        os.unlink(world.config)
        _without_images(world)
        _run([sys.executable, "-m", "venv", tools])
        _run([f"{tools}/bin/pip", "-q", "install", "uv"])
        _run([f"{tools}/bin/pip", "-q", "wheel", "--no-deps", "-w", wheels, str(ROOT)])
        (wheel,) = os.listdir(wheels)
        env = {**world.env, "UV_CACHE_DIR": os.path.join(world.root, "uv")}
        begin = time.perf_counter()
        _run([f"{tools}/bin/uv", "-q", "tool", "install", os.path.join(wheels, wheel)], env)
        installed = time.perf_counter() - begin
        rest = screen([os.path.join(home, ".local", "bin", "podbot"), "run", "claude"], env, project, agrees=True)
        wait_for(lambda: not world.sessions(), what="the session to end")  # else its network stays
        figures = f"{installed + rest:.0f} s, of which the installation {installed:.1f} s"
        row = {"name": "uv tool install, podbot run claude, one yes: to its first screen", "asked": "<= 100 s"}
        say({**row, "figures": figures})
        return [{**row, "figures": figures, "seconds": installed + rest, "installed": installed}]
    finally:
        close_world(world)


def _without_images(world: World) -> None:
    """The operator's store reads no other one. An ordinary user's begins empty anyway."""
    conf = world.env.get("CONTAINERS_STORAGE_CONF")
    if conf is not None:
        text = Path(conf).read_text(encoding="utf-8")
        Path(conf).write_text(text.partition("[storage.options]")[0], encoding="utf-8")


def _run(words: list[str], env: dict[str, str] | None = None) -> None:
    subprocess.run(words, env=env, stdin=subprocess.DEVNULL, check=True)
