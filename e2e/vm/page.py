"""The table of docs/reference/tested-on.md: the parts that ran in the machine, and their results."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from e2e.junit import duration, placed
from e2e.vm.errors import VmError
from e2e.vm.image import ROOT
from e2e.vm.suite import PARTS, Part

PAGE = os.path.join(ROOT, "docs", "reference", "tested-on.md")
# Committed, because parts run on several days, in several checkouts.
KEPT = os.path.join(ROOT, "docs", "reference", "tested-on.json")
BEGIN = "<!-- written by `make test-vm` -->"

# A shell command each, run in the machine.
VERSIONS = {
    "Debian": "cat /etc/debian_version",
    "kernel": "uname -r",
    "systemd": "systemctl --version | head -1 | cut -d' ' -f2",
    "Podman": "podman --version | cut -d' ' -f3",
    "crun": "crun --version | head -1 | cut -d' ' -f3",
    "pasta": "dpkg-query -W -f '${Version}' passt",
    "netavark": "/usr/lib/podman/netavark --version | cut -d' ' -f2",
    "Python": "python3 --version | cut -d' ' -f2",
    "cgroups": "stat -fc %T /sys/fs/cgroup",
}


@dataclass(frozen=True)
class Result:
    """The result of one part. ``status``: its command's; ``passed``, ``failed``: tests, both 0 if it is not a
    pytest.

    ``failures``: names of failed tests. ``commit``: the commit that was tested; ``date``: of the day.
    """

    status: int
    seconds: float
    commit: str
    date: str
    passed: int = 0
    failed: int = 0
    failures: tuple[str, ...] = ()


def table(results: Mapping[str, Result], versions: Mapping[str, str]) -> str:
    """Markdown: versions, and a row for each part, including those that have not run."""
    lines = [", ".join(f"{name} {version}" for name, version in versions.items()) + ".", ""]
    lines += ["| what | as | result | took | day | commit |", "|---|---|---|---|---|---|"]
    for name, part in PARTS.items():
        cells = [part.title, part.user or "an ordinary user", *_cells(results.get(name))]
        lines.append(f"| {' | '.join(cells)} |")
    failures = [f"- {name}: `{each}`" for name in PARTS if name in results for each in results[name].failures]
    return "\n".join([*lines, *(["", "Failed:", "", *failures] if failures else [])])


def _cells(result: Result | None) -> list[str]:
    if result is None:
        return ["not run", "", "", ""]
    ok = result.status == 0 and not result.failures
    text = "ok" if ok else f"**failed** (status {result.status})"
    if result.passed or result.failed:
        text = f"{result.passed} passed" + (f", **{result.failed} failed**" if result.failed else "")
    return [text, duration(result.seconds), result.date, result.commit]


def keep(name: str, result: Result, versions: Mapping[str, str], *, page: str = PAGE, results: str = KEPT) -> None:
    """Add one result to those of earlier runs with the same versions, and write ``page`` from all of them.

    ``results``: the file that has those. Raises VmError when the machine does not say a version.
    """
    if unknown := [what for what, version in versions.items() if not version]:
        raise VmError(f"the machine does not say its version of {', '.join(unknown)}")
    kept: dict[str, dict[str, Any]] = {"versions": {}, "parts": {}}
    if os.path.exists(results):
        with open(results, encoding="utf-8") as file:
            kept = json.load(file)
    if kept["versions"] != dict(versions):
        kept = {"versions": dict(versions), "parts": {}}
    kept["parts"][name] = asdict(result)
    with open(results, "w", encoding="utf-8") as file:
        json.dump(kept, file, indent=1)
        file.write("\n")
    known = {part: _result(found) for part, found in kept["parts"].items() if part in PARTS}
    with open(page, encoding="utf-8") as file:
        text = file.read()
    with open(page, "w", encoding="utf-8") as file:
        file.write(placed(text, table(known, versions), BEGIN))


def _result(found: dict[str, Any]) -> Result:
    return Result(**{**found, "failures": tuple(found["failures"])})


def needed(names: list[str]) -> dict[str, Part]:
    """The parts of these names with their prerequisites; all, in their order, if no name is given."""
    wanted = set(names or PARTS)
    wanted |= {PARTS[name].after for name in wanted if PARTS[name].after}
    return {name: part for name, part in PARTS.items() if name in wanted}
