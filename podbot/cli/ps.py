"""``podbot ps``: podbot's sessions. On the fast lane: no Typer, and columns by hand instead of rich."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podbot.cli.globals import Globals
from podbot.cli.report import Reporter, printable

if TYPE_CHECKING:
    from podbot.management.manage import SessionInfo

HEADINGS = ("SESSION", "AGENT", "STATE", "CREATED", "WORKSPACE")


@dataclass(frozen=True)
class PsArgs:
    """The command line of ``podbot ps``, parsed."""

    include_stopped: bool = False
    as_json: bool = False


def invoke(g: Globals, *, all_: bool, as_json: bool) -> int:
    """The command line's values; returns podbot's exit code."""
    return execute(g, PsArgs(all_, as_json))


def execute(g: Globals, args: PsArgs) -> int:
    """List; returns podbot's exit code."""
    from podbot.api import sessions as api

    config = api.load_config(g.load_options(os.environ, {}, {}))
    found = api.ps(config, include_stopped=args.include_stopped, emit=Reporter(g))
    sys.stdout.write(_as_json(found) if args.as_json else _table(found, time.time()))
    return 0


def _as_json(found: list[SessionInfo]) -> str:
    import json
    from dataclasses import asdict

    return json.dumps([asdict(info) for info in found], indent=2) + "\n"


def _table(found: list[SessionInfo], now: float) -> str:
    rows = [HEADINGS, *(_row(info, now) for info in found)]
    if any(info.token is not None for info in found):
        from podbot.cli.token_words import token_words

        cells = ["TOKEN", *(printable(token_words(info.token, now)) for info in found)]
        rows = [(*row, cell) for row, cell in zip(rows, cells, strict=True)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)
    return "".join(line.rstrip() + "\n" for line in lines)


def _row(info: SessionInfo, now: float) -> tuple[str, ...]:
    state = info.state + (" (left behind)" if info.orphan else " (detached)" if info.detached else "")
    agent = info.agent if info.mode in ("", "podbot") else f"{info.agent}/{info.mode}".lstrip("/")
    return tuple(printable(cell) for cell in (info.session, agent, state, _age(now - info.created), info.path))


def _age(seconds: float) -> str:
    """A duration as people say it."""
    for size, unit in ((86400, "day"), (3600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {unit}{'s' if count > 1 else ''} ago"
    return "just now" if seconds < 5 else f"{int(seconds)} seconds ago"
