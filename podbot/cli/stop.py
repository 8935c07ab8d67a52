"""``podbot stop`` and ``podbot rm``: end sessions and remove their containers."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from podbot.cli.globals import Globals
from podbot.cli.report import Reporter
from podbot.cli.signals import end_on_signals
from podbot.errors import MissingRequired
from podbot.frozen import Frozen
from podbot.visible_text import printable

if TYPE_CHECKING:
    from podbot.management.manage import StopResult


class StopArgs(Frozen):
    """The parsed command line of ``podbot stop``."""

    sessions: tuple[str, ...] = ()
    all_sessions: bool = False
    seconds: int = 10
    remove_kept: bool = False
    as_json: bool = False


def invoke(g: Globals, *, sessions: tuple[str, ...], all_: bool, time: int, remove: bool, as_json: bool) -> int:
    """Run with the command line's values; returns podbot's exit code."""
    return execute(g, StopArgs(sessions, all_, time, remove, as_json))


def execute(g: Globals, args: StopArgs) -> int:
    """Stop the sessions, and print each one's name once it is stopped. Returns podbot's exit code."""
    from podbot.api import sessions as api

    _check_named(args.sessions, all_sessions=args.all_sessions)
    config = api.load_config(g.load_options(os.environ, {}, {}))
    end_on_signals()
    emit = Reporter(g, late=True)
    try:
        results = api.stop(
            config,
            args.sessions,
            all_sessions=args.all_sessions,
            seconds=args.seconds,
            remove_kept=args.remove_kept,
            emit=emit,
        )
    finally:
        emit.clear()
    _print(results, as_json=args.as_json)
    return 0


def remove(g: Globals, *, sessions: tuple[str, ...], all_: bool, force: bool, as_json: bool) -> int:
    """Remove sessions, and print the name of each. Returns podbot's exit code."""
    from podbot.api import sessions as api

    _check_named(sessions, all_sessions=all_)
    config = api.load_config(g.load_options(os.environ, {}, {}))
    end_on_signals()
    emit = Reporter(g, late=True)
    try:
        results = api.remove(config, sessions, all_sessions=all_, force=force, emit=emit)
    finally:
        emit.clear()
    _print(results, as_json=as_json)
    return 0


def _check_named(sessions: tuple[str, ...], *, all_sessions: bool) -> None:
    if not sessions and not all_sessions:
        raise MissingRequired(field="SESSION", hint="Name a session (`podbot ps` lists them), or use --all.")


def _print(results: list[StopResult], *, as_json: bool) -> None:
    if as_json:
        import json
        from dataclasses import asdict

        sys.stdout.write(json.dumps([asdict(result) for result in results], indent=2) + "\n")
        return
    for result in results:
        suffix = "" if result.removed else "  (kept, stopped)"
        sys.stdout.write(f"{printable(result.session)}{suffix}\n")
