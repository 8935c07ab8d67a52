"""Runs the matrix and writes docs/reference/clients.md: ``make matrix``, or some cells: ``CELLS=python/claude``."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from dataclasses import asdict

from e2e.harness import close_world, new_world
from e2e.matrix.install import versions
from e2e.matrix.outcome import Outcome, Outcomes
from e2e.matrix.page import render, shown
from e2e.matrix.run import KEPT, PAGE, cells, run_all
from e2e.matrix.steps import CLIENTS, STEPS, WORKS
from podbot import __version__
from podbot.images.recipe import load_recipe


def components() -> dict[str, str]:
    """Every component of the run, with its version."""
    podman = subprocess.run(["podman", "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]
    found = {"podbot": __version__, "Podman": podman}
    pinned = versions()
    found |= {f"{client.title} (`{client.package}`)": pinned[client.package] for client in CLIENTS.values()}
    for name, agent in load_recipe().agents.items():
        adapter, _, version = agent.adapter.rpartition("@")
        found[name] = agent.version + (f", `{adapter}` {version}" if agent.adapter else "")
    return found


def main(wanted: list[str]) -> None:
    pairs = [(client, agent) for client, agent in cells() if not wanted or f"{client.name}/{agent}" in wanted]
    kept = Kept(components())
    world = new_world(os.environ.get("PODBOT_E2E_IMAGE") or load_recipe().image)
    began = time.monotonic()
    try:
        fresh = run_all(world, pairs, control=True, progress=kept.add)
    finally:
        close_world(world)
    print(f"{len(fresh)} cells in {time.monotonic() - began:.0f} s; what they left is in {KEPT}")
    for cell in fresh:
        for step in STEPS:
            if (text := shown(kept.results, cell, step)) != WORKS:
                print(f"{cell:22} {step:16} {text:32} {fresh[cell][step].detail[:120]}")
    if missing := [
        f"{client.name}/{agent}" for client, agent in cells() if f"{client.name}/{agent}" not in kept.results
    ]:
        print(f"the page stays as it is: {' '.join(missing)} did not run with these versions")
        return
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(render(kept.results, kept.versions, time.strftime("%Y-%m-%d", time.gmtime())))
    print(f"wrote {PAGE}")


class Kept:
    """The results with these versions, cell by cell, of this run or of an earlier one that was interrupted or
    skipped the cell.
    """

    def __init__(self, versions: dict[str, str]) -> None:
        self.versions = versions
        self.results: dict[str, Outcomes] = {}
        self._lock = threading.Lock()
        self._path = os.path.join(KEPT, "results.json")
        with contextlib.suppress(FileNotFoundError), open(self._path, encoding="utf-8") as file:
            earlier = json.load(file)
            if earlier["versions"] == versions:
                cells = earlier["cells"].items()
                self.results = {cell: {step: Outcome(**one) for step, one in each.items()} for cell, each in cells}

    def add(self, cell: str, outcomes: Outcomes) -> None:
        """One more cell."""
        works = sum(one.result == WORKS for one in outcomes.values())
        with self._lock:
            print(f"{cell}: {works} of {len(outcomes)} work ({outcomes['initialize'].seconds:.0f} s)", flush=True)
            self.results[cell] = outcomes
            found = {cell: {step: asdict(one) for step, one in each.items()} for cell, each in self.results.items()}
            with open(self._path, "w", encoding="utf-8") as file:
                json.dump({"versions": self.versions, "cells": found}, file, indent=1)


if __name__ == "__main__":
    main(sys.argv[1:])
