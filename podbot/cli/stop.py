"""``podbot stop``: end sessions and remove their containers."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from podbot.cli.globals import Globals
from podbot.cli.report import Reporter, printable
from podbot.errors import MissingRequired


@dataclass(frozen=True)
class StopArgs:
    """The command line of ``podbot stop``, parsed."""

    sessions: tuple[str, ...] = ()
    all_sessions: bool = False
    seconds: int = 10
    remove_kept: bool = False


def invoke(g: Globals, *, sessions: tuple[str, ...], all_: bool, time: int, remove: bool) -> int:
    """The command line's values; returns podbot's exit code."""
    return execute(g, StopArgs(sessions, all_, time, remove))


def execute(g: Globals, args: StopArgs) -> int:
    """Stop; prints each session's name once it is down. Returns podbot's exit code."""
    from podbot.api import sessions as api

    if not args.sessions and not args.all_sessions:
        raise MissingRequired(field="SESSION", hint="Name a session (`podbot ps` lists them), or say --all.")
    config = api.load_config(g.load_options(os.environ, {}, {}))
    results = api.stop(
        config,
        args.sessions,
        all_sessions=args.all_sessions,
        seconds=args.seconds,
        remove_kept=args.remove_kept,
        emit=Reporter(g, progress=False),
    )
    for result in results:
        suffix = "" if result.removed else "  (kept, stopped)"
        sys.stdout.write(f"{printable(result.session)}{suffix}\n")
    return 0
