"""Every engine of the registry provides everything that an engine's folder must provide, and is imported when it is
needed.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from podbot.config.models import DEFAULT_ENGINE
from podbot.engine import kinds, podman
from podbot.engine.driver import EngineDriver
from podbot.engine.podman import driver as podman_driver
from podbot.errors import InvalidValue, PodbotError, UnsupportedEndpoint

PODMAN: EngineDriver = podman_driver  # mypy compares the module with the protocol


@pytest.mark.parametrize("kind", kinds.ENGINES)
def test_each_engine_knows_its_name_and_reopens_a_recorded_endpoint(kind: str) -> None:
    driver = kinds.driver(kind, "t")
    assert driver.WORDS.kind == kind
    engine = driver.reopen("unix:///run/e.sock", "t")
    assert (engine.words, engine.endpoint) == (driver.WORDS, "unix:///run/e.sock")
    with pytest.raises(UnsupportedEndpoint):
        driver.reopen("x://y", "t")
    assert driver.machine({}).facts.platform == sys.platform


def test_the_default_is_in_the_registry() -> None:
    assert DEFAULT_ENGINE in kinds.ENGINES
    assert kinds.ENGINES[DEFAULT_ENGINE].startswith(podman.__name__)


@pytest.mark.parametrize("kind", ["", "Podman", "os", "podbot.engine.podman.driver"])
def test_an_unknown_name_imports_nothing(kind: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        kinds.driver(kind, "file c.toml")
    error: PodbotError = caught.value
    assert error.fields["origin"] == "file c.toml"


def test_the_registry_imports_no_engine() -> None:
    code = "import sys, podbot.engine.kinds; print([name for name in sys.modules if 'engine.podman' in name])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
