"""The order in which podbot looks for an engine, with real sockets in a temporary directory."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import pytest

from podbot.config.models import AppConfig, Origin
from podbot.engine.podman import driver as module
from podbot.engine.podman import sockets
from podbot.engine.podman.driver import connect, locate
from podbot.engine.podman.private import service
from podbot.errors import ConnectionFailed, HealthCheckFailed, PermissionDenied, PodbotError, SocketNotFound
from podbot.events import Event
from tests.engine.serving import Answer, Request, http, replay, serving

DOCKER = http(200, "OK", {"Api-Version": "1.41"})
CONFIGURED = Origin("flag", "--engine-socket")


@dataclass
class Host:
    """The usual places of a host, below a temporary directory."""

    base: str
    stack: contextlib.ExitStack
    environ: dict[str, str] = field(default_factory=dict)
    private_asked: int = 0
    events: list[Event] = field(default_factory=list)

    def path(self, name: str) -> str:
        """rootless, system, docker or a name of the test's own."""
        known = {"rootless": "run/podman/podman.sock", "system": "podman.sock", "docker": "docker.sock"}
        return os.path.join(self.base, known.get(name, name))

    def listen(self, name: str, *answers: Answer) -> str:
        """A Podman there, or what the answers make it."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.stack.enter_context(serving(path, *(answers or (replay("ping"), replay("ping"), replay("ping")))))
        return path

    def connected(self, config: AppConfig | None = None) -> str:
        """Path of the socket that podbot ends up with."""
        engine = connect(config or AppConfig(), self.environ, self.events.append)
        engine.close()
        return engine.endpoint.removeprefix("unix://")


@pytest.fixture
def host(tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    with contextlib.ExitStack() as stack:
        made = Host(os.fspath(tmp_path), stack)
        made.environ["XDG_RUNTIME_DIR"] = made.path("run")
        places = (made.path("system"), made.path("docker"))
        monkeypatch.setattr(sockets, "SYSTEM_SOCKETS", places)
        monkeypatch.setattr(module, "SYSTEM_SOCKETS", places)
        monkeypatch.setattr(service, "ensure_service", no_podman(made))
        yield made


def no_podman(host: Host) -> Callable[..., str]:
    def ensure_service(_environ: object, **_rest: object) -> str:
        host.private_asked += 1
        raise SocketNotFound(path=host.path("rootless"), origin="there is no podman program")

    return ensure_service


def configured(text: str) -> AppConfig:
    return AppConfig(engine_socket=text, origins={"engine_socket": CONFIGURED})


def test_what_is_named_wins_in_its_order(host: Host) -> None:
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


def test_the_usual_places_in_their_order(host: Host) -> None:
    found = []
    for name in ("docker", "system", "rootless"):
        host.listen(name)
        found.append(host.connected())
    assert found == [host.path(name) for name in ("docker", "system", "rootless")]
    assert host.private_asked == 0


def test_docker_s_own_socket_is_passed_by(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    host.listen("docker", DOCKER)
    private = host.listen("private")
    monkeypatch.setattr(service, "ensure_service", lambda _environ, **_rest: private)
    assert host.connected() == private


def test_docker_s_own_socket_is_not_called_a_refusal(host: Host) -> None:
    host.listen("docker", DOCKER)
    with pytest.raises(SocketNotFound):
        host.connected()
    assert host.private_asked == 1


def test_a_docker_socket_that_was_named_fails_instead(host: Host) -> None:
    host.environ["DOCKER_HOST"] = "unix://" + host.listen("docker", DOCKER)
    with pytest.raises(HealthCheckFailed):
        host.connected()
    assert host.private_asked == 0


@pytest.mark.parametrize("variable", ["CONTAINER_HOST", "DOCKER_HOST", "PODMAN_HOST"])
def test_a_named_socket_that_is_missing_is_no_reason_to_look_further(host: Host, variable: str) -> None:
    host.listen("rootless")
    host.environ[variable] = "unix:///nowhere/at/all.sock"
    with pytest.raises(SocketNotFound) as caught:
        host.connected()
    assert (caught.value.path, caught.value.origin) == ("/nowhere/at/all.sock", f"variable {variable}")


def test_the_configured_one_names_its_origin(host: Host) -> None:
    with pytest.raises(SocketNotFound) as caught:
        host.connected(configured("/nowhere.sock"))
    assert caught.value.origin == "flag --engine-socket"


def test_a_place_that_we_may_not_use_is_passed_by(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    system, allowed = host.listen("system"), os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != system and allowed(path, mode))
    docker = host.listen("docker")
    assert host.connected() == docker


def test_when_all_places_refuse_us_that_is_the_error(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    system = host.listen("system")
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    with pytest.raises(PermissionDenied) as caught:
        host.connected()
    assert caught.value.path == system
    assert host.private_asked == 1


def test_a_private_service_is_the_last_resort(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    private = host.listen("private")
    monkeypatch.setattr(service, "ensure_service", lambda _environ, **_rest: private)
    assert host.connected() == private
    assert host.events == [
        Event("debug", "engine.connected", f"engine unix://{private} (podbot's private service), Podman 4.3.1")
    ]
    system = host.listen("system")
    assert host.connected() == system


def test_locating_starts_nothing(host: Host) -> None:
    assert locate(AppConfig(), host.environ) is None
    path = host.listen("rootless")
    found = locate(AppConfig(), host.environ)
    assert found is not None
    assert (found.path, found.origin) == (path, "found there")
    assert host.private_asked == 0


def test_a_socket_that_died_in_a_usual_place(host: Host) -> None:
    with contextlib.ExitStack() as short:
        other = replace(host, stack=short)
        other.listen("rootless")
    with pytest.raises(ConnectionFailed) as caught:
        host.connected()
    assert caught.value.endpoint.endswith("podman.sock")


def stopped(host: Host, name: str) -> str:
    """A socket's file that is left when its listener is gone."""
    with contextlib.ExitStack() as short:
        replace(host, stack=short).listen(name)
    return host.path(name)


def test_what_a_stopped_podman_socket_left_is_passed_by(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """`systemctl --user stop podman.socket` leaves the file, on which every connection is refused."""
    left = stopped(host, "rootless")
    assert os.path.exists(left)
    private = host.listen("private")
    monkeypatch.setattr(service, "ensure_service", lambda _environ, **_rest: private)
    assert host.connected() == private
    system = host.listen("system")
    assert host.connected() == system


def test_a_stopped_engine_of_another_user_is_not_exchanged_for_ours(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    system = stopped(host, "system")
    owner = os.stat(system).st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(ConnectionFailed):
        host.connected()
    assert host.private_asked == 0


def test_an_engine_that_starts_with_the_first_connection(host: Host) -> None:
    """As systemd does it for podman.socket: it listens, and starts Podman only when somebody knocks."""
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


def test_an_engine_that_fails_its_check_is_not_kept_open(host: Host) -> None:
    host.environ["CONTAINER_HOST"] = "unix://" + host.listen("named", DOCKER)
    with pytest.raises(PodbotError):
        host.connected()  # an open connection would be a ResourceWarning, which is an error here


def test_a_private_service_that_ends_as_we_knock_is_started_again(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    ended, fresh = host.listen("ended", lambda _request, peer: peer.close()), host.listen("fresh")
    given = iter([ended, fresh])
    monkeypatch.setattr(service, "ensure_service", lambda _environ, **_rest: next(given))
    assert host.connected() == fresh
