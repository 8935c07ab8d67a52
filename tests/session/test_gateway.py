"""The resource: a real gateway process for a session, which gets the socket that the guest has passed."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.errors import StartFailed
from podbot.launch.held_keys import HeldKey
from podbot.launch.resources.gateway import GatewayPlan
from podbot.session.directory import session_directory
from podbot.session.resources.gateway import Resource
from podbot.session.resources.resource import Opening
from podbot.streams.wake import Wake
from podbot.testing import FakeEngine
from tests.gateway.running import ask
from tests.session.plans import SESSION, Place
from tests.waiting import HANG, wait_until


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(str(tmp_path))


@contextlib.contextmanager
def resource(
    place: Place, engine: FakeEngine, *, again: bool = False, keys: tuple[HeldKey, ...] = (), direct: str = "*"
) -> Iterator[Resource]:
    plan = place.sandbox()
    with contextlib.closing(Wake()) as wake, session_directory(plan.runtime_dir, engine.endpoint) as own:
        directory = os.path.join(plan.runtime_dir, "gateway")
        proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), "http://127.0.0.1:9")
        proxy = {**proxies, "no_proxy": direct, "SSL_CERT_FILE": "/no/ca.pem"}
        made = GatewayPlan(directory, allow=("a.example",), keys=keys, host=proxy)
        found = Resource(made, Opening(engine, plan, own, wake, place.events.append, again=again), seconds=HANG)
        with found.opened():
            yield found


def passed(found: Resource) -> int:
    """As the guest's resource does it: the port of a listening socket."""
    listener = socket.create_server(("127.0.0.1", 0))
    found.session.directory.listener = listener
    return int(listener.getsockname()[1])


def request(port: int, line: str, *headers: str) -> bytes:
    with socket.create_connection(("127.0.0.1", port), HANG) as client:
        client.sendall("\r\n".join([line, *headers, "", ""]).encode())
        data = b""
        while more := client.recv(1 << 16):
            data += more
        return data


def test_it_serves_the_socket_and_reports_each_refused_host_once(place: Place) -> None:
    engine = FakeEngine()
    engine.start(engine.create(place.sandbox().container))
    with resource(place, engine) as found:
        port = passed(found)
        found.running(engine.inspect(SESSION))
        assert found.session.directory.listener is None
        for _ in range(3):
            answer = request(port, "CONNECT b.example:443 HTTP/1.1", "Host: b.example:443")
            assert f"podbot net allow {SESSION} b.example:443".encode() in answer
        request(port, "CONNECT c.example:443 HTTP/1.1", "Host: c.example:443")
        wait_until(lambda: len(place.events) == 2)
        control = os.path.join(found.plan.directory, "control")
        assert ask(control, {"do": "show"})["policy"]["allow"] == ["a.example"]
    assert [(event.kind, event.fields["host"]) for event in place.events] == [
        ("network.refused", "b.example"),
        ("network.refused", "c.example"),
    ]
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), HANG)


def test_the_keys_are_added_outside(place: Place) -> None:
    engine = FakeEngine()
    engine.start(engine.create(place.sandbox().container))
    key = HeldKey(
        "x", "X_KEY", "http://no.such.invalid", ("/v1/",), "x-api-key", "", key="c4n4ry", placeholder="p-0123"
    )
    forgotten = dataclasses.replace(key, name="y", key="")
    with resource(place, engine, keys=(key, forgotten), direct="") as found:  # no test contacts a name server
        port = passed(found)
        found.running(engine.inspect(SESSION))
        own = f"Host: 127.0.0.1:{port}"
        port_of_gateway = f"Host: 127.0.0.1:{found.plan.port}"
        assert b" 400 " in request(port, "GET /x/v1/a HTTP/1.1", own)
        assert b" 401 " in request(port, "GET /x/v1/a HTTP/1.1", port_of_gateway)
        assert b" 502 " in request(port, "GET /x/v1/a HTTP/1.1", port_of_gateway, "X-Api-Key: p-0123")
        assert b" 404 " in request(port, "GET /y/v1/a HTTP/1.1", port_of_gateway, "X-Api-Key: p-0123")


def test_without_the_guests_socket_nothing_starts(place: Place) -> None:
    engine = FakeEngine()
    engine.start(engine.create(place.sandbox().container))
    with resource(place, engine) as found, pytest.raises(StartFailed, match="the image needs python3"):
        found.running(engine.inspect(SESSION))


def test_a_gateway_that_ends_is_reported(place: Place) -> None:
    engine = FakeEngine()
    engine.start(engine.create(place.sandbox().container))
    with resource(place, engine) as found:
        passed(found)
        found.running(engine.inspect(SESSION))
        assert found.process is not None
        os.kill(found.process.pid, 9)
        wait_until(lambda: place.events)
    assert [event.kind for event in place.events] == ["network.lost"]


def test_a_gateway_that_has_ended_before_the_container_starts(place: Place) -> None:
    engine = FakeEngine()
    engine.start(engine.create(place.sandbox().container))
    with resource(place, engine) as found:
        assert found.process is not None
        os.kill(found.process.pid, 9)
        wait_until(lambda: place.events)
        passed(found)
        with pytest.raises(StartFailed, match="its process has ended"):
            found.running(engine.inspect(SESSION))


def test_a_restarted_session_has_one_that_ends_with_its_container(place: Place) -> None:
    engine = FakeEngine()
    engine.start(engine.create(place.sandbox().container))
    with subprocess.Popen(["sleep", "600"]) as sandbox:
        try:
            with resource(place, engine, again=True) as found:
                port = passed(found)
                found.running(dataclasses.replace(engine.inspect(SESSION), pid=sandbox.pid))
                found.detached()
            assert b" 403 " in request(port, "CONNECT b.example:443 HTTP/1.1", "Host: b.example:443")
        finally:
            sandbox.kill()
            sandbox.wait()

        def refused() -> bool:
            # A connection that is being made while the listener is closed is reset instead.
            with contextlib.suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), HANG):
                return False
            return True

        wait_until(refused)


def test_a_container_that_has_ended_meanwhile(place: Place) -> None:
    engine = FakeEngine()
    engine.start(engine.create(place.sandbox().container))
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    with resource(place, engine, again=True) as found:
        passed(found)
        with pytest.raises(StartFailed, match="cannot be watched"):
            found.running(dataclasses.replace(engine.inspect(SESSION), pid=ended.pid))
