"""Runs one part of the suite in a running machine."""

from __future__ import annotations

import os
import subprocess
import time
import xml.etree.ElementTree as ET

from e2e.junit import counted
from e2e.vm.image import ROOT, STATE
from e2e.vm.machine import Machine
from e2e.vm.page import KEPT, PAGE, Result
from e2e.vm.steps import say
from e2e.vm.suite import USER, Part
from e2e.vm.tree import TREE, bring_back, bundle_in, copy_in


def run_part(machine: Machine, name: str, part: Part) -> Result:
    """Its output goes to .vm/logs/part-NAME.log, which is printed. Raises VmError when the machine fails, not when
    the part fails.
    """
    user, commit = part.user or USER, _commit()  # the commit that is copied; the tree may have changed when it has run
    copy_in(machine, user)
    bundle_in(machine, user)
    log = os.path.join(STATE, "logs", f"part-{name}.log")
    say(f"{name}: {part.title} (`tail -f {log}`) …")
    began = time.monotonic()
    with open(log, "wb") as out:
        script = f"rm -f ~/results/{name}.xml; cd ~/{TREE} && {part.script}"
        status = machine.run(script, user=user, limit=part.limit, stdout=out, stderr=subprocess.STDOUT)
        if part.then and status == 0:
            status = machine.run(part.then, user="root", limit=part.limit, stdout=out, stderr=subprocess.STDOUT)
    seconds = time.monotonic() - began
    passed, failures = reported(os.path.join(bring_back(machine, user), f"{name}.xml"))
    say(f"{name}: status {status}, {passed} passed, {len(failures)} failed, {seconds:.0f} s")
    for failed in failures:
        say(f"  failed: {failed}")
    return Result(status, seconds, commit, time.strftime("%Y-%m-%d", time.gmtime()), passed, len(failures), failures)


def reported(path: str) -> tuple[int, tuple[str, ...]]:
    """What pytest reported, where it came to that. The machine made the file: it may be a link, or broken off."""
    try:
        report = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return 0, ()
    with open(report, encoding="utf-8", errors="replace") as file:
        try:
            counts = counted(file.read())
        except (ET.ParseError, ValueError) as exc:
            return 0, (f"its report cannot be read: {exc}",)
    return counts.passed, counts.failures


def _commit() -> str:
    """The tree's commit, with a + when it has uncommitted changes other than those that this run writes."""
    words = ["git", "rev-parse", "--short=10", "HEAD"]
    name = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    words = ["git", "status", "--porcelain", "--", ".", *(f":!{os.path.relpath(path, ROOT)}" for path in (PAGE, KEPT))]
    changed = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    return f"{name}+" if changed else name
