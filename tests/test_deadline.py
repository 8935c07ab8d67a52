"""One limit for a request, the resolver included."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from podbot.deadline import Deadline, connected


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_what_is_left_and_what_is_over() -> None:
    assert 0 < Deadline(5).left() <= 5
    with pytest.raises(TimeoutError):
        Deadline(0).left()


def test_the_time_that_is_left_is_the_connection_s(port: int) -> None:
    with connected("127.0.0.1", port, Deadline(5)) as sock:
        assert 0 < (sock.gettimeout() or 0) <= 5


def test_each_address_of_a_host_has_its_share_of_the_time(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host with an address that leads nowhere is reached by the other one."""
    tried: list[tuple[str, float]] = []

    class Silent(socket.socket):
        def connect(self, address: Any) -> None:
            tried.append((address[0], round(self.gettimeout() or 0)))
            if address[0] == "127.0.0.9":
                raise TimeoutError
            super().connect(address)

    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port)) for host in ("127.0.0.9", "127.0.0.1")]
    monkeypatch.setattr(socket, "socket", Silent)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
    connected("example.test", port, Deadline(60)).close()
    assert tried == [("127.0.0.9", 30), ("127.0.0.1", 60)]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found[:1])
    with pytest.raises(TimeoutError):
        connected("example.test", port, Deadline(60))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [])
    with pytest.raises(OSError, match="no address"):
        connected("example.test", port, Deadline(60))


def test_name_servers_that_do_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: over.wait(30))
    with pytest.raises(TimeoutError):
        connected("example.test", 1, Deadline(0.05))
    over.set()


@pytest.mark.parametrize("error", [socket.gaierror(-2, "Name or service not known"), UnicodeError("label too long")])
def test_a_name_that_is_not_known(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    def unknown(*_args: Any, **_options: Any) -> Any:
        raise error

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(type(error)):
        connected("example.test", 1, Deadline(5))
