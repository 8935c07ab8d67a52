"""The manual page is made from the table of the command line."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from podbot.cli.commands import COMMANDS, Command
from tests.cli.manpage import PAGE, page

ROOT = Path(__file__).parents[2]


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run make docs"


def test_it_is_a_page_of_section_1_in_plain_ascii() -> None:
    text = page()
    assert re.search(r'(?m)^\.TH PODBOT 1 "" "podbot ', text)
    assert text.isascii()
    assert all(line.strip() for line in text.splitlines())


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: " ".join(command.path))
def test_it_names_every_command_and_option(command: Command) -> None:
    found = re.search(rf'(?ms)^\.SS "podbot {" ".join(command.path)}"\n(.*?)(?=^\.S[SH] )', page())
    assert found
    text = found[1].replace("\\-", "-")
    for option in command.options:
        assert all(word in text for word in (*option.spelled, *option.off))


def test_the_wheel_and_the_sdist_contain_it() -> None:
    hatch = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
    assert hatch["wheel"]["shared-data"] == {"docs/man/podbot.1": "share/man/man1/podbot.1"}
    assert "docs" in hatch["sdist"]["include"]
