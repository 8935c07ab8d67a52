"""The library's front door against an engine in memory: typed values, nothing printed."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import pytest

import podbot
from podbot.engine.endpoint import Endpoint
from podbot.engine.podman import driver
from podbot.engine.podman.machine import PodmanMachine
from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.errors import ContainerNotFound, IllegalCombination, ImageNotFound, NotOurs, SocketNotFound
from podbot.events import Event
from podbot.session.sessions import session_directory
from podbot.testing import IMAGE, STDOUT, ExecPeer, FakeEngine, ScriptedExec
from tests.session.plans import Place, container, in_state, labels

SILENT = podbot.ExecIO(None, None, None)


class Closable(FakeEngine):
    """Counts how often it was closed."""

    closed = 0

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def place(tmp_path: os.PathLike[str]) -> Place:
    return Place(os.fspath(tmp_path))


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Closable:
    made = Closable()
    monkeypatch.setattr(driver, "connect", lambda _config, _environ, _emit: made)
    return made


def configured(place: Place, **overrides: object) -> podbot.AppConfig:
    values = {
        "image": IMAGE,
        "workspace.source": "host_mount",
        "workspace.host_path": place.workspace,
        "agent.kind": "custom",
        "agent.command": "my-agent",
    }
    named = {name.replace("__", "."): value for name, value in overrides.items()}
    return podbot.load_config(podbot.LoadOptions(overrides=values | named, environ={"HOME": place.base}))


def environ(place: Place) -> dict[str, str]:
    return {"HOME": place.base, "PATH": os.environ["PATH"], **place.environ}


REQUEST = podbot.LaunchRequest(name="mine", trusted_workspace=True)


def test_plan_decides_and_touches_nothing(engine: Closable, place: Place) -> None:
    plan = podbot.plan(configured(place), REQUEST, environ=environ(place))
    assert plan.sandbox.session == "mine"
    assert plan.agent.command.command == ("my-agent",)
    assert plan.sandbox.runtime_dir == place.directory("mine")
    assert plan.sandbox.workspace is not None
    assert plan.sandbox.workspace.source == place.workspace
    assert engine.calls == []
    assert not os.path.exists(place.runtime)
    assert podbot.describe(plan)


def test_run(engine: Closable, place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    engine.on("my-agent", ScriptedExec(stdout=b"discarded", code=3))
    result = podbot.run(configured(place), REQUEST, io=SILENT, environ=environ(place), emit=place.events.append)
    assert (result.session, result.status, result.kept) == ("mine", podbot.ExecStatus(3), False)
    assert result.guard is not None
    assert result.guard.findings == ()
    assert engine.by_name == {}
    assert engine.closed == 1
    assert "container.removed" in place.kinds()
    assert tuple(capfd.readouterr()) == ("", ""), "the library never prints"


def test_run_is_ended_from_another_thread(engine: Closable, place: Place) -> None:
    wake = podbot.Wake()

    def agent(io: ExecPeer) -> int:
        wake.post(podbot.Signal(signal.SIGTERM))
        io.ended.wait(10)
        return 0

    engine.on("my-agent", agent)
    result = podbot.run(configured(place), REQUEST, io=SILENT, wake=wake, environ=environ(place))
    assert result.status == podbot.ExecStatus(143, signal.SIGTERM)
    wake.close()


def test_run_without_its_image(engine: Closable, place: Place) -> None:
    with pytest.raises(ImageNotFound) as caught:
        podbot.run(configured(place, image="localhost/none:1"), REQUEST, io=SILENT, environ=environ(place))
    assert caught.value.image == "localhost/none:1"
    assert engine.closed == 1


BOX = podbot.LaunchRequest(subcommand="sandbox", name="mine", trusted_workspace=True)


def test_a_sandbox_without_an_agent(engine: Closable, place: Place, capfd: pytest.CaptureFixture[str]) -> None:
    engine.on("tool", ScriptedExec(stdout=b"done", code=3))
    with podbot.sandbox(configured(place), BOX, environ=environ(place), emit=place.events.append) as box:
        result = box.run(["tool"], capture=True)
        assert (box.name, result.exit_code, result.stdout) == ("mine", 3, "done")
    assert engine.by_name == {}
    assert engine.closed == 1
    assert "agent.start" not in place.kinds()
    with pytest.raises(ContainerNotFound):
        box.run(["tool"])
    assert tuple(capfd.readouterr()) == ("", ""), "the library never prints"


def test_a_sandbox_is_gone_when_its_block_fails(engine: Closable, place: Place) -> None:
    with pytest.raises(ZeroDivisionError), podbot.sandbox(configured(place), BOX, environ=environ(place)):
        raise ZeroDivisionError
    assert (engine.by_name, engine.closed) == ({}, 1)


def test_each_call_takes_its_own_requests(engine: Closable, place: Place) -> None:
    with pytest.raises(IllegalCombination), podbot.sandbox(configured(place), REQUEST, environ=environ(place)):
        pass
    with pytest.raises(IllegalCombination):
        podbot.plan(configured(place), BOX, environ=environ(place))
    with (
        pytest.raises(ImageNotFound),
        podbot.sandbox(configured(place, image="localhost/none:1"), BOX, environ=environ(place)),
    ):
        pass
    assert engine.by_name == {}


@pytest.mark.parametrize("origin", ["private", "named"])
def test_run_of_a_user_who_can_have_no_image(
    engine: Closable, place: Place, monkeypatch: pytest.MonkeyPatch, origin: str
) -> None:
    """The cause is this user's only on an engine that podbot runs for the user."""
    facts = PodmanFacts(uid=1000, programs={"newuidmap": "/n", "newgidmap": "/n"}, subids=False)
    monkeypatch.setattr(driver, "machine", lambda _environ: PodmanMachine(facts, ""))
    named = Endpoint("unix", "flag", path="/run/e.sock") if origin == "named" else None
    monkeypatch.setattr(driver, "locate", lambda _config, _environ: named)
    with pytest.raises(ImageNotFound) as caught:
        podbot.run(configured(place, image="localhost/none:1"), REQUEST, io=SILENT, environ=environ(place))
    assert ("no range for you" in caught.value.remedy) is (origin == "private")
    assert "podbot setup" in caught.value.remedy


