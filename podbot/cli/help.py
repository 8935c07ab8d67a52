"""``podbot help`` and ``podbot version``: the same texts as ``--help`` and ``--version``."""

from __future__ import annotations

import sys

from podbot.cli.globals import Globals


def invoke(_: Globals, *, words: tuple[str, ...]) -> int:
    """Print the help of podbot or of the command; returns podbot's exit code. An unknown one is the parser's error."""
    from podbot.cli.app import root

    code: int = root()(args=[*words, "--help"], prog_name="podbot", standalone_mode=False)
    return code


def version(_: Globals) -> int:
    """Print podbot's version; returns podbot's exit code."""
    from podbot._version import __version__

    sys.stdout.write(f"podbot {__version__}\n")
    return 0
