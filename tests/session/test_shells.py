"""Shells of a container: which way their commands go, and what is said when the container is not there."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.errors import ChannelLost, ConnectionFailed, ContainerNotFound, InvalidCommand, SandboxDied, SandboxPaused
from podbot.session.shells import explained, shell_in
from podbot.shell.conformance_jobs import JobShellProtocolTests
from podbot.shell.podman_shell import PodmanShell
from podbot.testing import FakeEngine
from tests.execution.guests import guests
from tests.execution.running import Told
from tests.shell.real import SESSION, real_engine


@pytest.fixture
def engine() -> FakeEngine:
    """Its container has no python3."""
    return real_engine()


@pytest.fixture
def shell(engine: FakeEngine, tmp_path: Path) -> Iterator[PodmanShell]:
    with shell_in(
        lambda: engine, SESSION, root=str(tmp_path), network_enabled=False, limits=None, validator=None
    ) as made:
        yield made


def test_without_python3_commands_go_over_the_engine(engine: FakeEngine, shell: PodmanShell, tmp_path: Path) -> None:
    assert not engine.calls[2:]  # it connects with its first command
    result = shell.execute("pwd; echo x > made")
    assert (result.stdout, result.cwd) == (f"{tmp_path}\n", str(tmp_path))
    assert (tmp_path / "made").exists()
    assert "python3" in {session.spec.command[0] for session in engine.sessions.values()}


class TestOverTheSocket(JobShellProtocolTests):
    """Real guests, at a real socket in the session's directory."""

    @pytest.fixture(autouse=True)
    def _guests(self, engine: FakeEngine, tmp_path: Path) -> Iterator[None]:
        place, root = tmp_path / "guest", tmp_path / "root"
        place.mkdir()
        root.mkdir()
        with guests(place) as found:
            self.made = engine, found, root
            yield
            found.process(0)  # there was one
        assert not engine.sessions  # no command went over the engine

    def create_shell(self) -> PodmanShell:
        engine, found, root = self.made
        return shell_in(
            lambda: engine, SESSION, directory=found.directory, root=str(root), network_enabled=False, limits=None,
            validator=None,
        )  # fmt: skip

    @pytest.fixture
    def shell(self) -> Iterator[PodmanShell]:
        with self.create_shell() as made:
            made.execute(["true"])
            yield made


def test_without_python3_the_engine_runs_a_shells_commands_as_its_user(engine: FakeEngine) -> None:
    with shell_in(
        lambda: engine, SESSION, root="/", user="app:staff", network_enabled=False, limits=None, validator=None
    ) as shell:
        assert shell.execute(["true"]).success
        assert shell.execute_script("true", interpreter="/bin/sh").success
        assert shell.which("sh").found
    ran = [found.spec for found in engine.sessions.values() if found.spec.command[0] == "/bin/sh"]
    assert {spec.user for spec in ran} == {"app:staff"}


def test_a_guest_that_is_root_changes_the_user_and_another_leaves_that_to_the_engine(
    engine: FakeEngine, tmp_path: Path
) -> None:
    with guests(tmp_path) as found, shell_in(
        lambda: engine, SESSION, directory=found.directory, root="/", user="4321:1234", network_enabled=False,
        limits=None, validator=None,
    ) as shell:  # fmt: skip
        result = shell.execute("id -u; id -g")
    if os.geteuid() == 0:
        assert (result.stdout, engine.sessions) == ("4321\n1234\n", {})
    else:
        assert "4321:1234" in {ran.spec.user for ran in engine.sessions.values()}


@pytest.mark.parametrize("user", ["a\nb", "a\0", "x" * 256, "\ud800"])
def test_a_malformed_user_is_refused(engine: FakeEngine, user: str) -> None:
    with pytest.raises(InvalidCommand, match="user"):
        shell_in(lambda: engine, SESSION, root="/", user=user, network_enabled=False, limits=None, validator=None)


