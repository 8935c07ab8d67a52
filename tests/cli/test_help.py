"""Help names every option; what is not built is not there."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator
from typing import Any

import pytest

from podbot.cli.app import root
from podbot.cli.commands import COMMANDS

GLOBAL = {"--config", "-c", "--engine-socket", "--image", "--verbose", "-v", "--log-format", "--log-file"}


def commands(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that does something, by the words that call it."""
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
def test_help_names_every_option_with_a_word_on_it(path: tuple[str, ...]) -> None:
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


def test_short_help_too() -> None:
    assert "Usage: podbot exec" in help_of("exec", "-h")
