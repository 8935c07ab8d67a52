"""Records when which whole suite was last green: ``python -m e2e.suite_results SUITE STATUS SECONDS REPORTS``.

``scripts/recorded`` calls it after a suite. REPORTS is the directory with its JUnit files. It writes the slowest
tests beside them, a row into docs/reference/tested-on.md, and what that is made from into suites.json beside the page:
committed, because suites run on several days, in several checkouts.
"""

from __future__ import annotations

import fcntl
import glob
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from e2e.junit import Counts, duration, placed, total

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join("docs", "reference", "tested-on.md")
KEPT = os.path.join("docs", "reference", "suites.json")
VM_KEPT = os.path.join("docs", "reference", "tested-on.json")
BEGIN = "<!-- written by scripts/recorded -->"

SUITES = {
    "test-pythons": "The fast tests, with each Python found",
    "test-random": "The fast tests in random order",
    "test-deep": "The fast tests with ten times the examples",
    "test-inside": "The guest and the files worker, with each Python found",
    "test-e2e": "End to end, as root",
    "test-e2e-rootless": "End to end, as an ordinary user",
}


@dataclass(frozen=True)
class Run:
    """One run of a whole suite. ``commit``: what was tested; ``versions``: of what it ran on, as text."""

    commit: str
    date: str
    versions: str
    passed: int
    failed: int
    seconds: float
    green: bool


def with_run(kept: Mapping[str, Mapping[str, Any]], suite: str, run: Run) -> dict[str, dict[str, Any]]:
    """Of each suite the last run, and the last that was green."""
    mine = {**kept.get(suite, {}), "last": asdict(run)}
    if run.green:
        mine["green"] = asdict(run)
    return {name: dict(runs) for name, runs in sorted({**kept, suite: mine}.items())}


def table(kept: Mapping[str, Mapping[str, Any]]) -> str:
    """Markdown: a row for each suite, including those that have not run."""
    lines = ["| suite | command | last green | on | tests | took | since then |", "|---|---|---|---|---|---|---|"]
    for name, title in SUITES.items():
        runs = {kind: Run(**found) for kind, found in kept.get(name, {}).items()}
        green, last = runs.get("green"), runs.get("last")
        cells = ["not recorded", "", "", ""]
        if green:
            cells = [f"{green.date}, {green.commit}", green.versions, f"{green.passed}", duration(green.seconds)]
        red = f"{last.date}, {last.commit}: **{last.failed or 'it'} failed**" if last and not last.green else ""
        lines.append(f"| {' | '.join([title, f'`make {name}`', *cells, red])} |")
    return "\n".join(lines)


def write(suite: str, run: Run, *, page: str, kept: str) -> None:
    """Add one run to the file ``kept``, and write the page's table from it."""
    with open(page, "r+", encoding="utf-8") as shown:
        fcntl.flock(shown, fcntl.LOCK_EX)  # two suites may end at the same time
        before: dict[str, Any] = {}
        if os.path.exists(kept):
            with open(kept, encoding="utf-8") as file:
                before = json.load(file)
        after = with_run(before, suite, run)
        with open(kept, "w", encoding="utf-8") as file:
            json.dump(after, file, indent=1)
            file.write("\n")
        text = placed(shown.read(), table(after), BEGIN)
        shown.seek(0)
        shown.write(text)
        shown.truncate()


def changes(status: str) -> list[str]:
    """The paths of ``git status --porcelain`` that are not what this command writes."""
    return [line[3:] for line in status.splitlines() if line[3:] not in {PAGE, KEPT, VM_KEPT}]


def report(counts: Counts) -> str:
    """The twenty slowest tests, for a person."""
    return "".join(f"{seconds:8.1f} s  {name}\n" for seconds, name in counts.slowest[:20])


def _versions() -> str:
    release = platform.freedesktop_os_release()
    found = [f"{release.get('NAME', '').split(' ')[0]} {release.get('VERSION_ID', '')}".strip()]
    if shutil.which("podman"):
        found.append(_said("podman", "--version").replace("podman version", "Podman"))
    return ", ".join([*found, f"Python {platform.python_version()}"])


def _said(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.rstrip("\n")


def main(suite: str, status: str, seconds: str, reports: str) -> int:
    """Always 0 for a known suite: the suite's own status is the caller's."""
    if suite not in SUITES:
        raise SystemExit(f"suite_results: no suite {suite}; there are {', '.join(SUITES)}")
    texts = []
    for path in sorted(glob.glob(os.path.join(reports, "*.xml"))):
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    counts = total(texts)
    with open(os.path.join(reports, "slowest.txt"), "w", encoding="utf-8") as file:
        file.write(report(counts))
    print(f"== {suite}: {counts.passed} passed, {len(counts.failures)} failed; JUnit and slowest.txt in {reports}")
    for name in counts.failures:
        print(f"failed: {name}")
    if status not in ("0", "1"):  # pytest's, of a run without and with failures
        print(f"== {suite}: not recorded in {PAGE}, because the run was broken off (status {status})")
        return 0
    if changed := changes(_said("git", "status", "--porcelain")):
        print(f"== {suite}: not recorded in {PAGE}, because no commit is what was tested: {', '.join(changed[:5])}")
        return 0
    run = Run(
        commit=_said("git", "rev-parse", "--short=10", "HEAD"),
        date=time.strftime("%Y-%m-%d", time.gmtime()),
        versions=_versions(),
        passed=counts.passed,
        failed=len(counts.failures),
        seconds=float(seconds),
        green=status == "0" and not counts.failures and counts.passed > 0,
    )
    write(suite, run, page=os.path.join(ROOT, PAGE), kept=os.path.join(ROOT, KEPT))
    print(f"== {suite}: recorded in {PAGE}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
