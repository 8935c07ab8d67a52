"""The engine's contract, the same tests that FakeEngine passes, on real Podman."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import podbot
from e2e.harness import ROOTLESS, World
from podbot.cli.remedies import remedy_of
from podbot.container_spec import Limits, Mount
from podbot.engine.port import Engine
from podbot.errors import ExecFailed, RemoveFailed, StartFailed
from podbot.exec_spec import ExecSpec
from podbot.execution.runner import ExecIO, run_exec
from podbot.frozen import replace
from podbot.streams.wake import Wake
from podbot.testing.engine_contract import EngineContract, a_spec


class TestPodman(EngineContract):
    """Podman's REST API behind podbot's private service."""

    @pytest.fixture
    def bare_engine(self, shared_world: World) -> Iterator[Engine]:
        config = podbot.load_config(podbot.LoadOptions(environ=shared_world.env))
        with podbot.open_engine(config, environ={**os.environ, **shared_world.env}) as engine:
            yield engine

    def test_a_command_that_is_not_started_is_said_without_the_runtimes_words(
        self, engine: Engine, running: str
    ) -> None:
        """Over the engine's own execs, as in an image without a guest."""
        assert ran(engine, running, ExecSpec(command=("no-such",))) == (127, b"no-such: not found\n")
        missing = (127, b"/no/such: no such file or directory\n")
        assert ran(engine, running, ExecSpec(command=("/no/such",))) == missing
        for unfit in ("/etc", "/etc/passwd"):
            assert ran(engine, running, ExecSpec(command=(unfit,))) == (126, f"{unfit}: permission denied\n".encode())
        absent = "its working directory {}: No such file or directory"
        for spec, *words in (
            (ExecSpec(command=("true",), workdir="/no-such"), absent.format("/no-such")),
            (ExecSpec(command=("true",), user="no-such"), "the sandbox has no user no-such"),
            # runc refuses a relative one; crun looks for it.
            (ExecSpec(command=("true",), workdir="relative"), ExecFailed.NOT_STARTED, absent.format("relative")),
        ):
            with pytest.raises(ExecFailed) as caught:
                ran(engine, running, spec)
            assert caught.value.reason in words
            assert (caught.value.container, caught.value.command) == (running, "true")

    def test_the_state_of_a_container_is_said_without_the_engines_words(self, engine: Engine, running: str) -> None:
        engine.stop(running, seconds=0)
        with pytest.raises(ExecFailed) as caught:
            ran(engine, running, ExecSpec(command=("true",)))
        assert caught.value.reason == ExecFailed.NOT_RUNNING

    @pytest.mark.parametrize("refused_for", ["mount", "workdir", "memory"])
    def test_a_container_that_the_runtime_refuses_is_said_without_its_words(
        self, engine: Engine, image: str, tmp_path: Path, refused_for: str
    ) -> None:
        """Issue 29.10, of the engine's words: "OCI runtime error", "container state improper"."""
        gone = tmp_path / "gone"
        gone.mkdir()
        spec, words = {
            "mount": (replace(a_spec(image), mounts=(Mount(str(gone), "/mnt/gone", read_only=True),)), f"{gone}"),
            "workdir": (replace(a_spec(image), workdir="/etc/passwd/x"), "its working directory /etc/passwd/x"),
            "memory": (replace(a_spec(image), limits=Limits(memory=1 << 19)), "its memory limit is too low"),
        }[refused_for]
        container = engine.create(spec)
        gone.rmdir()
        # crun takes any limit of memory, and cgroup v1 has none for an ordinary user.
        runtime = os.path.basename(engine.confinement(container).runtime)
        no_limit = ROOTLESS and not os.path.exists("/sys/fs/cgroup/cgroup.controllers")
        try:
            if refused_for == "memory" and (runtime == "crun" or no_limit):
                engine.start(container)
                return
            with pytest.raises(StartFailed) as refused:
                engine.start(container)
        finally:
            engine.remove(container)
        assert refused.value.reason.startswith(words)
        assert_own_words(refused.value)

    def test_a_container_that_runs_is_not_removed_and_that_is_said_without_the_engines_words(
        self, engine: Engine, running: str
    ) -> None:
        with pytest.raises(RemoveFailed) as refused:
            engine.remove(running, kill=False)
        assert refused.value.reason == "it is running"
        assert_own_words(refused.value)

    def test_a_container_that_ends_during_its_removal_is_removed(self, engine: Engine, image: str) -> None:
        """Podman 4.3 refuses when the first process ends between its check and its KILL, at 5 to 40 ms here."""
        for number in range(24):
            spec = a_spec(image)
            container = engine.create(spec)
            engine.start(container)
            ending = threading.Timer(number % 12 * 0.005, _end, (engine.inspect(container).pid,))
            ending.start()
            engine.remove(container)
            ending.join()
            assert spec.name not in {found.name for found in engine.containers(include_stopped=True)}


def assert_own_words(error: StartFailed | RemoveFailed) -> None:
    said = f"{error} {error.reason} {remedy_of(error)}"
    assert not [word for word in ("OCI", "improper", "runc", "crun", "container init") if word in said]
    assert error.detail
    assert remedy_of(error)


def ran(engine: Engine, container: str, spec: ExecSpec) -> tuple[int, bytes]:
    """The status of a command that the engine runs, and what was printed on its stderr."""
    with tempfile.TemporaryFile() as said:
        done = run_exec(engine, container, spec, ExecIO(None, None, said.fileno()), Wake())
        said.seek(0)
        return done.code, said.read()


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
