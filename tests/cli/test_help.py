"""Help names every option; what is not built is not there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

from podbot.cli.app import app

COMMANDS = {
    ("run",), ("exec",), ("ps",), ("stop",), ("setup",), ("doctor",),
    ("config", "show"), ("config", "init"), ("config", "path"), ("config", "check"),
}  # fmt: skip
GLOBAL = {"--config", "-c", "--engine-socket", "--image", "--verbose", "-v", "--log-format", "--log-file"}


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, by the words that call it."""
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from commands(inner, (*path, name))
    else:
        yield path, command


ALL = dict(commands(typer.main.get_command(app)))


def help_of(*words: str) -> str:
    result = CliRunner().invoke(app, [*words, "--help"], prog_name="podbot", env={"COLUMNS": "200"})
    assert result.exit_code == 0
    return result.output


def test_these_are_all_commands() -> None:
    assert set(ALL) >= COMMANDS
    overview = help_of()
    for path in ALL:
        assert f"  {path[0]} " in overview


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help_names_every_option_with_a_word_on_it(path: tuple[str, ...]) -> None:
    text = help_of(*path)
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


def test_short_help_too() -> None:
    result = CliRunner().invoke(app, ["exec", "-h"], prog_name="podbot")
    assert result.exit_code == 0
    assert "Usage: podbot exec" in result.output
