"""``podbot doctor --fix`` and ``podbot image update`` from the command line."""

from __future__ import annotations

from dataclasses import replace

import pytest

from podbot.cli.entry import main
from podbot.cli.image import versions_in
from podbot.engine.podman.engine_machine import PodmanMachine
from podbot.errors import InvalidValue
from podbot.testing import FakeEngine
from tests.cli.terminals import no_terminal
from tests.driver import FakeDriver
from tests.engine.podman.test_machine_checks import DEBIAN_13, VERSION_5, lacking
from tests.session.plans import Place

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def incomplete(driver: FakeDriver, engine: FakeEngine, place: Place) -> FakeEngine:
    """A machine of root's without an init, on which the tests' own apt-get fails."""
    facts = replace(DEBIAN_13, uid=0, programs=lacking("catatonit"))
    driver.machine = lambda _environ: PodmanMachine(facts, VERSION_5, look=lambda _path: None)
    return engine


def test_without_a_terminal_nothing_is_run_without_yes(incomplete: FakeEngine, capfd: Capture) -> None:
    with no_terminal():
        assert main(["doctor", "--fix"]) == 2
    err = capfd.readouterr().err
    assert "podbot doctor --fix will run" in err
    assert "  - apt-get install -y --no-install-recommends catatonit (as root)" in err
    assert "--yes is required" in err
    assert incomplete.calls[-1][0] != "build"


def test_with_yes_the_commands_are_run(incomplete: FakeEngine, capfd: Capture) -> None:
    assert main(["doctor", "--fix", "--yes"]) == 1
    assert "`apt-get update -q` failed: it ended with status 99" in capfd.readouterr().err


def test_doctor_shows_no_question_where_nothing_is_to_be_fixed(
    driver: FakeDriver, engine: FakeEngine, place: Place, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.setenv("PODBOT_IMAGE", engine.images[0])
    engine.storage = place.base
    driver.machine = lambda _environ: PodmanMachine(DEBIAN_13, VERSION_5, look=lambda _path: None)
    with no_terminal():
        main(["doctor", "--fix"])
    captured = capfd.readouterr()
    assert "will run" not in captured.err
    assert "ok    podman" in captured.out


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--yes"], "--yes has no effect without --fix"), (["--fix", "--image", "x"], "--fix with --image")],
)
def test_options_that_have_no_effect_together(place: Place, capfd: Capture, words: list[str], said: str) -> None:
    assert main(["doctor", *words]) == 2
    assert said in capfd.readouterr().err


def test_words_of_an_update() -> None:
    assert versions_in(["claude", "codex=0.170.0"]) == {"claude": "", "codex": "0.170.0"}
    assert versions_in([]) == {}


@pytest.mark.parametrize("words", [["codex="], ["=1.0"], ["claude", "claude=1"]])
def test_words_that_are_no_update(words: list[str]) -> None:
    with pytest.raises(InvalidValue, match="AGENT or AGENT=VERSION"):
        versions_in(words)


def test_an_update_of_no_image_names_setup(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    engine.images = []
    engine.image_builder = object()  # type: ignore[assignment] # nothing is built
    assert main(["image", "update", "claude"]) == 1
    assert "podbot setup" in capfd.readouterr().err


def test_a_configuration_file_that_does_not_exist_is_said_to(engine: FakeEngine, place: Place, capfd: Capture) -> None:
    main(["doctor"])
    assert "the defaults: there is no " in capfd.readouterr().out
    with open(f"{place.base}/c.toml", "w", encoding="utf-8"):
        pass
    main(["--config", f"{place.base}/c.toml", "doctor"])
    assert f"{place.base}/c.toml\n" in capfd.readouterr().out
