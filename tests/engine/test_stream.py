"""A hijacked connection, plain and TLS."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Iterator

import pytest

from podbot.engine.transport import SocketStream


@contextlib.contextmanager
def tls_pair() -> Iterator[tuple[ssl.SSLSocket, ssl.SSLSocket]]:
    """(client, server), connected; anonymous, so that the tests contain no key."""
    contexts = []
    for side in (ssl.PROTOCOL_TLS_CLIENT, ssl.PROTOCOL_TLS_SERVER):
        context = ssl.SSLContext(side)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("aNULL:@SECLEVEL=0")
        contexts.append(context)
    ours, theirs = socket.socketpair()
    found: list[ssl.SSLSocket] = []
    thread = threading.Thread(target=lambda: found.append(contexts[1].wrap_socket(theirs, server_side=True)))
    thread.start()
    client = contexts[0].wrap_socket(ours)
    thread.join()
    with client, found[0] as server:
        yield client, server


def fill(stream: SocketStream) -> None:
    while stream.send(b"y" * 65536):
        pass


def test_nothing_to_read_is_blocking_io_error() -> None:
    ours, theirs = socket.socketpair()
    with contextlib.closing(SocketStream(ours, b"first")) as stream, theirs:
        assert stream.leftover == b"first"
        with pytest.raises(BlockingIOError):
            stream.recv(10)
        theirs.sendall(b"x")
        assert stream.recv(10) == b"x"
        with pytest.raises(BlockingIOError):
            fill(stream)


def test_after_the_end_of_writing_the_rest_is_still_read() -> None:
    ours, theirs = socket.socketpair()
    with contextlib.closing(SocketStream(ours, b"")) as stream, theirs:
        stream.shut_write()
        assert theirs.recv(10) == b""
        theirs.sendall(b"still here")
        assert stream.recv(100) == b"still here"
        theirs.close()
        assert stream.recv(100) == b""
        stream.shut_write()  # the peer has closed the connection: no error


def test_tls_raises_blocking_io_error_like_other_streams() -> None:
    with tls_pair() as (client, server):
        stream = SocketStream(client, b"")
        with pytest.raises(BlockingIOError):
            stream.recv(10)
        server.sendall(b"x")
        assert stream.recv(10) == b"x"


def test_tls_stays_encrypted_after_the_end_of_writing() -> None:
    with tls_pair() as (client, server):
        stream = SocketStream(client, b"")
        stream.shut_write()
        server.sendall(b"still here")
        assert stream.recv(100) == b"still here"
        assert server.recv(10) == b"", "the peer sees the end"
