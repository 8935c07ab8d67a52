"""``podbot help``: the same texts as ``--help``."""

from __future__ import annotations

from podbot.cli.globals import Globals


def invoke(_: Globals, *, words: tuple[str, ...]) -> int:
    """Print the help of podbot or of the command; returns podbot's exit code. An unknown one is the parser's error."""
    from podbot.cli.app import root

    code: int = root()(args=[*words, "--help"], prog_name="podbot", standalone_mode=False)
    return code
