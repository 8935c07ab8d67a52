"""The order in which podbot searches for an engine, with real sockets in a temporary directory."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import pytest

from podbot.config.models import AppConfig, Origin
from podbot.engine.podman.driver import Host, connect, locate, reopen
from podbot.engine.podman.private.service import service_dir
from podbot.engine.port import Size
from podbot.errors import (
    ConnectionFailed,
    EngineGone,
    EngineNotInstalled,
    HealthCheckFailed,
    PermissionDenied,
    PodbotError,
    ServiceStartFailed,
    SocketNotFound,
)
from podbot.events import Emit, Event
from tests.engine.serving import Answer, Request, http, replay, serving
from tests.waiting import HANG

DOCKER = http(200, "OK", {"Api-Version": "1.41"})
CONFIGURED = Origin("flag", "--engine-socket")


@dataclass
class Bench:
    """The usual places of a host, below a temporary directory."""

    base: str
    stack: contextlib.ExitStack
    environ: dict[str, str] = field(default_factory=dict)
    private: list[str] = field(default_factory=list)  # sockets of podbot's own service, in the order of its starts
    private_asked: int = 0
    refused: tuple[str, ...] = ()  # sockets that we may not use
    uid: int = field(default_factory=os.getuid)
    events: list[Event] = field(default_factory=list)

    def path(self, name: str) -> str:
        """rootless, system, docker or a name chosen by the test."""
        known = {"rootless": "run/podman/podman.sock", "system": "podman.sock", "docker": "docker.sock"}
        return os.path.join(self.base, known.get(name, name))

    def listen(self, name: str, *answers: Answer) -> str:
        """A Podman at that path, or a server with the given answers."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.stack.enter_context(serving(path, *(answers or (replay("ping"), replay("ping"), replay("ping")))))
        return path

    @property
    def host(self) -> Host:
        return Host(self.uid, (self.path("system"), self.path("docker")), self._may_use, self._start_service)

    def _may_use(self, path: str) -> bool:
        return os.path.exists(path) and path not in self.refused

    def _start_service(self, _environ: Mapping[str, str], _emit: Emit) -> str:
        self.private_asked += 1
        if not self.private:
            raise EngineNotInstalled(engine="Podman", install="Install it: `x`")
        return self.private.pop(0)

    def connected(self, config: AppConfig | None = None) -> str:
        """Path of the socket that podbot ends up with."""
        engine = connect(config or AppConfig(), self.environ, self.events.append, host=self.host)
        engine.close()
        return engine.endpoint.removeprefix("unix://")


@pytest.fixture
def host(short_path: str) -> Iterator[Bench]:
    with contextlib.ExitStack() as stack:
        made = Bench(short_path, stack)
        made.environ["XDG_RUNTIME_DIR"] = made.path("run")
        yield made


def configured(text: str) -> AppConfig:
    return AppConfig(engine_socket=text, origins={"engine_socket": CONFIGURED})


def test_what_is_named_wins_in_its_order(host: Bench) -> None:
    for name in ("rootless", "system", "docker", "flag", "CONTAINER_HOST", "DOCKER_HOST", "PODMAN_HOST"):
        host.listen(name)
    for name in ("CONTAINER_HOST", "DOCKER_HOST", "PODMAN_HOST"):
        host.environ[name] = "unix://" + host.path(name)
    assert host.connected(configured(host.path("flag"))) == host.path("flag")
    for name in ("CONTAINER_HOST", "DOCKER_HOST", "PODMAN_HOST"):
        assert host.connected() == host.path(name)
        del host.environ[name]
    assert host.connected() == host.path("rootless")
    assert host.private_asked == 0


def test_the_usual_places_in_their_order(host: Bench) -> None:
    found = []
    for name in ("docker", "system", "rootless"):
        host.listen(name)
        found.append(host.connected())
    assert found == [host.path(name) for name in ("docker", "system", "rootless")]
    assert host.private_asked == 0


