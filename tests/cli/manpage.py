"""The manual page ``docs/man/podbot.1``, made from the table of the command line.

``make docs`` writes it; a test compares. The page has no date and no name of the machine, so that the same table gives
the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from podbot._version import __version__
from podbot.agents.registry import known
from podbot.cli.commands import COMMANDS, EPILOG, HELP_TEXT, Command
from podbot.cli.options import COMMON, HELP, Option
from podbot.config.models import AGENT_KINDS

PAGE = Path(__file__).parents[2] / "docs" / "man" / "podbot.1"
_CODE = re.compile(r"`([^`]*)`")
FILES = (
    ("~/.config/podbot/config.toml", "The configuration. `podbot config path` prints the path in force."),
    ("$XDG_RUNTIME_DIR/podbot/", "A directory for each session, readable by you only."),
    ("~/.local/state/podbot/", "Files of kept sessions, and the conversations of agents."),
)
STATUS = (
    ("0", "Success."),
    ("1", "podbot failed."),
    ("2", "The command line or the configuration is wrong."),
    ("3", "run --guard-exit: the session left files that act on this machine."),
    ("other", "The agent's or the command's own status, for run, host, exec and open."),
)


def page() -> str:
    """The text of the page, in roff's man macros."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield '.\\" Made by make docs from the table of the command line.'
    yield f'.TH PODBOT 1 "" "podbot {__version__}" "podbot"'
    yield from _section("NAME", [f"podbot \\- {_text(HELP_TEXT).rstrip('.')}"])
    yield from _section("SYNOPSIS", [".B podbot", "[OPTIONS] COMMAND [OPTIONS] [ARGUMENTS]"])
    yield from _section("DESCRIPTION", [_text(HELP_TEXT), ".PP", _text(EPILOG + ".")])
    yield from _section("OPTIONS", ["Before or after the name of a command.", *_options(COMMON)])
    yield from _listed([(_bold(", ".join(HELP)), "Show the help of podbot or of the command.")])
    yield from _listed([(_bold("--version, -V"), "Show the version. Before a command only.")])
    yield ".SH COMMANDS"
    for command in COMMANDS:
        yield from _command(command)
    yield from _section("EXIT STATUS", _listed((_bold(code), text) for code, text in STATUS))
    yield from _section("FILES", _listed((f"\\fI{_escaped(path)}\\fR", text) for path, text in FILES))
    yield from _section("SEE ALSO", [".BR podman (1)"])


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f".SH {title}"
    yield from lines


def _command(command: Command) -> Iterator[str]:
    name = " ".join(command.path)
    yield f'.SS "podbot {name}"'
    yield f"{_bold(f'podbot {name}')} {_escaped(' '.join(command.grammar))}"
    filled = command.help.replace("{known}", ", ".join(known()))
    for paragraph in re.split(r"\n\s*\n", filled.strip()):
        yield ".PP"
        text = " ".join(paragraph.split())
        example = text.removeprefix("Example: ")
        yield f"Example: {_bold(example)}" if example != text else _text(text)
    yield from _options(command.options)


def _options(options: Iterable[Option]) -> Iterator[str]:
    return _listed((_spelled(option), option.help) for option in options)


def _spelled(option: Option) -> str:
    words = _bold(", ".join((*option.spelled, *option.off)))
    metavar = option.metavar.replace("{agents}", "|".join(AGENT_KINDS))
    return f"{words} \\fI{_escaped(metavar)}\\fR" if metavar else words


def _listed(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    for term, text in rows:
        yield ".TP"
        yield term
        yield _text(text)


def _bold(text: str) -> str:
    return f"\\fB{_escaped(text)}\\fR"


def _text(text: str) -> str:
    """A line of text, in which ``code`` between backquotes is bold."""
    parts = _CODE.split(text)
    return "".join(_bold(part) if at % 2 else _escaped(part, begins=not at) for at, part in enumerate(parts))


def _escaped(text: str, *, begins: bool = False) -> str:
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("…", "...")
    return f"\\&{escaped}" if begins and escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page(), encoding="utf-8")
