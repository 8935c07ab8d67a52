"""A real gateway with reverse endpoints, and APIs on loopback, some with TLS and an authority of their own."""

from __future__ import annotations

import contextlib
import datetime as dt
import ipaddress
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.gateway.running import Running, everything, exactly, gateway, head, server, unused_port
from tests.waiting import HANG, wait_until

KEY, PLACEHOLDER = "sk-c4n4ry-0123456789", "podbot-x-0123"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def endpoint(port: int, scheme: str = "http", **changes: Any) -> dict[str, Any]:
    return {"name": "x", "upstream": f"{scheme}://localhost:{port}", "paths": ["/v1/"], "header": "x-api-key",
            "private": True, "key": KEY, "placeholder": PLACEHOLDER, **changes}  # fmt: skip


def request(found: Running, path: str = "/x/v1/a", *headers: str, method: str = "GET", body: bytes = b"") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{found.port}", f"X-Api-Key: {PLACEHOLDER}", *headers]
    lines += [f"Content-Length: {len(body)}"] if body else []
    return "\r\n".join([*lines, "", ""]).encode() + body


def api(seen: list[bytes], answer: bytes = OK) -> Callable[[socket.socket], None]:
    """Answers every request of a connection."""

    def serve(peer: socket.socket) -> None:
        while True:
            try:
                found = head(peer)
            except AssertionError:
                return
            lengths = [line for line in found.lower().split(b"\r\n") if line.startswith(b"content-length: ")]
            seen.append(found + (exactly(peer, int(lengths[0].split()[1])) if lengths else b""))
            peer.sendall(answer)

    return serve


def test_the_key_is_added_outside_and_connections_are_used_again(tmp_path: Path) -> None:
    seen: list[bytes] = []
    peers: list[socket.socket] = []

    def serve(peer: socket.socket) -> None:
        peers.append(peer)
        api(seen)(peer)

    with server(serve) as port, gateway(tmp_path, endpoints=(endpoint(port),)) as found, found.connect() as client:
        for _ in range(5):
            client.sendall(request(found, method="POST", body=b"question"))
            answer = head(client) + exactly(client, 2)
            assert answer.startswith(b"HTTP/1.1 200 ")
            assert KEY.encode() not in answer
    assert len(seen) == 5
    assert len(peers) == 1
    assert all(f"\r\nx-api-key: {KEY}\r\n".encode() in one and one.endswith(b"question") for one in seen)
    assert not any(PLACEHOLDER.encode() in one for one in seen)


@pytest.mark.parametrize(
    ("path", "header", "status"),
    [
        ("/x/v2/a", "", 403),
        ("/x/v1/%2e%2e/a", "", 403),
        ("/y/v1/a", "", 404),
        ("/x/v1/a", "X-Api-Key: wrong", 401),
    ],
)
def test_what_is_refused_does_not_reach_the_api(tmp_path: Path, path: str, header: str, status: int) -> None:
    seen: list[bytes] = []
    with server(api(seen)) as port, gateway(tmp_path, endpoints=(endpoint(port),)) as found:
        data = request(found, path)
        if header:
            data = data.replace(f"X-Api-Key: {PLACEHOLDER}".encode(), header.encode())
        answer = found.exchange(data)
    assert answer.startswith(f"HTTP/1.1 {status} ".encode())
    assert seen == []


