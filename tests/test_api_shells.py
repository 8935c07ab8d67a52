"""Shells in sessions that another program opened, and in sandboxes of their own, on an engine in memory."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

import podbot
import podbot.shell
from podbot.errors import (
    ContainerNotFound,
    InvalidWorkingDirectory,
    MountRefused,
    NotOurs,
    SandboxClosed,
    SandboxPaused,
    SandboxStopped,
)
from podbot.session.directory import session_directory
from podbot.session.shells import ShellTarget, running_session
from podbot.shell import PodmanShell
from podbot.testing import IMAGE, FakeEngine
from tests.driver import FakeDriver
from tests.session.plans import Place, container, labels
from tests.shell.real import run as real_command

BOX = podbot.LaunchRequest(name="mine", trusted_workspace=True)


@pytest.fixture
def engine(driver: FakeDriver) -> FakeEngine:
    """Its commands are this machine's."""
    driver.engine.on("/bin/sh", real_command)
    return driver.engine


@pytest.fixture
def environ(place: Place) -> dict[str, str]:
    return {"HOME": place.base, "PATH": os.environ["PATH"], **place.environ}


@pytest.fixture
def config(place: Place) -> podbot.AppConfig:
    overrides = {"image": IMAGE, "workspace.source": "host_mount", "workspace.host_path": place.workspace}
    return podbot.load_config(podbot.LoadOptions(overrides=overrides, environ={"HOME": place.base}))


@contextlib.contextmanager
def session(config: podbot.AppConfig, environ: dict[str, str]) -> Iterator[str]:
    with podbot.sandbox(config, BOX, environ=environ) as box:
        yield box.name


def test_a_shell_in_a_session_of_another_program(
    engine: FakeEngine, config: podbot.AppConfig, environ: dict[str, str], place: Place
) -> None:
    with session(config, environ) as name:
        with podbot.open_shell(config, name, environ=environ) as shell:
            assert (shell.root, shell.sandboxed) == (place.workspace, True)
            assert shell.execute("pwd").stdout == f"{place.workspace}\n"
            assert shell.network_enabled
        with podbot.open_shell(config, name, root="/tmp/", environ=environ) as shell:
            assert shell.execute("pwd").stdout == "/tmp\n"
            with pytest.raises(PermissionError):
                shell.execute("rm -rf /")
        with pytest.raises(InvalidWorkingDirectory):
            podbot.open_shell(config, name, root="relative", environ=environ)
        assert engine.inspect(name).state == "running"


@pytest.mark.parametrize(
    ("name", "marks"),
    [("stranger", {}), ("theirs", labels("theirs")), ("claims", labels("another"))],
    ids=["not podbot's", "no session of this user's", "labels of another session"],
)
def test_a_container_that_is_no_session_of_this_user(
    engine: FakeEngine, config: podbot.AppConfig, environ: dict[str, str], name: str, marks: dict[str, str]
) -> None:
    engine.start(engine.create(container(name, marks=marks)))
    with pytest.raises(NotOurs):
        podbot.open_shell(config, name, environ=environ)


@pytest.mark.parametrize("name", ["missing", "..", ".engine", "a/b", ""])
def test_no_container_of_that_name(
    engine: FakeEngine, config: podbot.AppConfig, environ: dict[str, str], name: str
) -> None:
    with pytest.raises(ContainerNotFound):
        podbot.open_shell(config, name, environ=environ)


def test_a_session_that_is_being_opened(engine: FakeEngine, place: Place) -> None:
    """Its container is started meanwhile, and only then does its record name its guest."""
    created = engine.create(container("mine", marks=labels("mine")))
    plan = {
        "container": {"workdir": "/work", "network": "none", "guest": []},
        "resources": {"guest": {"directory": "/g"}},
        "workspace": {"source": "/src", "target": "/work", "read_only": False},
    }
    waited = []
    with session_directory(place.directory("mine"), engine.endpoint) as directory:
        directory.move("creating")

        def sleep(_seconds: float) -> None:
            waited.append(1)
            if len(waited) == 2:
                engine.start(created)
            if len(waited) == 3:
                directory.move("running", container="c", plan=plan)

        found = running_session(engine, place.environ, "mine", sleep=sleep)
    assert (len(waited), found) == (3, ShellTarget("/g", "/work", network_enabled=False, disks=("/src", "")))