def test_exec(engine: Closable, place: Place) -> None:
    engine.start(engine.create(container("any", marks={})))

    def cat(io: ExecPeer) -> int:
        io.write(STDOUT, io.read_all() + b"!")
        return 4

    engine.on("it", cat)
    ends = [os.pipe(), os.pipe()]
    os.write(ends[0][1], b"hello")
    os.close(ends[0][1])
    io = podbot.ExecIO(stdin=ends[0][0], stdout=ends[1][1], stderr=None)
    spec = podbot.ExecSpec(command=("it",))
    assert podbot.exec_(configured(place), "any", spec, io=io, environ=environ(place)).code == 4
    assert os.read(ends[1][0], 100) == b"hello!"
    for fd in (ends[0][0], *ends[1]):
        os.close(fd)
    assert engine.closed == 1


def test_exec_in_no_container(engine: Closable, place: Place) -> None:
    with pytest.raises(ContainerNotFound):
        podbot.exec_(configured(place), "no", podbot.ExecSpec(command=("x",)), io=SILENT, environ=environ(place))
    assert engine.closed == 1


def test_ps_and_stop(engine: Closable, place: Place) -> None:
    for name in ("a", "b", "c"):
        engine.start(engine.create(container(name, marks=labels(name))))
    engine.start(engine.create(container("stranger", marks={})))
    config, variables = configured(place), environ(place)
    assert [info.session for info in podbot.ps(config, environ=variables)] == ["c", "b", "a"]
    with pytest.raises(NotOurs):
        podbot.stop(config, ["a", "stranger"], environ=variables)
    assert podbot.stop(config, ["b"], environ=variables, emit=place.events.append) == [
        podbot.StopResult("b", removed=True)
    ]
    assert place.events == [Event("info", "session.stopped", "b", {"session": "b"})]
    assert {result.session for result in podbot.stop(config, all_sessions=True, environ=variables)} == {"a", "c"}
    assert list(engine.by_name) == ["stranger"]
    assert podbot.ps(config, include_stopped=True, environ=variables) == []
    assert engine.closed == 5


@pytest.mark.parametrize(
    "call",
    [
        lambda config, variables, emit: podbot.ps(config, environ=variables, emit=emit),
        lambda config, variables, emit: podbot.exec_(
            config, "x", podbot.ExecSpec(command=("true",)), io=SILENT, environ=variables, emit=emit
        ),
        lambda config, variables, emit: podbot.run(config, REQUEST, io=SILENT, environ=variables, emit=emit),
    ],
)
def test_what_a_killed_podbot_left_is_told_by_every_call(
    engine: Closable, place: Place, call: Callable[..., object]
) -> None:
    for name in ("left", "x"):
        engine.start(engine.create(container(name, marks=labels(name))))
    with session_directory(place.directory("left"), engine.endpoint) as directory:
        in_state(directory, "running")
    engine.on("my-agent", ScriptedExec())
    call(configured(place), environ(place), place.events.append)
    assert [event.fields["session"] for event in place.events if event.kind == "session.orphan"] == ["left"]


def test_open_engine_is_checked_and_closed(place: Place) -> None:
    config = configured(place, engine_socket=os.path.join(place.base, "none.sock"))
    with pytest.raises(SocketNotFound), podbot.open_engine(config, environ=environ(place)):
        pytest.fail("there is no engine")


def test_open_engine_gives_the_port(engine: Closable, place: Place) -> None:
    with podbot.open_engine(configured(place)) as opened:
        assert opened.ping().version == "4.3.1"
    assert engine.closed == 1
    with pytest.raises(ValueError, match="x"), podbot.open_engine(configured(place)):
        raise ValueError("x")
    assert engine.closed == 2


def test_a_request_for_the_other_call(engine: Closable, place: Place) -> None:
    hosting = podbot.LaunchRequest(subcommand="host", trusted_workspace=True)
    with pytest.raises(IllegalCombination, match="this is the call for run"):
        podbot.run(configured(place), hosting, io=SILENT, environ=environ(place))
    with pytest.raises(IllegalCombination, match="this is the call for host"):
        podbot.host(configured(place), REQUEST, stdin=0, stdout=1, environ=environ(place))
    assert engine.calls == []