def test_docker_s_own_socket_is_passed_by(host: Bench) -> None:
    host.listen("docker", DOCKER)
    private = host.listen("private")
    host.private = [private]
    assert host.connected() == private


def test_docker_s_own_socket_is_not_called_a_refusal(host: Bench) -> None:
    host.listen("docker", DOCKER)
    with pytest.raises(EngineNotInstalled):
        host.connected()
    assert host.private_asked == 1


def test_a_docker_socket_that_was_named_fails_instead(host: Bench) -> None:
    host.environ["DOCKER_HOST"] = "unix://" + host.listen("docker", DOCKER)
    with pytest.raises(HealthCheckFailed):
        host.connected()
    assert host.private_asked == 0


@pytest.mark.parametrize("variable", ["CONTAINER_HOST", "DOCKER_HOST", "PODMAN_HOST"])
def test_a_named_socket_that_is_missing_is_no_reason_to_look_further(host: Bench, variable: str) -> None:
    host.listen("rootless")
    host.environ[variable] = "unix:///nowhere/at/all.sock"
    with pytest.raises(SocketNotFound) as caught:
        host.connected()
    assert (caught.value.path, caught.value.origin) == ("/nowhere/at/all.sock", f"variable {variable}")


def test_the_configured_one_names_its_origin(host: Bench) -> None:
    with pytest.raises(SocketNotFound) as caught:
        host.connected(configured("/nowhere.sock"))
    assert caught.value.origin == "flag --engine-socket"


def test_a_place_that_we_may_not_use_is_passed_by(host: Bench) -> None:
    host.refused = (host.listen("system"),)
    docker = host.listen("docker")
    assert host.connected() == docker


def test_when_all_places_refuse_us_that_is_the_error(host: Bench) -> None:
    system = host.listen("system")
    host.refused = (system,)
    with pytest.raises(PermissionDenied) as caught:
        host.connected()
    assert caught.value.path == system
    assert host.private_asked == 1


def test_a_private_service_is_the_last_resort(host: Bench) -> None:
    private = host.listen("private")
    host.private = [private]
    assert host.connected() == private
    assert host.events == [
        Event("debug", "engine.connected", f"engine unix://{private} (podbot's private service), Podman 4.3.1")
    ]
    system = host.listen("system")
    assert host.connected() == system


@dataclass
class Service:
    """podbot's own service, which can be killed. ``answers``: to the requests of its next life.

    ``starts``: how often it was started.
    """

    bench: Bench
    answers: list[Answer] = field(default_factory=lambda: [replay("ping"), replay("ping")])
    starts: int = 0
    life: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    @property
    def path(self) -> str:
        return os.path.join(service_dir(self.bench.environ), "podman.sock")

    @property
    def host(self) -> Host:
        return replace_start(self.bench.host, self.start)

    def start(self, _environ: Mapping[str, str], _emit: Emit) -> str:
        self.starts += 1
        if os.path.lexists(self.path):
            os.unlink(self.path)
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self.life.enter_context(serving(self.path, *self.answers))
        return self.path

    def kill(self) -> None:
        """Its socket stays, as a killed process leaves it."""
        self.life.close()


def replace_start(host: Host, start: Callable[[Mapping[str, str], Emit], str]) -> Host:
    return Host(host.uid, host.system_sockets, host.may_use, start)


@pytest.fixture
def own(host: Bench) -> Iterator[Service]:
    service = Service(host)
    yield service
    service.kill()


def test_podbot_s_own_service_is_started_again_by_the_request_that_finds_it_ended(own: Service) -> None:
    environ = own.bench.environ
    for engine in (
        connect(AppConfig(), environ, host=own.host),
        reopen(f"unix://{own.path}", "the record", environ, host=own.host),
    ):
        engine.ping()
        before = own.starts
        own.kill()
        engine.close()  # as after a second without a request
        engine.ping()
        assert own.starts == before + 1
        engine.close()


