"""Commands by the engine's execs: the same as a guest's, on real processes behind a fake engine."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator

import pytest

from podbot.shell.conformance_jobs import JobShellProtocolTests
from podbot.shell.engine_commands import EngineCommands
from podbot.shell.podman_shell import PodmanShell
from tests.shell.real import SESSION, real_engine


class TestEngineCommands(JobShellProtocolTests):
    @pytest.fixture(autouse=True)
    def root(self) -> Iterator[str]:
        with tempfile.TemporaryDirectory(prefix="podbot-shell-") as root:
            self.directory = root
            yield root

    def create_shell(self) -> PodmanShell:
        engine = real_engine()
        return PodmanShell(lambda: EngineCommands(lambda: engine, SESSION), root=self.directory)
