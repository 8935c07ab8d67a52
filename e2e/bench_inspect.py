"""The rows of ``make bench`` for Inspect's sandbox provider, beside the Podman provider that the package index has.

Each runs in a virtual environment of its own, which only this target makes. One that does not run here is reported.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import podbot
from e2e.bench import say
from e2e.harness import World
from e2e.integrations.extra import ROOT, interpreter, run, venv

PEER = ("inspect-podman==0.1.2", "podman-compose")
SAMPLES, COMMANDS = 50, 50
SECONDS = 600
ASKED = "exec p50 <= 3 ms, 50 at once <= 3 s"


def bench_inspect(world: World) -> list[dict[str, Any]]:
    """One command, 50 at once, and 50 samples from the start of their sandboxes to their removal."""
    file = Path(world.root) / "compose.yaml"
    service = {"image": world.image, "command": "tail -f /dev/null", "network_mode": "none"}
    file.write_text(json.dumps({"services": {"default": service}}))  # JSON is YAML
    config = podbot.load_config(podbot.LoadOptions(environ=world.env))
    with podbot.open_engine(config, environ=world.env):  # its service lives as long as this
        env = {**world.env, "PODBOT_SANDBOX_MEMORY": "256m"}
        ours = _row("Inspect, sandbox=podbot", lambda: interpreter("inspect", "pytest", "trio"), "podbot", file, env)
        peer = _row("Inspect, inspect-podman", lambda: venv("bench-inspect", PEER), "podman", file, world.podman_env())
    rows = [{**ours, "asked": ASKED}, peer]
    for row in rows:
        say(row)
    return rows


def _row(name: str, python: Callable[[], str], kind: str, file: Path, env: Mapping[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name, "asked": ""}
    program = str(ROOT / "e2e" / "integrations" / "inspect_figures.py")
    try:
        chosen = python()
        beside = os.path.dirname(chosen)  # where podman-compose is
        path = {"PATH": f"{beside}:{env.get('PATH', os.defpath)}", "PYTHONPATH": str(ROOT)}
        said = run([chosen, program, kind, str(file), str(COMMANDS), str(SAMPLES)], {**env, **path}, SECONDS)
    except (AssertionError, OSError, subprocess.TimeoutExpired) as exc:
        return {**row, "figures": f"did not run here: {str(exc).strip().splitlines()[-1][:120]}"}
    found = json.loads(said.splitlines()[-1])
    shown = (
        f"exec p50 {found['exec_p50_ms']} ms, 50 at once {found['50_commands_s']} s, "
        f"{SAMPLES} samples {found[f'{SAMPLES}_samples_s']} s"
    )
    return {**row, **found, "figures": shown}
