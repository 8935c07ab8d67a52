"""``podbot inspect``: a session's record, state, plan and confinement."""

from __future__ import annotations

import os
import sys

from podbot.cli.globals import Globals
from podbot.cli.report import Reporter


def invoke(g: Globals, *, sessions: tuple[str, ...], as_json: bool) -> int:
    """Print what is known of each session; returns podbot's exit code."""
    from dataclasses import asdict  # imported here: see podbot.frozen

    from podbot.api import sessions as api
    from podbot.api.inspecting import inspect

    config = api.load_config(g.load_options(os.environ, {}, {}))
    emit = Reporter(g)
    found = [asdict(inspect(config, name, emit=emit)) for name in dict.fromkeys(sessions)]
    if as_json:
        import json

        sys.stdout.write(json.dumps(found, indent=2) + "\n")
        return 0
    from podbot.cli.selection import print_tree

    for one in found:
        print_tree(one["session"]["session"], "", one)
    return 0
