"""Provokes the errors of :mod:`tests.cli.provoked`, grades what is printed, and compares the page with it.

``WRITE_ERRORS=1`` appends the rows to the page instead.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.cli.entry import main
from podbot.cli.globals import Globals
from podbot.testing import IMAGE, FakeEngine
from tests.cli.provoked import CASES, Provoked
from tests.cli.terminals import no_terminal
from tests.session.plans import Place, container, made

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "provoked-errors.md"
HEAD = "| provoked by | printed | thing | origin | remedy |\n|---|---|---|---|---|\n"
NOTHING = "\N{EN DASH}"
MOST_WITHOUT = 5  # cases that may lack a thing, an origin or a remedy


@pytest.fixture(autouse=True)
def _as_a_script() -> Iterator[None]:
    before, Globals.current = Globals.current, Globals()
    with no_terminal():
        yield
    Globals.current = before


def provoke(case: Provoked, place: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> str:
    """The case's row of the table."""
    config = os.path.join(place.base, "podbot.toml")
    Path(config).write_text(case.config, encoding="utf-8")
    os.chmod(config, 0o600)
    for name, value in case.variables:
        monkeypatch.setenv(name, value)
    if not case.config and "PODBOT_IMAGE" not in dict(case.variables):
        monkeypatch.setenv("PODBOT_IMAGE", IMAGE)
    monkeypatch.chdir(place.base)
    words = [place.workspace if word == "W" else word for word in case.argv]
    before = ["--config", config] if case.config else []
    capfd.readouterr()
    assert main(["--log-format", "json", *before, *words]) in (1, 2)
    *_, last = capfd.readouterr().err.splitlines()
    error = json.loads(last)
    message = str(error["message"]).replace(config, "CONFIG").replace(place.workspace, "W").replace(place.base, "~")
    remedy = str(error.get("remedy", "")).replace(config, "CONFIG").replace(place.base, "~")
    whole = f"{message}. {remedy}" if remedy else message
    thing = "yes" if case.thing in message else "no"
    origin = ("yes" if case.origin in message else "no") if case.origin else NOTHING
    advised = "yes" if remedy or " is not one of " in message else "no"
    return f"| {_cell(case.how)} | {_cell(whole)} | {thing} | {origin} | {advised} |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.how)
def test_the_page_has_what_is_printed(
    case: Provoked, engine: FakeEngine, place: Place, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    made(engine, "shop-a", "shop-b")
    for name in ("shop-a", "shop-b"):
        os.makedirs(place.directory(name), 0o700)
    engine.create(container("taken", marks={}))
    row = provoke(case, place, monkeypatch, capfd)
    if os.environ.get("WRITE_ERRORS"):
        with PAGE.open("a", encoding="utf-8") as file:
            file.write(row + "\n")
    assert row in PAGE.read_text(encoding="utf-8").splitlines()


def test_the_page_has_no_other_rows_and_few_without_a_part() -> None:
    rows = [
        line
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ") and HEAD[:20] not in line
    ]
    assert len(rows) == len(CASES) >= 100
    assert sum(" | no " in row for row in rows) <= MOST_WITHOUT