def test_an_api_that_echoes_the_key_does_not_give_it_away(tmp_path: Path) -> None:
    body = f"bad key {KEY}".encode()
    echo = (
        f"HTTP/1.1 401 No {KEY}\r\nX-Echo: {KEY}\r\nSet-Cookie: a={KEY}\r\nContent-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    with server(api([], echo)) as port, gateway(tmp_path, endpoints=(endpoint(port),)) as found:
        answer = found.exchange(request(found, "/x/v1/a", "Connection: close"))
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert answer.endswith(b"bad key " + b"*" * len(KEY))
    assert KEY.encode() not in answer


def test_events_are_passed_on_as_they_arrive(tmp_path: Path) -> None:
    import threading

    read = threading.Semaphore(0)

    def serve(peer: socket.socket) -> None:
        head(peer)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for number in range(5):
            event = b"data: %d\n\n" % number
            peer.sendall(b"%x\r\n%s\r\n" % (len(event), event))
            assert read.acquire(timeout=HANG)
        peer.sendall(b"0\r\n\r\n")

    with server(serve) as port, gateway(tmp_path, endpoints=(endpoint(port),)) as found, found.connect() as client:
        client.sendall(request(found))
        head(client)
        got = b""
        for number in range(5):
            while b"data: %d\n\n" % number not in got:
                got += client.recv(100)
            read.release()
        while not got.endswith(b"0\r\n\r\n"):
            got += client.recv(100)


def test_a_websocket(tmp_path: Path) -> None:
    def serve(peer: socket.socket) -> None:
        found = head(peer).lower()
        assert b"\r\nupgrade: websocket\r\n" in found
        assert f"x-api-key: {KEY}".encode() in found
        peer.sendall(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                     b"Sec-WebSocket-Accept: x\r\nSet-Cookie: a=b\r\n\r\nfirst")  # fmt: skip
        while data := peer.recv(100):
            peer.sendall(data[::-1])

    with server(serve) as port, gateway(tmp_path, endpoints=(endpoint(port),)) as found, found.connect() as client:
        client.sendall(
            request(found, "/x/v1/live", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: k")
        )
        answer = head(client)
        assert answer.startswith(b"HTTP/1.1 101 ")
        assert b"sec-websocket-accept: x" in answer.lower()
        assert b"cookie" not in answer.lower()
        assert exactly(client, 5) == b"first"
        client.sendall(b"abc")
        assert exactly(client, 3) == b"cba"
        client.shutdown(socket.SHUT_WR)
        assert everything(client) == b""


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\n", id="half a head"),
        pytest.param(b"garbage\r\n\r\n", id="no HTTP"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", id="two lengths"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 100_000, id="a long head"),
    ],
)
def test_a_broken_api_is_a_clear_error(tmp_path: Path, behaviour: bytes) -> None:
    def serve(peer: socket.socket) -> None:
        head(peer)
        peer.sendall(behaviour)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    with server(serve) as port, gateway(tmp_path, endpoints=(endpoint(port),)) as found:
        answer = found.exchange(request(found))
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert KEY.encode() not in answer


def test_an_api_that_is_gone_is_a_clear_error(tmp_path: Path) -> None:
    with unused_port() as port:
        gone = endpoint(port, upstream=f"http://127.0.0.1:{port}")
        with gateway(tmp_path, endpoints=(gone,)) as found:
            answer = found.exchange(request(found)).decode()
    assert answer.startswith("HTTP/1.1 502 ")
    assert "cannot be reached: Connection refused" in answer


def test_a_public_api_cannot_lead_to_a_private_address(tmp_path: Path) -> None:
    seen: list[bytes] = []
    with server(api(seen)) as port, gateway(tmp_path, endpoints=(endpoint(port, private=False),)) as found:
        answer = found.exchange(request(found))
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert b"is loopback" in answer
    assert seen == []


def test_the_log_has_no_path_and_no_key(tmp_path: Path) -> None:
    with server(api([])) as port, gateway(tmp_path, endpoints=(endpoint(port),)) as found:
        found.exchange(request(found, "/x/v1/secret-path", "Connection: close"))
        found.exchange(request(found, "/x/v2/other-path"))
        wait_until(lambda: Path(found.settings.log).exists(), what="the log")
    text = Path(found.settings.log).read_text()
    assert '"how": "x"' in text
    for hidden in (KEY, PLACEHOLDER, "secret-path"):
        assert hidden not in text


# --- TLS -----------------------------------------------------------------------------------------


# Since 3.13 Python accepts no authority that does not say what its key is for.
SIGNS = x509.KeyUsage(
    key_cert_sign=True, crl_sign=True, digital_signature=False, content_commitment=False, key_encipherment=False,
    data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
)  # fmt: skip


class Authority:
    """A certificate authority, and a certificate of ``localhost`` by it. ``path``: of a file with the former."""

    def __init__(self, place: Path, name: str = "localhost") -> None:
        now = dt.datetime.now(dt.UTC)
        ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        ca_name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "podbot's tests")])

        def signed(subject: x509.Name, public: Any, *extensions: x509.ExtensionType) -> x509.Certificate:
            made = x509.CertificateBuilder().subject_name(subject).issuer_name(ca_name).public_key(public)
            made = made.serial_number(x509.random_serial_number()).not_valid_before(now - dt.timedelta(days=1))
            made = made.not_valid_after(now + dt.timedelta(days=1))
            for extension in extensions:
                made = made.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
            return made.sign(ca_key, hashes.SHA256())

        ca = signed(
            ca_name,
            ca_key.public_key(),
            x509.BasicConstraints(ca=True, path_length=None),
            x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()),
            SIGNS,
        )
        names = x509.SubjectAlternativeName(
            [x509.DNSName(name), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))][: 2 if name == "localhost" else 1]
        )
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key())
        leaf = signed(x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]), key.public_key(), names, issuer)
        self.path = str(place / f"{name}-ca.pem")
        Path(self.path).write_bytes(ca.public_bytes(serialization.Encoding.PEM))
        chain = place / f"{name}.pem"
        chain.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
            + leaf.public_bytes(serialization.Encoding.PEM)
        )
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(chain)


