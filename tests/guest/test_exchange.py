"""One side of a channel: which thread receives and asks."""

from __future__ import annotations

import select
import socket
import threading

from podbot.guest import frames
from podbot.guest.exchange import Exchange
from podbot.guest.link import Patience, SocketLink
from tests.guest.liar import Peer
from tests.waiting import HANG, pause


class Nothing:
    """Waits on a channel for no frame."""

    def __init__(self, exchange: Exchange) -> None:
        self.ready = threading.Condition(exchange.lock)

    def take(self, kind: int, payload: bytes) -> bool:
        return False


def test_a_guest_that_is_silent_while_podbot_sends_is_asked_afterwards() -> None:
    ours, theirs = socket.socketpair()
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    asked = threading.Event()
    with ours, theirs:
        exchange = Exchange(SocketLink(ours, "here"), Patience(greeting=HANG, silence=0.01, answer=HANG))

        def wait() -> None:
            with exchange.lock:
                exchange.wait(Nothing(exchange), asked.is_set, None)

        sends = threading.Thread(target=exchange.send, args=(frames.STDIN, 1, b"x" * frames.PAYLOAD_LIMIT))
        waits = threading.Thread(target=wait)
        sends.start()
        select.select([theirs], [], [], HANG)  # it is sending now, and blocks
        waits.start()
        pause(0.1)  # the guest reads nothing for longer than the silence
        peer = Peer(theirs)
        theirs.settimeout(HANG)
        assert peer.hear()[0] == frames.STDIN
        assert peer.hear()[0] == frames.PING
        asked.set()
        peer.say(frames.PONG, 0)
        for thread in (sends, waits):
            thread.join(HANG)
            assert not thread.is_alive()
        exchange.close()
