"""sd_notify to a real datagram socket."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from podbot.tokens.notify import Notifier, taken


class Manager:
    """A service manager's end."""

    def __init__(self, address: str | bytes) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(address)
        self.socket.setblocking(False)

    def received(self) -> list[str]:
        found = []
        while True:
            try:
                found.append(self.socket.recv(4096).decode())
            except BlockingIOError:
                return found


@pytest.fixture(params=["path", "abstract"])
def manager(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Manager, str]]:
    name = f"podbot-test-{os.getpid()}"
    path = str(tmp_path / "n")
    where = (b"\0" + name.encode(), f"@{name}") if request.param == "abstract" else (path.encode(), path)
    made = Manager(where[0])
    yield made, where[1]
    made.socket.close()


def test_the_life_of_a_service(manager: tuple[Manager, str]) -> None:
    there, address = manager
    notifier = Notifier({"NOTIFY_SOCKET": address})
    notifier.ready("2 sessions")
    notifier.status("2 sessions")
    notifier.status("3 sessions\nREADY=1")
    notifier.stopping()
    assert there.received() == [
        "READY=1\nSTATUS=2 sessions", "STATUS=3 sessions READY=1", "STOPPING=1\nSTATUS=ending",
    ]  # fmt: skip


def test_a_reload_is_framed(manager: tuple[Manager, str]) -> None:
    there, address = manager
    notifier = Notifier({"NOTIFY_SOCKET": address})
    notifier.reloading()
    notifier.ready("again")
    first, second = there.received()
    assert first.startswith("RELOADING=1\nMONOTONIC_USEC=")
    assert second.startswith("READY=1")


def test_a_sign_of_life_at_half_of_the_limit(manager: tuple[Manager, str]) -> None:
    there, address = manager
    now = [100.0]
    environ = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "20000000", "WATCHDOG_PID": str(os.getpid())}
    notifier = Notifier(environ, clock=lambda: now[0])
    assert notifier.watchdog == 10.0
    for at in (100.0, 105.0, 109.9, 110.0, 111.0, 121.0):
        now[0] = at
        notifier.beat()
    assert there.received() == ["WATCHDOG=1"] * 3


@pytest.mark.parametrize(
    "changes",
    [
        {"WATCHDOG_USEC": ""},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "soon"},
        {"WATCHDOG_USEC": "-5"},
        {"WATCHDOG_PID": "1"},
    ],
)
def test_no_watchdog_unless_requested(manager: tuple[Manager, str], changes: dict[str, str]) -> None:
    there, address = manager
    notifier = Notifier({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1000000", **changes})
    notifier.beat()
    assert notifier.watchdog is None
    assert there.received() == []


@pytest.mark.parametrize("address", ["", "vsock:2:1", "relative", "/nowhere/at/all"])
def test_a_missing_manager_is_no_error(address: str) -> None:
    notifier = Notifier({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1000000"})
    notifier.ready("x")
    notifier.beat()
    notifier.stopping()


def _fill(there: Manager) -> int:
    """Send as much as one sender may; returns the amount. systemd allows a longer queue."""
    sent = 0
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender, contextlib.suppress(BlockingIOError):
        sender.setblocking(False)
        while True:
            sender.sendto(b"x", there.socket.getsockname())
            sent += 1
    return sent


def test_a_manager_that_does_not_read_does_not_block(manager: tuple[Manager, str]) -> None:
    there, address = manager
    while _fill(there):
        pass
    notifier = Notifier({"NOTIFY_SOCKET": address}, send_timeout=0.01)
    notifier.stopping()
    assert "STOPPING=1\nSTATUS=ending" not in there.received()


def test_children_do_not_inherit_it(manager: tuple[Manager, str]) -> None:
    there, address = manager
    environ = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": str(os.getpid()), "HOME": "/h"}
    notifier = taken(environ)
    notifier.beat()
    assert environ == {"HOME": "/h"}
    assert there.received() == ["WATCHDOG=1"]
