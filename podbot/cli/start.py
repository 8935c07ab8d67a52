"""``podbot start`` and ``podbot restart``: start kept sessions again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from podbot.cli.globals import Globals
from podbot.cli.report import Reporter
from podbot.cli.signals import handled
from podbot.visible_text import printable

if TYPE_CHECKING:
    from podbot.config.models import AppConfig
    from podbot.events import Emit
    from podbot.session.starting import StartResult
    from podbot.streams.wake import Wake


def invoke(g: Globals, *, sessions: tuple[str, ...], as_json: bool) -> int:
    """Start each session, and print its name once it runs, or all as JSON. Returns podbot's exit code."""
    from podbot.api import sessions as api

    def start(config: AppConfig, wake: Wake, emit: Emit) -> Iterator[StartResult]:
        return (api.start(config, name, wake=wake, emit=emit) for name in dict.fromkeys(sessions))

    return _each(g, start, as_json=as_json)


def restart(g: Globals, *, sessions: tuple[str, ...], time: int, as_json: bool) -> int:
    """Stop and start each session, and print its name once it runs, or all as JSON. Returns podbot's exit code."""
    from podbot.api import sessions as api

    def start(config: AppConfig, wake: Wake, emit: Emit) -> Iterator[StartResult]:
        return api.restart(config, sessions, seconds=time, wake=wake, emit=emit)

    return _each(g, start, as_json=as_json)


def _each(g: Globals, start: Callable[[AppConfig, Wake, Emit], Iterator[StartResult]], *, as_json: bool) -> int:
    """Print each result of ``start``; those before an error are in the JSON as well."""
    from podbot.api.sessions import load_config

    config = load_config(g.load_options(os.environ, {}, {}))
    emit = Reporter(g, progress=True)
    results = []
    try:
        with handled(tty=False) as wake:
            for result in start(config, wake, emit):
                emit.clear()
                results.append(result)
                if not as_json:
                    sys.stdout.write(f"{printable(result.session)}\n")
    finally:
        emit.clear()
        if as_json:
            import json
            from dataclasses import asdict

            sys.stdout.write(json.dumps([asdict(result) for result in results], indent=2) + "\n")
    return 0
