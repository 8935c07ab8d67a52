"""An engine in memory behind the CLI, and a host of its own: no configuration of the developer's is read."""

from __future__ import annotations

import os

import pytest

from podbot.engine.podman import driver
from podbot.testing import FakeEngine
from tests.session.plans import Place


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> FakeEngine:
    """What every command connects to."""
    made = FakeEngine()
    monkeypatch.setattr(driver, "connect", lambda _config, _environ, _emit: made)
    return made


@pytest.fixture
def place(tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch) -> Place:
    """Home, runtime directory and workspace, all temporary; no PODBOT_ variable."""
    made = Place(os.fspath(tmp_path))
    for name in [name for name in os.environ if name.startswith(("PODBOT_", "XDG_"))]:
        monkeypatch.delenv(name)
    for name in ("CONTAINER_HOST", "DOCKER_HOST", "PODMAN_HOST", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", made.base)
    for name, value in made.environ.items():
        monkeypatch.setenv(name, value)
    return made
