"""Commands by the engine's execs: the same as a guest's, on real processes behind a fake engine."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.guest.messages import GuestCommand
from podbot.shell.conformance_jobs import JobShellProtocolTests
from podbot.shell.engine_commands import EngineCommands
from podbot.shell.podman_shell import PodmanShell
from podbot.streams.wake import Message
from tests.shell.real import SESSION, real_engine
from tests.waiting import HANG, pause


class TestEngineCommands(JobShellProtocolTests):
    jobs_of_the_left = False

    @pytest.fixture(autouse=True)
    def root(self) -> Iterator[str]:
        with tempfile.TemporaryDirectory(prefix="podbot-shell-") as root:
            self.directory = root
            yield root

    def create_shell(self) -> PodmanShell:
        engine = real_engine()
        return PodmanShell(lambda: EngineCommands(lambda: engine, SESSION), root=self.directory)


def test_a_job_that_has_ended_before_podbot_looks_for_its_processes(tmp_path: Path) -> None:
    engine = real_engine()
    commands = EngineCommands(lambda: engine, SESSION)
    running = commands.start(GuestCommand(("sleep", "600"), cwd=str(tmp_path), keep=1000))
    job = commands.attach(running.job)
    post = running._post  # noqa: SLF001 - a pause there is what shows it

    def posted(message: Message) -> None:
        post(message)
        running._thread.join(HANG)  # noqa: SLF001
        pause(0.1)

    running._post = posted  # type: ignore[method-assign]  # noqa: SLF001
    job.kill()
    ended = job.wait(HANG)
    assert ended is not None
    assert ended.signal is not None
