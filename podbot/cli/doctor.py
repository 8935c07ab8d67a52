"""``podbot doctor``: whether this machine is ready, and how to fix it if not."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from podbot.cli.globals import Globals
from podbot.errors import UsageError

if TYPE_CHECKING:
    from podbot.diagnosis.repair_plan import RepairPlan
    from podbot.engine.check import Check

STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def mistake(*, repair: bool, yes: bool, **_: object) -> str:
    """An error about options that have no effect together, or empty."""
    return "--yes has no effect without --fix" if yes and not repair else ""


def doctor(g: Globals, *, as_json: bool, repair: bool, yes: bool) -> int:
    """Returns 0 if no check fails (warnings are allowed), otherwise 1."""
    from podbot.api.diagnosis import doctor as diagnose
    from podbot.cli.report import Reporter
    from podbot.cli.signals import end_on_signals

    end_on_signals()
    if repair and g.image is not None:
        hint = "--image REF checks what an image lacks, and only its author can fix that. Leave one of them out."
        raise UsageError(command="podbot doctor", reason="--fix with --image", hint=hint)
    if repair:
        checks = _repaired(g, yes=yes)
    else:
        reporter = Reporter(g, late=True)
        try:
            checks = diagnose(g.load_options(os.environ, {}, {}), probe_image=g.image is not None, emit=reporter)
        finally:
            reporter.clear()
    if as_json:
        _json(checks)
    else:
        _table(checks)
    return int(any(check.status == "fail" for check in checks))


def _repaired(g: Globals, *, yes: bool) -> list[Check]:
    """The checks after the repairs to which the operator agreed."""
    from podbot.api.preparing import fix
    from podbot.cli.interaction import Streams, confirm
    from podbot.cli.report import Reporter

    person = Streams.of_process().person
    reporter = Reporter(g, progress=True)

    def approve(plan: RepairPlan) -> None:
        reporter.clear()
        _show(plan)
        if not yes:
            confirm((), "Go ahead?")

    try:
        _, checks = fix(g.load_options(os.environ, {}, {}), approve=approve, may_ask=person, emit=reporter)
    finally:
        reporter.clear()
    return checks


def _show(plan: RepairPlan) -> None:
    from podbot.cli.interaction import show
    from podbot.cli.remedies import with_options
    from podbot.visible_text import printable

    sys.stderr.write("podbot doctor --fix will run\n")
    show(f"{repair.line}{' (as root)' if repair.root else ''}" for repair in plan.commands)
    if plan.setup:
        first = f"installs {' or '.join(plan.helpers)}, as Podman's version needs, and " if plan.helpers else ""
        show([f"podbot setup, which {first}builds the sandbox image"])
    for check in plan.left:
        line = f"It cannot fix {check.name}: {printable(check.found)}. {printable(with_options(check.fix))}"
        sys.stderr.write(f"{line}\n")


def _json(checks: Iterable[Check]) -> None:
    import json
    from dataclasses import asdict

    sys.stdout.write(json.dumps([asdict(check) for check in checks], indent=2) + "\n")


def _table(checks: list[Check]) -> None:
    from rich.console import Console
    from rich.text import Text

    from podbot.cli.remedies import with_options
    from podbot.visible_text import printable

    console = Console(highlight=False, soft_wrap=True)
    width = max(len(check.name) for check in checks)
    for check in checks:
        line = Text(f"{check.status:<4}", style=STYLES[check.status])
        line.append(f"  {check.name:<{width}}  {printable(check.found)}", style="default")
        console.print(line)
        for label, words in (("", check.meaning), ("fix: ", with_options(check.fix))):
            if words:
                console.print(Text(f"{'':{width + 8}}{label}{printable(words)}"))
