"""The environment for Harbor: its interface, and a task with its oracle agent, on a real engine.

Harbor needs a Python >= 3.12. This file is collected only where there is one: see ``e2e/conftest.py``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from e2e.harness import World
from e2e.integrations.extra import ROOT, interpreter, newer_python, run
from e2e.shells import image_with

SECONDS = 300
ENVIRONMENT = "podbot.integrations.harbor_environment:PodbotEnvironment"


@pytest.fixture(scope="session")
def python() -> str:
    return interpreter("harbor", "pytest", "anyio", python=str(newer_python(12)))


def environment(world: World, **more: str) -> dict[str, str]:
    return {**world.env, "PYTHONPATH": str(ROOT), "PODBOT_SANDBOX_MEMORY": "1g", **more}


def test_its_interface(world: World, python: str, tmp_path: Path) -> None:
    checks = str(ROOT / "e2e" / "integrations" / "harbor_checks.py")
    words = [python, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(tmp_path), "--noconftest"]
    with image_with(world, "harbor", "USER 1000") as ref:
        run([*words, "-p", "no:cacheprovider", checks], environment(world, CHECK_IMAGE=ref), SECONDS)


def task(place: Path, environment: str, dockerfile: str = "") -> Path:
    """A task whose solution writes what its test looks for."""
    made = place / "greet"
    for name in ("environment", "solution", "tests"):
        (made / name).mkdir(parents=True)
    (made / "instruction.md").write_text("Write `hello` into the file greeting.txt.")
    (made / "task.toml").write_text(f'schema_version = "1.4"\n\n[environment]\n{environment}\n')
    if dockerfile:
        (made / "environment" / "Dockerfile").write_text(dockerfile)
    (made / "environment" / "given.txt").write_text("hello")
    (made / "solution" / "solve.sh").write_text("#!/bin/bash\ncat given.txt > greeting.txt\n")
    (made / "tests" / "test.sh").write_text(
        '#!/bin/bash\nif [ "$(cat greeting.txt)" = hello ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n'
    )
    return made


@pytest.mark.parametrize("kind", ["image", "dockerfile"])
def test_a_task_with_its_oracle_agent(world: World, python: str, tmp_path: Path, kind: str) -> None:
    if kind == "image":
        made = task(tmp_path, f'docker_image = "{world.image}"\nworkdir = "/work"\nnetwork_mode = "no-network"')
    else:
        dockerfile = f"FROM {world.image}\nWORKDIR /app\nCOPY given.txt .\n"
        made = task(tmp_path, 'network_mode = "no-network"\nmemory_mb = 512', dockerfile)
    words = [str(Path(python).with_name("harbor")), "run", "--path", str(made), "--agent", "oracle", "--yes"]
    jobs = tmp_path / "jobs"
    run([*words, "--env", ENVIRONMENT, "--jobs-dir", str(jobs)], environment(world), SECONDS)
    (result,) = jobs.glob("*/*/result.json")
    found = json.loads(result.read_text())
    assert found["exception_info"] is None, found["exception_info"]
    assert found["verifier_result"]["rewards"] == {"reward": 1.0}