def test_a_question_whose_answer_was_lost_with_the_service_is_asked_again(own: Service) -> None:
    own.answers = [replay("ping")]
    engine = connect(AppConfig(), own.bench.environ, host=own.host)
    own.kill()
    engine.ping()
    assert (own.starts, engine.restarts) == (2, 1)
    engine.close()


def test_a_question_that_an_ending_service_had_not_accepted_is_asked_again(own: Service) -> None:
    """Its listening socket is there a little longer than the connection in use."""

    def ends(_request: Request, sock: socket.socket) -> None:
        own.answers = [replay("ping")]
        own.kill()
        sock.shutdown(socket.SHUT_RDWR)

    own.answers = [replay("ping"), lambda _request, sock: sock.shutdown(socket.SHUT_RDWR), ends]
    engine = connect(AppConfig(), own.bench.environ, host=own.host)
    engine.ping()
    assert (own.starts, engine.restarts) == (2, 1)
    engine.close()


def test_a_request_that_changes_something_is_not_sent_again(own: Service) -> None:
    """What it did is not known."""
    own.answers = [replay("ping")]
    engine = connect(AppConfig(), own.bench.environ, host=own.host)
    with pytest.raises(EngineGone):
        engine.exec_resize("e", Size(columns=80, rows=24))
    assert own.starts == 1


def test_no_other_engine_is_started_again(own: Service) -> None:
    environ, other = own.bench.environ, own.bench.path("other.sock")
    own.start(environ, own.bench.events.append)
    own.kill()
    for endpoint, environment in (
        (f"unix://{own.path}", None),
        (f"unix://{other}", environ),
        ("tcp://[::1]:1", environ),
    ):
        with pytest.raises((ConnectionFailed, SocketNotFound)):
            reopen(endpoint, "the record", environment, host=own.host).host()
    assert own.starts == 1


def test_a_service_that_does_not_start_again_is_the_error(own: Service) -> None:
    def refused(_environ: Mapping[str, str], _emit: Emit) -> str:
        raise ServiceStartFailed(reason="it ended with status 1", log="x")

    engine = reopen(f"unix://{own.path}", "the record", own.bench.environ, host=replace_start(own.host, refused))
    with pytest.raises(ServiceStartFailed):
        engine.host()


def test_locating_starts_nothing(host: Bench) -> None:
    assert locate(AppConfig(), host.environ, host=host.host) is None
    path = host.listen("rootless")
    found = locate(AppConfig(), host.environ, host=host.host)
    assert found is not None
    assert (found.path, found.origin) == (path, "found there")
    assert host.private_asked == 0


def test_a_socket_that_died_in_a_usual_place(host: Bench) -> None:
    with contextlib.ExitStack() as short:
        other = replace(host, stack=short)
        other.listen("rootless")
    with pytest.raises(ConnectionFailed) as caught:
        host.connected()
    assert caught.value.endpoint.endswith("podman.sock")


def stopped(host: Bench, name: str) -> str:
    """A socket's file that is left when its listener is gone."""
    with contextlib.ExitStack() as short:
        replace(host, stack=short).listen(name)
    return host.path(name)


def test_what_a_stopped_podman_socket_left_is_passed_by(host: Bench) -> None:
    """`systemctl --user stop podman.socket` leaves the file, on which every connection is refused."""
    left = stopped(host, "rootless")
    assert os.path.exists(left)
    private = host.listen("private")
    host.private = [private]
    assert host.connected() == private
    system = host.listen("system")
    assert host.connected() == system


def test_a_stopped_engine_of_another_user_is_not_exchanged_for_ours(host: Bench) -> None:
    system = stopped(host, "system")
    host.uid = os.stat(system).st_uid + 1
    with pytest.raises(ConnectionFailed):
        host.connected()
    assert host.private_asked == 0


