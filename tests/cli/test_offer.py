"""`podbot run` on a machine without an image: the offer to set up, on a terminal of the test's own."""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any

import pytest

from podbot.cli.entry import main
from podbot.cli.offer import setup_may_help
from podbot.config.load import load_config
from podbot.config.models import AppConfig, LoadOptions, Origin
from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.errors import (
    AgentNotInImage,
    ContainerNotFound,
    EngineNotInstalled,
    ImageNotFound,
    MachineNotReady,
    MissingRequired,
    PodbotError,
    SocketNotFound,
)
from podbot.images.recipe import load_recipe
from podbot.testing import FakeEngine, ScriptedExec
from tests.cli.terminals import Emulator, no_terminal
from tests.driver import FakeDriver
from tests.images.builder import Builder
from tests.session.plans import Place

OURS = load_recipe().image
FEDORA = PodmanFacts(distribution=("fedora",))  # podbot pulls its base there


@pytest.fixture
def builder(driver: FakeDriver, place: Place) -> Builder:
    driver.engine = FakeEngine(images=())
    driver.engine.image_builder = made = Builder(driver.engine)
    driver.runs_on(FEDORA)
    driver.engine.on("codex", ScriptedExec(stdout=b"the agent ran", code=3))
    return made


def on_terminal(answer: bytes, *words: str, workspace: str) -> tuple[int, str]:
    """The exit code and what the terminal showed."""
    before = os.getcwd()
    os.chdir(workspace)
    try:
        with contextlib.closing(Emulator()) as emulator:
            emulator.type(answer)
            with emulator.as_streams():
                code = main([*words])
            return code, emulator.said().decode()
    finally:
        os.chdir(before)


def test_one_answer_sets_up_and_then_runs(builder: Builder, place: Place) -> None:
    code, said = on_terminal(b"y\n", "run", "codex", "--no-history", workspace=place.workspace)
    assert "podbot: there is no sandbox image yet. To set up, podbot will" in said
    assert "- pull debian:bookworm-slim (about 230 MB, 40 s)" in said
    assert re.search(r"- build \S+ with claude \S+, codex \S+ \(about \d+ MB, \d+ s\)", said)
    assert re.search(r"This takes about \d+ s .*Do it, and then start codex\? \[y/N\]", said)
    assert (code, builder.built) == (3, [OURS]), said
    assert "the agent ran" in said
    config = load_config(LoadOptions(environ=dict(os.environ)))
    assert (config.image, config.agent.install) == (OURS, ("claude", "codex"))


@pytest.mark.parametrize("answer", [b"\n", b"n\n", b"x\n", b"\x04"])
def test_anything_but_yes_is_no(builder: Builder, place: Place, answer: bytes) -> None:
    code, said = on_terminal(answer, "run", "codex", workspace=place.workspace)
    assert (code, builder.built) == (2, [])
    assert "`podbot setup` writes the key." in said


@pytest.mark.parametrize("words", [["--log-format", "json"], ["--dry-run"]])
def test_programs_and_dry_runs_get_the_error(builder: Builder, place: Place, words: list[str]) -> None:
    code, said = on_terminal(b"y\n", "run", "codex", *words, workspace=place.workspace)
    assert (code, builder.built) == (2, [])
    assert "[y/N]" not in said


def test_without_a_terminal_nothing_is_asked(builder: Builder, place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    with no_terminal():
        assert main(["run", "codex", place.workspace]) == 2
        assert "podbot setup" in capfd.readouterr().err
        assert main(["run", "codex", "--image", "x"]) == 2
    assert "--workspace PATH" in capfd.readouterr().err
    assert builder.built == []


def test_an_agent_that_the_image_lacks_is_added(builder: Builder, place: Place) -> None:
    on_terminal(b"y\n", "run", "codex", workspace=place.workspace)
    builder.engine.on("gemini", ScriptedExec(code=0))
    code, said = on_terminal(b"y\n", "run", "gemini", workspace=place.workspace)
    assert re.search(r"with claude \S+, codex \S+, gemini \S+ \(", said)
    assert (code, builder.built) == (0, [OURS, OURS])


@pytest.mark.parametrize(
    ("error", "kind", "helps"),
    [
        (MissingRequired(field="image"), "default", True),
        (MissingRequired(field="agent.command"), "default", False),
        (ImageNotFound(image=OURS, origin="x"), "file", True),
        (ImageNotFound(image=OURS, origin="x"), "flag", False),
        (ImageNotFound(image="mine:1", origin="x"), "file", False),
        (AgentNotInImage(image=OURS, origin="x", agent="codex", agents="claude,codex"), "file", True),
        (AgentNotInImage(image="mine:1", origin="x", agent="codex", agents="codex"), "file", False),
        (EngineNotInstalled(engine="Podman", install="Install it"), "file", True),
        (SocketNotFound(path="/s", origin="flag --engine-socket"), "file", False),
        (MachineNotReady(problems="x", fixes="y"), "file", True),
        (ContainerNotFound(container="x"), "file", False),
    ],
)
def test_errors_that_setup_may_cure(error: PodbotError, kind: Any, helps: bool) -> None:
    config = AppConfig(image="x", origins={"image": Origin(kind, "x")})
    assert setup_may_help(error, config) is helps


def test_set_up_does_not_help_where_a_projects_table_names_the_image() -> None:
    config = AppConfig(image=OURS, origins={"image": Origin("file", "x", "~/shop")})
    assert not setup_may_help(ImageNotFound(image=OURS, origin="x"), config)
    error = AgentNotInImage(image=OURS, origin=str(config.origin("image")), agent="codex", agents="codex")
    assert not setup_may_help(error, config)
    assert "config file x, project ~/shop" in error.message


@pytest.mark.parametrize("answer", [b"n\n", b"\x04"])
def test_set_up_that_is_not_agreed_to_says_that_nothing_was_changed(
    builder: Builder, place: Place, answer: bytes
) -> None:
    code, said = on_terminal(answer, "setup", workspace=place.workspace)
    assert (code, builder.built) == (1, [])
    *_, asked, last = said.splitlines()
    if answer == b"\x04":
        assert (asked.strip(), last) == ("Go ahead? [Y/n]", "podbot: nothing was changed")
    else:  # whose newline the terminal has shown before the question, because it was typed before
        assert last.strip() == "Go ahead? [Y/n] podbot: nothing was changed"
