"""``podbot/cli/help_pages.txt``: the help of podbot and of all its commands, as Typer renders it for 80 columns.

``make parts`` writes it; a test compares.
"""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path

from podbot.cli.app import root
from podbot.cli.commands import COMMANDS, GROUPS
from podbot.cli.help import COLUMNS, END, PAGES


def paths() -> list[list[str]]:
    """The words of every page: none, then each group of commands, then each command."""
    return [[], *([group] for group in GROUPS), *([*command.path] for command in COMMANDS)]


def rendered(words: list[str], columns: int = COLUMNS) -> str:
    """What Typer prints for ``podbot WORDS --help`` on a terminal of this width."""
    printed = io.StringIO()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(columns)
    try:
        with contextlib.redirect_stdout(printed):
            root()(args=[*words, "--help"], prog_name="podbot", standalone_mode=False)
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before
    return printed.getvalue()


def pages() -> str:
    """The text of the file."""
    return "".join(f"{rendered(words)}{END}" for words in paths())


if __name__ == "__main__":
    Path(PAGES).write_text(pages(), encoding="utf-8")
