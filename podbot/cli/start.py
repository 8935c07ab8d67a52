"""``podbot start``: bring kept sessions back."""

from __future__ import annotations

import os
import sys

from podbot.cli.globals import Globals
from podbot.cli.report import Reporter, printable
from podbot.cli.signals import handled


def invoke(g: Globals, *, sessions: tuple[str, ...]) -> int:
    """Start each; prints its name once it runs. Returns podbot's exit code."""
    from podbot.api import sessions as api

    config = api.load_config(g.load_options(os.environ, {}, {}))
    emit = Reporter(g, progress=True)
    with handled(tty=False) as wake:
        for name in dict.fromkeys(sessions):
            try:
                result = api.start(config, name, wake=wake, emit=emit)
            finally:
                emit.clear()
            sys.stdout.write(f"{printable(result.session)}\n")
    return 0
