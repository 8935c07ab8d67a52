"""``podbot start`` and ``podbot restart``: start kept sessions again."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from podbot.cli.globals import Globals
from podbot.cli.report import Reporter
from podbot.cli.signals import handled
from podbot.visible_text import printable

if TYPE_CHECKING:
    from podbot.session.starting import StartResult


def invoke(g: Globals, *, sessions: tuple[str, ...], as_json: bool) -> int:
    """Start each session, and print its name once it runs, or all as JSON. Returns podbot's exit code."""
    from podbot.api import sessions as api

    return _each(g, sessions, api.start, as_json=as_json)


def restart(g: Globals, *, sessions: tuple[str, ...], time: int, as_json: bool) -> int:
    """Stop and start each session, and print its name once it runs, or all as JSON. Returns podbot's exit code."""
    from functools import partial

    from podbot.api import sessions as api

    return _each(g, sessions, partial(api.restart, seconds=time), as_json=as_json)


def _each(g: Globals, sessions: tuple[str, ...], start: Callable[..., StartResult], *, as_json: bool) -> int:
    from podbot.api.sessions import load_config

    config = load_config(g.load_options(os.environ, {}, {}))
    emit = Reporter(g, progress=True)
    results = []
    with handled(tty=False) as wake:
        for name in dict.fromkeys(sessions):
            try:
                result = start(config, name, wake=wake, emit=emit)
            finally:
                emit.clear()
            results.append(result)
            if not as_json:
                sys.stdout.write(f"{printable(result.session)}\n")
    if as_json:
        import json
        from dataclasses import asdict

        sys.stdout.write(json.dumps([asdict(result) for result in results], indent=2) + "\n")
    return 0
