"""``podbot start``: restarts kept sessions."""

from __future__ import annotations

import os
import sys

from podbot.cli.globals import Globals
from podbot.cli.report import Reporter
from podbot.cli.signals import handled
from podbot.visible_text import printable


def invoke(g: Globals, *, sessions: tuple[str, ...], as_json: bool) -> int:
    """Start each session, and print its name once it runs, or all as JSON. Returns podbot's exit code."""
    from podbot.api import sessions as api

    config = api.load_config(g.load_options(os.environ, {}, {}))
    emit = Reporter(g, progress=True)
    results = []
    with handled(tty=False) as wake:
        for name in dict.fromkeys(sessions):
            try:
                result = api.start(config, name, wake=wake, emit=emit)
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
