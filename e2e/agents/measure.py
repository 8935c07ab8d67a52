"""The time of each agent to its first answer without a network.

`scripts/e2e .venv/bin/python -m e2e.agents.measure`. Seconds, medians of five. request: from the agent's start to its
request for the model. run: the whole `podbot run`.
"""

from __future__ import annotations

import os
import statistics
import time

from e2e.agents.kinds import KINDS
from e2e.agents.provider import aimock
from e2e.agents.scenario import SAY, scenario
from e2e.harness import World, close_world, new_world

TIMES = 5


def once(world: World, kind: str) -> tuple[float, float]:
    """(seconds to the request, seconds of the run)."""
    with scenario(world, kind, aimock(), f"measure-{kind}") as run:
        began = time.monotonic()
        done = run.run(SAY)
        took = time.monotonic() - began
        assert done.returncode == 0, done.stderr
        return run.requests()[-1]["seconds"], took


def main() -> None:
    from podbot.images.recipe import load_recipe

    world = new_world(os.environ.get("PODBOT_E2E_IMAGE") or load_recipe().image)
    try:
        once(world, "codex")  # starts the engine's service
        print(f"{'agent':10} {'request':>8} {'run':>6}")
        for kind in KINDS:
            requests, runs = zip(*(once(world, kind) for _ in range(TIMES)), strict=True)
            print(f"{kind:10} {statistics.median(requests):8.2f} {statistics.median(runs):6.2f}")
    finally:
        close_world(world)


if __name__ == "__main__":
    main()