def test_a_session_that_does_not_run(engine: FakeEngine, config: podbot.AppConfig, environ: dict[str, str]) -> None:
    def stop(name: str) -> None:
        engine.by_name[name].spec = dataclasses.replace(engine.by_name[name].spec, auto_remove=False)
        engine.die(name)

    states: list[tuple[Callable[[str], None], type[Exception]]] = [
        (engine.pause, SandboxPaused),
        (stop, SandboxStopped),
    ]
    with session(config, environ) as name:
        for change, error in states:
            change(name)
            with pytest.raises(error) as caught:
                podbot.open_shell(config, name, environ=environ)
            assert isinstance(caught.value, RuntimeError)


# --- a shell by itself -----------------------------------------------------------------------------


def test_a_shell_in_a_sandbox_of_its_own(engine: FakeEngine, environ: dict[str, str], place: Place) -> None:
    given = {**environ, "PODBOT_IMAGE": "localhost/another"}
    with PodmanShell.open(place.workspace, image=IMAGE, network="none", environ=given) as shell:
        assert (shell.root, shell.network_enabled) == (place.workspace, False)
        assert shell.execute("pwd").stdout == f"{place.workspace}\n"
        (box,) = engine.by_name.values()
        assert (box.spec.image, box.spec.network) == (IMAGE, "none")
        with pytest.raises(PermissionError):
            shell.execute("rm -rf /")
    assert engine.by_name == {}
    with pytest.raises(SandboxClosed, match="Use it inside the block"):
        shell.execute("pwd")


def test_its_overrides_and_its_own_settings(engine: FakeEngine, environ: dict[str, str], place: Place) -> None:
    keys = {"sandbox.memory": "64m", "image": "localhost/another"}
    limits = podbot.ShellLimits(default_timeout=7.0)
    opening = PodmanShell.open(
        place.workspace, image=IMAGE, overrides=keys, environ=environ, root="/tmp", limits=limits, validator=None
    )
    with opening as shell:
        (box,) = engine.by_name.values()
        assert (box.spec.image, box.spec.limits.memory) == (IMAGE, 64 << 20)
        assert (shell.root, shell.default_timeout) == ("/tmp", 7.0)
        assert shell.execute("true || rm -rf /").success


def test_a_shell_by_itself_of_a_configuration(
    engine: FakeEngine, config: podbot.AppConfig, environ: dict[str, str], place: Place
) -> None:
    with pytest.raises(MountRefused), PodmanShell.open(config, environ=environ):
        pytest.fail("nobody said that the workspace is trusted")
    with PodmanShell.open(config, BOX, environ=environ) as shell:
        assert shell.root == place.workspace
        assert [*engine.by_name] == ["mine"]
    with pytest.raises(TypeError, match=r"^image: not with"), PodmanShell.open(config, image=IMAGE, environ=environ):
        pytest.fail("it was opened")
    options = {"image": IMAGE, "network": "none", "overrides": {}}
    with (
        pytest.raises(TypeError, match=r"^image and network and overrides: not with a configuration"),
        PodmanShell.open(config, BOX, environ=environ, **options),  # type: ignore[arg-type]
    ):
        pytest.fail("it was opened")


# --- podbot.shell ----------------------------------------------------------------------------------


def test_the_package_of_shells_has_the_public_names() -> None:
    assert dir(podbot.shell) == sorted(podbot.shell.__all__)
    for name in podbot.shell.__all__:
        assert getattr(podbot.shell, name) is getattr(podbot, name)
    with pytest.raises(AttributeError, match=r"'podbot\.shell' has no attribute 'nope'"):
        podbot.shell.nope  # noqa: B018


def test_a_shell_loads_none_of_the_rooms_that_open_sandboxes() -> None:
    code = "import sys; from podbot.shell import PodmanShell; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "podbot.shell.podman_shell" in loaded
    assert {name for name in loaded if name.startswith(("podbot.api", "podbot.session", "podbot.launch.plan"))} == set()