@contextlib.contextmanager
def tls_server(authority: Authority, serve: Callable[[socket.socket], None]) -> Iterator[int]:
    def wrapped(peer: socket.socket) -> None:
        with contextlib.suppress(ssl.SSLError), authority.context.wrap_socket(peer, server_side=True) as inner:
            serve(inner)

    with server(wrapped) as port:
        yield port


def test_an_api_with_tls(tmp_path: Path) -> None:
    authority, seen = Authority(tmp_path), list[bytes]()
    with (
        tls_server(authority, api(seen)) as port,
        gateway(tmp_path, endpoints=(endpoint(port, "https"),), ca=authority.path) as found,
        found.connect() as client,
    ):
        for _ in range(3):
            client.sendall(request(found, method="POST", body=b"question"))
            assert head(client).startswith(b"HTTP/1.1 200 ")
            assert exactly(client, 2) == b"ok"
    assert len(seen) == 3
    assert KEY.encode() in seen[0]


@pytest.mark.parametrize("name", ["localhost", "evil.example"])
def test_an_api_without_a_valid_certificate_gets_no_key(tmp_path: Path, name: str) -> None:
    """It is of an unknown authority, or of another server."""
    authority, seen = Authority(tmp_path, name), list[bytes]()
    ca = authority.path if name != "localhost" else None
    with (
        tls_server(authority, api(seen)) as port,
        gateway(tmp_path, endpoints=(endpoint(port, "https"),), ca=ca) as found,
    ):
        answer = found.exchange(request(found)).decode()
    assert answer.startswith("HTTP/1.1 502 ")
    assert "the certificate of localhost" in answer
    assert seen == []


def test_an_api_that_speaks_no_tls_gets_no_key(tmp_path: Path) -> None:
    seen: list[bytes] = []

    def serve(peer: socket.socket) -> None:
        seen.append(peer.recv(1000))

    with server(serve) as port, gateway(tmp_path, endpoints=(endpoint(port, "https"),)) as found:
        answer = found.exchange(request(found))
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert KEY.encode() not in b"".join(seen)


def test_a_key_in_the_environment_of_no_process(tmp_path: Path) -> None:
    with server(api([])) as port, gateway(tmp_path, endpoints=(endpoint(port),)) as found:
        for name in ("cmdline", "environ"):
            assert KEY.encode() not in Path(f"/proc/{found.pid}/{name}").read_bytes()
