"""A guest passes a descriptor whose closing waits for a peer that never answers."""

from __future__ import annotations

import array
import contextlib
import os
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from podbot.guest.link import SocketLink, refuse_descriptors

FOREVER = 2**31 - 1  # seconds; a close that waits for it reaches this test's limit


class OldKernel(socket.socket):
    """A socket of a kernel that cannot refuse descriptors."""

    def setsockopt(self, *args: object) -> None:
        raise OSError(92, "Protocol not available")


@pytest.fixture
def lingering() -> Iterator[socket.socket]:
    """A connection with data for a peer that reads none. The peer goes first, and so ends what waits for it."""
    with socket.socket() as connection, socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2048)
        connection.connect(listener.getsockname())
        connection.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            while connection.send(b"x" * 4096):
                pass
        connection.setblocking(True)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, FOREVER))
        yield connection


def passed(by: socket.socket, connection: socket.socket) -> bool:
    """Pass it away, so that the receiver closes the last descriptor. Whether the kernel allowed it."""
    numbers = array.array("i", [connection.fileno()])
    try:
        by.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)])
    except PermissionError:
        return False
    connection.detach()
    os.close(numbers[0])
    return True


def test_a_link_receives_none_where_the_kernel_can_refuse_them(lingering: socket.socket) -> None:
    peer, ours = socket.socketpair()
    refused = refuse_descriptors(ours)
    with peer:
        link = SocketLink(ours, "box")
        assert passed(peer, lingering) is not refused
        link.close()


def test_closing_a_link_does_not_wait_for_what_was_passed_on_an_older_kernel(lingering: socket.socket) -> None:
    peer, ours = socket.socketpair()
    link = SocketLink(OldKernel(fileno=ours.detach()), "box")
    with peer:
        assert passed(peer, lingering)
        closing = threading.Thread(target=link.close, daemon=True)
        closing.start()
        closing.join(60)  # only a close that waits for ever reaches it
        assert not closing.is_alive()