def test_an_engine_that_starts_with_the_first_connection(host: Bench) -> None:
    """As systemd does it for podman.socket: it listens, and starts Podman only at the first connection."""
    path = host.path("rootless")
    os.makedirs(os.path.dirname(path))
    started = threading.Event()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(path)
        listener.listen()

        def systemd() -> None:
            select.select([listener], [], [])
            started.set()
            while True:
                peer, _ = listener.accept()
                with peer:
                    if peer.recv(65536):  # else it was a knock alone
                        replay("ping")(Request("GET", "/", {}, b""), peer)
                        return

        thread = threading.Thread(target=systemd)
        thread.start()
        assert host.connected() == path
        thread.join()
    assert started.is_set()
    assert host.private_asked == 0


def test_an_engine_that_fails_its_check_is_not_kept_open(host: Bench) -> None:
    host.environ["CONTAINER_HOST"] = "unix://" + host.listen("named", DOCKER)
    with pytest.raises(PodbotError):
        host.connected()  # an open connection would be a ResourceWarning, which is an error here


def test_a_private_service_that_ends_as_we_knock_is_started_again(host: Bench) -> None:
    ended, fresh = host.listen("ended", lambda _request, peer: peer.close()), host.listen("fresh")
    host.private = [ended, fresh]
    assert host.connected() == fresh


def silent(host: Bench, name: str) -> str:
    """A socket on which a process listens and never answers, as one that was stopped."""
    path = host.path(name)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    listener = host.stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
    listener.bind(path)
    listener.listen(8)
    return path


def impatient(host: Bench) -> Host:
    """Its limits strike at once: only an engine that never answers is asked."""
    return replace(host.host, slow=0.01, patience=0.01)


def test_an_engine_that_does_not_answer_is_said_to_be_waited_for(host: Bench) -> None:
    path = silent(host, "rootless")
    with pytest.raises((ConnectionFailed, HealthCheckFailed), match="answer within") as caught:
        connect(AppConfig(), host.environ, host.events.append, host=impatient(host))
    assert [(event.kind, event.level) for event in host.events] == [("engine.slow", "notice")]
    assert path in host.events[0].message
    assert getattr(caught.value, "origin", "") == "found there"


def test_podbots_own_service_that_does_not_answer_is_named_and_asked_once(host: Bench) -> None:
    host.private = [silent(host, "own.sock")]
    with pytest.raises(HealthCheckFailed) as caught:
        connect(AppConfig(), host.environ, host.events.append, host=impatient(host))
    assert caught.value.reason == f"its process {os.getpid()} does not answer"
    assert f"`kill -9 {os.getpid()}` ends it" in caught.value.remedy
    assert host.private_asked == 1


def test_an_engine_that_answers_late_is_used(host: Bench) -> None:
    awaited = threading.Event()

    def late(request: Request, sock: socket.socket) -> None:
        awaited.wait(HANG)
        with contextlib.suppress(OSError):  # podbot asks again over another connection
            replay("ping")(request, sock)

    path = host.listen("rootless", late, replay("ping"))

    def emit(event: Event) -> None:
        host.events.append(event)
        awaited.set()

    engine = connect(AppConfig(), host.environ, emit, host=replace(host.host, slow=0.01, patience=HANG))
    engine.close()
    assert engine.endpoint == f"unix://{path}"
    assert host.events[0].kind == "engine.slow"


SSH = """#!/bin/sh
echo 'Warning: something' >&2
echo 'ssh: connect to host build port 22: Connection refused' >&2
exit 255
"""


def test_what_ssh_says_is_the_reason(host: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = host.path("bin")
    os.makedirs(programs)
    with open(os.path.join(programs, "ssh"), "w", encoding="ascii") as file:
        file.write(SSH)
    os.chmod(file.name, 0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    with pytest.raises(ConnectionFailed) as caught:
        host.connected(configured("ssh://ada@build/run/podman.sock"))
    assert caught.value.reason == "ssh: connect to host build port 22: Connection refused"
