"""``podbot help`` and ``podbot version``, and the same texts for ``--help`` and ``--version``.

Typer renders the help of all commands when podbot is made, for 80 columns (``make parts``). Importing and running it
takes five to eight times as long as printing such a page (measured); it still renders for a narrower terminal.
"""

from __future__ import annotations

import os
import sys

from podbot.cli.commands import BY_PATH, GROUPS
from podbot.cli.globals import Globals
from podbot.cli.options import HELP, VERSION
from podbot.streams.terminal import terminal_size

PAGES = os.path.join(os.path.dirname(__file__), "help_pages.txt")
COLUMNS = 80
END = "\f\n"  # behind each page


def answers(argv: list[str]) -> bool:
    """Print the version or the page for which ``argv`` asks; returns whether it did."""
    if len(argv) == 1 and argv[0] in VERSION:
        version(Globals())
        return True
    return argv[-1:] in ([word] for word in HELP) and _print_page(argv[:-1])


def invoke(_: Globals, *, words: tuple[str, ...]) -> int:
    """Print the help of podbot or of the command; returns podbot's exit code. Raises UsageError for another word."""
    if _print_page(list(words)):
        return 0
    from podbot.cli.app import root
    from podbot.cli.grammar import PARSER_ERROR
    from podbot.cli.usage_errors import usage_error

    _refuse_extra(words)
    argv = [*words, "--help"]
    try:
        code: int = root()(args=argv, prog_name="podbot", standalone_mode=False)
    except PARSER_ERROR as exc:
        raise usage_error(exc, argv) from None
    return code


def _refuse_extra(words: tuple[str, ...]) -> None:
    """Refuse words behind a command's name, and options: with ``--help`` behind them, the parser ignores both."""
    from podbot.cli.commands import find
    from podbot.cli.repeating import shown_word
    from podbot.errors import UsageError

    command = find(list(words))
    known = len(command.path) if command is not None else 0
    if command is not None and len(words) > known:
        hint = f"`podbot help {' '.join(words[:known])}` shows the help of that command."
        raise UsageError(command="podbot help", reason=f"{shown_word(words[known])} is not expected here", hint=hint)
    for word in words:
        if word.startswith("-"):
            reason = f"there is no command {shown_word(word)}"
            raise UsageError(command="podbot help", reason=reason, hint="`podbot --help` lists the commands.")


def version(_: Globals) -> int:
    """Print podbot's version; returns podbot's exit code."""
    from podbot._version import __version__

    sys.stdout.write(f"podbot {__version__}\n")
    return 0


def _print_page(words: list[str]) -> bool:
    """Print the page if there is one and it fits; returns whether it did."""
    page = _page(words) if _columns() >= COLUMNS else None
    if page is not None:
        try:
            sys.stdout.write(page)
        except UnicodeEncodeError:  # the pages have one character that is not ASCII
            sys.stdout.write(page.replace("…", "..."))
    return page is not None


def _page(words: list[str]) -> str | None:
    """The help of a command, of a group of commands, or without words of podbot; None if there is none."""
    if words and tuple(words) not in BY_PATH and words not in ([group] for group in GROUPS):
        return None
    try:
        with open(PAGES, encoding="utf-8") as file:
            pages = file.read().split(END)
    except OSError:  # podbot is in an archive, for example
        return None
    begin = f"{' '.join(['Usage: podbot', *words])} ["
    return next((page for page in pages if page.startswith(begin)), None)


def _columns() -> int:
    """The terminal's width, as Typer finds it. ``shutil``, which has this, costs 8 ms."""
    chosen = os.environ.get("COLUMNS", "")
    if chosen.isdecimal() and int(chosen) > 0:
        return int(chosen)
    size = terminal_size(1)
    return size[0] if size is not None else COLUMNS