def test_a_container_that_dies_under_a_command_and_comes_back(engine: FakeEngine, shell: PodmanShell) -> None:
    with shell.stream("echo up; sleep 600", timeout_seconds=60) as stream:
        chunks = iter(stream)
        assert next(chunks).data == b"up\n"
        engine.die(SESSION)
        with pytest.raises(SandboxDied, match="exited"):
            list(chunks)
    with pytest.raises(SandboxDied, match="exited"):
        shell.execute(["true"])
    engine.start(SESSION)
    assert shell.execute(["echo", "back"]).stdout == "back\n"


def test_a_container_that_a_podbot_has_removed_is_told_from_one_that_is_not_there(engine: FakeEngine) -> None:
    lost = ChannelLost(where=SESSION, reason="it ended")
    found = [
        explained(lambda: engine, "gone", lost, witness)
        for witness in (Told(), Told("stopped"), Told(afterwards="stopped"))
    ]
    assert [type(error) for error in found] == [ContainerNotFound, SandboxDied, SandboxDied]
    assert all("a podbot was told to stop it" in str(error) for error in found[1:])


@pytest.mark.parametrize("cause", ["owner_killed", ""])
def test_the_end_of_a_container_whose_channel_is_lost_is_waited_for(engine: FakeEngine, cause: str) -> None:
    """The channel is lost a little before the engine knows, and that was the error."""
    lost = ChannelLost(where=SESSION, reason="it ended")
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            engine.die(SESSION)

    found = explained(lambda: engine, SESSION, lost, Told(cause), sleep=sleep)
    assert isinstance(found, SandboxDied)
    assert (found.cause, len(slept)) == (cause or "not_running", 2)


def test_a_sandbox_that_does_not_end_after_all_is_not_waited_for_any_longer(engine: FakeEngine) -> None:
    lost = ChannelLost(where=SESSION, reason="it ended")
    slept: list[float] = []
    assert explained(lambda: engine, SESSION, lost, Told("stopped"), sleep=slept.append) is lost
    assert sum(slept) < 3


def test_who_ended_a_container_is_looked_at_before_the_engine_is_opened(engine: FakeEngine) -> None:
    engine.die(SESSION)
    witness = Told(afterwards="owner_killed")

    def connect() -> FakeEngine:
        witness.afterwards = ""
        return engine

    found = explained(connect, SESSION, ChannelLost(where=SESSION, reason="it ended"), witness)
    assert isinstance(found, SandboxDied)
    assert found.cause == "owner_killed"


def test_a_container_that_is_paused_is_not_lost(engine: FakeEngine, shell: PodmanShell) -> None:
    assert shell.execute(["true"]).success
    engine.pause(SESSION)
    with pytest.raises(SandboxPaused, match="is paused") as caught:
        shell.execute(["true"])
    assert isinstance(caught.value, RuntimeError)
    assert (caught.value.container, SESSION in caught.value.engine_hint) == (SESSION, bool(engine.words.resume))
    engine.unpause(SESSION)
    assert shell.execute(["true"]).success


def test_a_container_that_is_gone(engine: FakeEngine, shell: PodmanShell) -> None:
    assert shell.execute(["true"]).success
    engine.remove(SESSION)
    with pytest.raises(ContainerNotFound) as caught:
        shell.execute(["true"])
    assert caught.value.container == SESSION


def test_an_engine_that_cannot_be_reached_is_a_runtime_error(tmp_path: Path) -> None:
    def refuse() -> FakeEngine:
        raise ConnectionFailed(endpoint="unix:///x", origin="default", reason="refused")

    shell = shell_in(refuse, SESSION, root=str(tmp_path), network_enabled=False, limits=None, validator=None)
    with pytest.raises(RuntimeError, match="refused"):
        shell.execute(["true"])


def test_several_threads_have_an_engine_each(engine: FakeEngine, tmp_path: Path) -> None:
    opened: list[int] = []

    def connect() -> FakeEngine:
        opened.append(threading.get_ident())
        return engine

    with shell_in(connect, SESSION, root=str(tmp_path), network_enabled=False, limits=None, validator=None) as shell:
        both = "touch $0; while [ $(ls | wc -l) -lt 2 ]; do sleep 0.02; done"
        threads = [threading.Thread(target=shell.execute, args=(["sh", "-c", both, name],)) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(opened) >= 2
