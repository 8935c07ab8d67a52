"""One limit for a request, the resolver included."""

from __future__ import annotations

import gc
import socket
import threading
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from podbot.deadline import Deadline, connected


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_the_remaining_time_and_the_expired_deadline() -> None:
    assert 0 < Deadline(5).left() <= 5
    with pytest.raises(TimeoutError):
        Deadline(0).left()


def test_a_deadline_that_comes_sooner_than_was_asked() -> None:
    answers: list[float | None] = [None, None, 5.0]
    deadline = Deadline(1000, lambda: answers.pop(0))
    assert 5 < deadline.left() <= 1000
    assert deadline.next_wait() <= 0.1, "so that the question is asked again soon"
    assert deadline.left() <= 5
    assert deadline.next_wait() <= 5, "it is asked no more"
    assert answers == []
    with pytest.raises(TimeoutError):
        Deadline(1000, lambda: 0.0).left()
    assert Deadline(3, lambda: 1000.0).left() <= 3


def test_the_earlier_of_two_deadlines() -> None:
    soon, late = Deadline(5), Deadline(1000)
    assert soon.within(10) is soon
    assert late.within(10).seconds == 10
    assert Deadline(0).within(10).seconds == 0


def test_the_time_that_is_left_is_the_connection_s(port: int) -> None:
    with connected("127.0.0.1", port, Deadline(5)) as sock:
        assert 0 < (sock.gettimeout() or 0) <= 5


class InterruptedAfterConnecting(Deadline):
    """A signal arrives between the connection and its time limit."""

    asked = 0

    def left(self) -> float:
        self.asked += 1
        if self.asked == 3:
            raise KeyboardInterrupt
        return super().left()


def test_a_signal_leaves_no_open_connection(port: int) -> None:
    with warnings.catch_warnings(record=True) as left_open:
        warnings.simplefilter("always")
        with pytest.raises(KeyboardInterrupt):
            connected("127.0.0.1", port, InterruptedAfterConnecting(5))
        gc.collect()
    assert [str(warning.message) for warning in left_open] == []


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
    # The time that a socket has cannot be seen from outside without waiting for its end.
    monkeypatch.setattr(socket, "socket", Silent)
    connected("example.test", port, Deadline(60), resolve=lambda *_: found).close()
    assert tried == [("127.0.0.9", 30), ("127.0.0.1", 60)]
    with pytest.raises(TimeoutError):
        connected("example.test", port, Deadline(60), resolve=lambda *_: found[:1])
    with pytest.raises(OSError, match="no address"):
        connected("example.test", port, Deadline(60), resolve=lambda *_: [])


def test_name_servers_that_do_not_answer() -> None:
    over = threading.Event()

    def silent(_host: str, _port: int) -> list[Any]:
        over.wait(30)
        return []

    with pytest.raises(TimeoutError):
        connected("example.test", 1, Deadline(0.05), resolve=silent)
    over.set()


@pytest.mark.parametrize("error", [socket.gaierror(-2, "Name or service not known"), UnicodeError("label too long")])
def test_a_name_that_is_not_known(error: Exception) -> None:
    def unknown(_host: str, _port: int) -> list[Any]:
        raise error

    with pytest.raises(type(error)):
        connected("example.test", 1, Deadline(5), resolve=unknown)
