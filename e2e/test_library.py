"""``import podbot``: the same sessions as typed calls."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Iterator

import pytest

import podbot
from e2e.harness import TAG, World, running, wait_for


def config(world: World, **overrides: object) -> podbot.AppConfig:
    return podbot.load_config(podbot.LoadOptions(environ=world.env, overrides={"agent.kind": "custom", **overrides}))


def mounting(world: World, workspace: str) -> podbot.AppConfig:
    return config(world, **{"workspace.source": "host_mount", "workspace.host_path": workspace})


@pytest.fixture
def pipes() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    for fd in (read, write):
        with contextlib.suppress(OSError):
            os.close(fd)


def test_run(world: World, pipes: tuple[int, int], capfd: pytest.CaptureFixture[str]) -> None:
    events: list[podbot.Event] = []
    read, write = pipes
    request = podbot.LaunchRequest(words=("sh", "-c", "echo from inside; exit 5"), trusted_workspace=True)
    result = podbot.run(
        mounting(world, world.workspace()),
        request,
        io=podbot.ExecIO(stdin=None, stdout=write, stderr=None),
        environ=world.env,
        emit=events.append,
    )
    assert (result.status.code, result.kept) == (5, False)
    assert os.read(read, 100) == b"from inside\n"
    assert [event.kind for event in events if event.kind.startswith("container.")] == [
        "container.create",
        "container.start",
        "container.removed",
    ]
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")  # the library is silent


def test_end_a_run_from_another_thread(world: World) -> None:
    wake = podbot.Wake()
    timer = threading.Timer(2, wake.post, (podbot.Signal(signal.SIGTERM),))
    timer.start()
    request = podbot.LaunchRequest(words=("sleep", f"48077.{TAG}"), trusted_workspace=True)
    result = podbot.run(
        mounting(world, world.workspace()), request, io=podbot.ExecIO(None, None, None), wake=wake, environ=world.env
    )
    wake.close()
    assert (result.status.code, result.status.signal) == (143, signal.SIGTERM)
    assert not running(f"sleep 48077.{TAG}")


def test_exec_ps_and_stop(world: World, pipes: tuple[int, int]) -> None:
    read, write = pipes
    settings = config(world)
    with world.session() as name:
        spec = podbot.ExecSpec(command=("sh", "-c", "cat; echo $V; exit 3"), env={"V": "value"})
        status = podbot.exec_(settings, name, spec, io=podbot.ExecIO(None, write, None), environ=world.env)
        assert status.code == 3
        assert os.read(read, 100) == b"value\n"
        assert [session.session for session in podbot.ps(settings, environ=world.env) if session.session == name]
        assert [result.session for result in podbot.stop(settings, [name], seconds=0, environ=world.env)] == [name]
        wait_for(lambda: not world.container(name), what="the container to go")


def test_errors_are_typed(world: World) -> None:
    settings = config(world)
    with pytest.raises(podbot.ContainerError) as caught:
        podbot.exec_(settings, "e2e-nobody", podbot.ExecSpec(command=("true",)), environ=world.env)
    assert caught.value.fields == {"container": "e2e-nobody"}
    with pytest.raises(podbot.ConfigError):
        podbot.plan(settings, podbot.LaunchRequest(), environ=world.env)


def test_a_plan_without_an_engine(world: World) -> None:
    workspace = world.workspace()
    request = podbot.LaunchRequest(words=("true",), trusted_workspace=True)
    plan = podbot.plan(mounting(world, workspace), request, environ=world.env)
    assert plan.sandbox.workspace is not None
    assert plan.sandbox.workspace.source == workspace
    assert podbot.describe(plan)["container"]["image"] == world.image
