"""Help names every option, and nothing that is not built."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podbot.cli.app import root
from podbot.cli.commands import COMMANDS, GROUPS
from podbot.cli.entry import main
from podbot.cli.help import PAGES
from tests.cli.help_pages import pages, paths, rendered

GLOBAL = {
    "--config",
    "-c",
    "--engine-socket",
    "--image",
    "--verbose",
    "-v",
    "--log-format",
    "--log-file",
    "--quiet",
    "-q",
}


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, with the words that call it."""
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from commands(inner, (*path, name))
    else:
        yield path, command


ALL = dict(commands(root()))


def help_of(*words: str) -> str:
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
        patch.setenv("COLUMNS", "200")
        assert root()(args=list(words), prog_name="podbot", standalone_mode=False) == 0
    return said.getvalue()


def test_these_are_all_commands() -> None:
    assert set(ALL) == {command.path for command in COMMANDS}
    overview = help_of("--help")
    for path in ALL:
        assert f"  {path[0]} " in overview


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help_describes_every_option(path: tuple[str, ...]) -> None:
    text = help_of(*path, "--help")
    assert f"Usage: podbot {' '.join(path)}" in text
    for parameter in ALL[path].params:
        if parameter.param_type_name == "option":
            for option in (*parameter.opts, *parameter.secondary_opts):
                assert option in text
            assert parameter.help or "--help" in parameter.opts, f"{parameter.opts} has no help"


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_global_options_are_accepted_after_every_command(path: tuple[str, ...]) -> None:
    options = {option for parameter in ALL[path].params for option in parameter.opts}
    assert options >= GLOBAL


def test_the_overview_fits_80_columns_and_cuts_no_summary() -> None:
    for words in ((), *((name,) for name in GROUPS)):
        said = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said):
            patch.setenv("COLUMNS", "80")
            root()(args=[*words, "--help"], prog_name="podbot", standalone_mode=False)
        text = said.getvalue()
        assert max(map(len, text.splitlines())) <= 80
        assert "..." not in text.partition("Commands:")[2]


def test_the_command_help_prints_the_same() -> None:
    for words in ((), ("exec",), ("image", "build")):
        assert help_of("help", *words) == help_of(*words, "--help")


NO_COMMAND = "there is no command 'nosuch'. "


@pytest.mark.parametrize("columns", ["60", "80"])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("nosuch", f"{NO_COMMAND}`podbot --help` lists the commands."),
        ("config nosuch", f"config: {NO_COMMAND}`podbot config --help` lists the commands."),
        ("image nosuch", f"image: {NO_COMMAND}`podbot image --help` lists the commands."),
        ("rmi", "there is no command 'rmi'. `podbot image rm IMAGE` removes an image of podbot's."),
        ("image ps", "image: there is no command 'ps'. `podbot image --help` lists the commands."),
        ("run nosuch", "help: 'nosuch' is not expected here. `podbot help run` shows the help of that command."),
        ("run run", "help: 'run' is not expected here. `podbot help run` shows the help of that command."),
        ("image ls x", "help: 'x' is not expected here. `podbot help image ls` shows the help of that command."),
        ("-- --nosuch", "help: there is no command '--nosuch'. `podbot --help` lists the commands."),
        ("-- config --nosuch", "help: there is no command '--nosuch'. `podbot --help` lists the commands."),
    ],
)
def test_help_of_what_is_no_command_is_an_error_of_the_command_line(
    words: str, said: str, columns: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["help", *words.split()]) == 2
    assert capfd.readouterr() == ("", f"podbot: {said}\n")


def test_the_short_help_option() -> None:
    assert "Usage: podbot exec" in help_of("exec", "-h")


# --- the pages that are printed without Typer ------------------------------------------------------


def test_the_pages_are_up_to_date() -> None:
    assert Path(PAGES).read_text(encoding="utf-8") == pages(), "run make parts"


@pytest.mark.parametrize("words", paths(), ids=lambda words: " ".join(words) or "podbot")
def test_the_usage_has_no_brackets_of_the_parsers_own(words: list[str]) -> None:
    usage = help_of(*words, "--help").splitlines()[0]
    assert usage.startswith(" ".join(["Usage: podbot", *words]))
    assert [mark for mark in ("{", "}", "[[", "]]", "...") if mark in usage] == []
    assert usage.count("[") == usage.count("]")


@pytest.mark.parametrize("words", paths(), ids=lambda words: " ".join(words) or "podbot")
@pytest.mark.parametrize("columns", [60, 80, 200])
def test_a_page_is_what_typer_prints(
    words: list[str], columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    expected = rendered(words, columns)
    for argv in ([*words, "--help"], [*words, "-h"], ["help", *words]):
        assert main(argv) == 0
        assert capsys.readouterr().out == expected


@pytest.mark.parametrize(
    "argv", [["image ls", "--help"], ["podbot", "--help"], ["ls", "--help"], ["[OPTIONS]", "-h"], ["image", "x", "-h"]]
)
def test_other_words_are_the_parser_s_errors(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(argv) == 2
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("path", [command.path for command in COMMANDS], ids=" ".join)
def test_arguments_are_shown_without_python_types(path: tuple[str, ...]) -> None:
    text = help_of(*path, "--help")
    assert "<str>" not in text
    assert "list[str]" not in text
