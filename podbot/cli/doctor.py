"""``podbot doctor``: is this machine ready, and if not, what to do."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from podbot.cli.globals import Globals

if TYPE_CHECKING:
    from podbot.engine.check import Check

STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}


def doctor(g: Globals, *, as_json: bool) -> int:
    """Returns 0 when nothing fails (warnings are fine), 1 otherwise."""
    from podbot.api.diagnosis import doctor as diagnose
    from podbot.cli.report import Reporter

    checks = diagnose(g.load_options(os.environ, {}, {}), probe_image=g.image is not None, emit=Reporter(g))
    if as_json:
        _json(checks)
    else:
        _table(checks)
    return int(any(check.status == "fail" for check in checks))


def _json(checks: Iterable[Check]) -> None:
    import json
    from dataclasses import asdict

    sys.stdout.write(json.dumps([asdict(check) for check in checks], indent=2) + "\n")


def _table(checks: list[Check]) -> None:
    from rich.console import Console
    from rich.text import Text

    from podbot.cli.report import printable

    console = Console(highlight=False, soft_wrap=True)
    width = max(len(check.name) for check in checks)
    for check in checks:
        line = Text(f"{check.status:<4}", style=STYLES[check.status])
        line.append(f"  {check.name:<{width}}  {printable(check.found)}", style="default")
        console.print(line)
        for label, words in (("", check.meaning), ("fix: ", check.fix)):
            if words:
                console.print(Text(f"{'':{width + 8}}{label}{printable(words)}"))
