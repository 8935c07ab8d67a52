"""A real gateway process: what it passes on, what it refuses, and how it ends."""

from __future__ import annotations

import json
import os
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.gateway.hellos import hello, message, real, records
from tests.gateway.running import (
    Running,
    ask,
    echo,
    everything,
    exactly,
    gateway,
    head,
    open_descriptors,
    server,
    unused_port,
)
from tests.waiting import HANG, wait_until


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, int]]:
    """A gateway, and a server that it may reach, which echoes."""
    with server(echo) as port, gateway(tmp_path_factory.mktemp("gateway"), private=private(port)) as found:
        yield found, port


def private(*ports: int) -> tuple[str, ...]:
    return tuple(f"{host}:{port}" for port in ports for host in ("127.0.0.1", "localhost"))


def log_of(found: Running) -> list[dict[str, object]]:
    path = Path(found.settings.log)
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# --- tunnels --------------------------------------------------------------------------------------


def test_a_tunnel_copies_both_ways(shared: tuple[Running, int]) -> None:
    found, port = shared
    for target in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST.:{port}"):
        with found.tunnel(target) as client:
            for word in (b"one", b"two" * 100_000):
                client.sendall(word)
                assert exactly(client, len(word)) == word
            client.shutdown(socket.SHUT_WR)
            assert everything(client) == b""


def test_bytes_that_come_with_the_request_are_not_lost(shared: tuple[Running, int]) -> None:
    found, port = shared
    with found.connect() as client:
        client.sendall(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\nearly".encode())
        assert head(client).startswith(b"HTTP/1.1 200 ")
        assert exactly(client, 5) == b"early"


def test_a_server_that_speaks_first(tmp_path: Path) -> None:
    def greet(peer: socket.socket) -> None:
        peer.sendall(b"220 hello")

    with server(greet) as port, gateway(tmp_path, private=private(port)) as found:
        client = found.tunnel(f"127.0.0.1:{port}")
        with client:
            assert everything(client) == b"220 hello"


def test_two_hundred_connections_at_once(shared: tuple[Running, int]) -> None:
    found, port = shared

    def one(number: int) -> bool:
        with found.tunnel(f"127.0.0.1:{port}") as client:
            word = str(number).encode() * 1000
            client.sendall(word)
            gate.wait(HANG)
            return exactly(client, len(word)) == word

    gate = threading.Barrier(200)
    with ThreadPoolExecutor(200) as pool:
        assert all(pool.map(one, range(200)))


def test_more_connections_than_that_get_an_error_at_once(tmp_path: Path) -> None:
    with gateway(tmp_path) as found:
        held = [found.connect() for _ in range(256)]
        for client in held:
            client.sendall(b"GET ")
        wait_until(lambda: open_descriptors(found.pid) > 256, what="the connections")
        answer = found.exchange(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 503 ")
        for client in held:
            client.close()
        wait_until(lambda: open_descriptors(found.pid) < 20, what="the end of the connections")
        assert found.exchange(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").startswith(b"HTTP/1.1 404 ")


def test_ten_thousand_connections_leave_nothing_behind(tmp_path: Path) -> None:
    """A tenth of them here; `make bench` has the rest."""
    with server(echo) as port, gateway(tmp_path, private=private(port)) as found:
        for _ in range(100):
            with found.tunnel(f"127.0.0.1:{port}") as client:
                client.sendall(b"x")
                assert client.recv(1) == b"x"
        wait_until(lambda: open_descriptors(found.pid) < 20, what="the end of the connections")
        before = resident(found.pid)
        for _ in range(900):
            with found.tunnel(f"127.0.0.1:{port}") as client:
                client.sendall(b"x")
                assert client.recv(1) == b"x"
        wait_until(lambda: open_descriptors(found.pid) < 20, what="the end of the connections")
        assert resident(found.pid) - before < 2 << 20


def resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")


# --- TLS in tunnels --------------------------------------------------------------------------------

ALERT = b"\x15\x03\x03\x00\x02\x02\x70"


def test_a_client_hello_for_the_host_of_the_tunnel_is_passed_on_whole(shared: tuple[Running, int]) -> None:
    found, port = shared
    for data in (real("localhost"), hello(b"localhost", size=7)):
        with found.tunnel(f"localhost:{port}") as client:
            for at in range(0, len(data), 11):
                client.sendall(data[at : at + 11])
            assert exactly(client, len(data)) == data


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(hello(b"evil.example"), id="another server"),
        pytest.param(hello(b"localhost.evil.example"), id="a longer name"),
        pytest.param(hello(b"sub.localhost"), id="a subdomain"),
        pytest.param(records(message(None)), id="no server"),
        pytest.param(hello(b"localhost", b"evil.example"), id="two servers"),
        pytest.param(hello(b"localhost\0"), id="a NUL"),
        pytest.param(b"\x16\x03\x01\x00\x05hello", id="no ClientHello"),
    ],
)
def test_a_client_hello_for_another_one_ends_the_tunnel_with_an_alert(shared: tuple[Running, int], data: bytes) -> None:
    found, port = shared
    with found.tunnel(f"localhost:{port}") as client:
        client.sendall(data)
        assert everything(client) == ALERT


def test_a_real_client_shows_the_alert(shared: tuple[Running, int]) -> None:
    found, port = shared
    context = ssl.create_default_context()
    with found.tunnel(f"localhost:{port}") as client, pytest.raises(ssl.SSLError, match=r"(?i)unrecognized.name"):
        context.wrap_socket(client, server_hostname="evil.example")


# --- refusals -----------------------------------------------------------------------------------


def connect(target: str) -> bytes:
    return f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()


@pytest.mark.parametrize("target", ["example.com:443", "127.0.0.1:9", "[::1]:443", "localhost:22"])
def test_a_refusal_names_the_host_and_the_remedy(shared: tuple[Running, int], target: str) -> None:
    found, _ = shared
    answer = found.exchange(connect(target)).decode()
    assert answer.startswith("HTTP/1.1 403 Forbidden\r\n")
    assert f"podbot: {target} is not allowed for this sandbox: " in answer
    assert f"On the host: podbot net allow box {target}\n" in answer


def test_a_refusal_offers_no_remedy_that_would_not_help(tmp_path: Path) -> None:
    with gateway(tmp_path, allow=("127.0.0.1", "169.254.169.254"), deny=("a.example",)) as found:
        denied, private_one, metadata = (
            found.exchange(connect(f"{host}:443")).decode() for host in ("a.example", "127.0.0.1", "169.254.169.254")
        )
    assert denied.endswith("a.example:443 is not allowed for this sandbox: the rule a.example denies it\n")
    assert private_one.endswith("is loopback. In podbot's configuration, network.private may name 127.0.0.1:443 "
                                "for later sessions\n")  # fmt: skip
    assert metadata.endswith("its address 169.254.169.254 is link-local, as metadata services of clouds are\n")


def test_refusals_are_logged_and_reported(tmp_path: Path) -> None:
    with gateway(tmp_path) as found:
        for _ in range(20):
            found.exchange(connect("example.com:443"))
        wait_until(lambda: found.events, what="the event")
        wait_until(lambda: sum(int(str(entry["count"])) for entry in log_of(found)) >= 20, what="the log")
    assert found.events[0] == {
        "event": "refused", "host": "example.com", "port": 443, "reason": "no rule allows it"
    }  # fmt: skip
    entries = log_of(found)
    assert sum(int(str(entry["count"])) for entry in entries) == 20
    assert len(entries) < 20
    assert {entry["what"] for entry in entries} == {"refused"}
    assert os.stat(found.settings.log).st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_a_public_rule_does_not_lead_to_this_host(tmp_path: Path, name: str) -> None:
    with server(echo) as port, gateway(tmp_path, allow=(f"{name}:{port}",)) as found:
        answer = found.exchange(connect(f"{name}:{port}")).decode()
    assert answer.startswith("HTTP/1.1 403 ")
    assert "its address 127.0.0.1 is loopback" in answer or "its address ::1 is loopback" in answer


def test_an_address_that_is_denied_is_not_reached_by_a_name(tmp_path: Path) -> None:
    with server(echo) as port, gateway(tmp_path, private=private(port), deny=("127.0.0.1",)) as found:
        answer = found.exchange(connect(f"localhost:{port}")).decode()
    assert answer.startswith("HTTP/1.1 403 ")
    assert "a rule denies its address 127.0.0.1" in answer


def test_an_allowed_host_without_a_server_is_a_clear_error(shared: tuple[Running, int]) -> None:
    found, _ = shared
    with unused_port() as port:
        assert "policy" in ask(found.settings.control, {"do": "policy", "allow": [], "deny": [], "private": [
            *found.settings.private, f"127.0.0.1:{port}"]})  # fmt: skip
        answer = found.exchange(connect(f"127.0.0.1:{port}")).decode()
    assert answer.startswith("HTTP/1.1 502 ")
    assert f"127.0.0.1:{port} cannot be reached: Connection refused" in answer


# --- plain HTTP ---------------------------------------------------------------------------------

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nX-Here: 1\r\nConnection: close, X-Gone\r\nX-Gone: 1\r\n\r\nok"


def recorder(seen: list[bytes], answer: bytes = OK) -> Callable[[socket.socket], None]:
    def serve(peer: socket.socket) -> None:
        found = head(peer)
        length = [line for line in found.lower().split(b"\r\n") if line.startswith(b"content-length: ")]
        body = exactly(peer, int(length[0].split()[1])) if length else b""
        while b"\r\ntransfer-encoding: chunked\r\n" in found.lower() and not body.endswith(b"0\r\n\r\n"):
            body += peer.recv(1)
        seen.append(found + body)
        peer.sendall(answer)

    return serve


def test_a_request_is_passed_on_without_headers_of_the_connection(tmp_path: Path) -> None:
    seen: list[bytes] = []
    with server(recorder(seen)) as port, gateway(tmp_path, private=private(port)) as found:
        host = f"localhost:{port}"
        answer = found.exchange(
            f"POST http://{host}/a?b HTTP/1.1\r\nHost: {host}\r\nProxy-Authorization: Basic eA==\r\nAccept: x\r\n"
            "Connection: close, X-Mine\r\nX-Mine: 1\r\nContent-Length: 4\r\n\r\nbody".encode()
        )
    assert seen == [
        f"POST /a?b HTTP/1.1\r\nhost: {host}\r\naccept: x\r\ncontent-length: 4\r\n".encode()
        + b"connection: close\r\n\r\nbody"
    ]
    assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"x-here: 1" in answer.lower()
    assert b"x-gone" not in answer.lower()
    assert answer.endswith(b"\r\n\r\nok")


def test_several_requests_on_one_connection(tmp_path: Path) -> None:
    seen: list[bytes] = []
    with server(recorder(seen)) as port, gateway(tmp_path, private=private(port)) as found, found.connect() as client:
        request = f"GET http://localhost:{port}/ HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode()
        client.sendall(request * 2)  # the second one comes before the first one's answer
        for _ in range(2):
            assert head(client).startswith(b"HTTP/1.1 200 ")
            assert exactly(client, 2) == b"ok"
        client.sendall(request.replace(b"localhost", b"evil.example"))
        assert head(client).startswith(b"HTTP/1.1 403 ")
    assert len(seen) == 2


def test_a_chunked_body_and_100_continue(tmp_path: Path) -> None:
    seen: list[bytes] = []
    with server(recorder(seen)) as port, gateway(tmp_path, private=private(port)) as found, found.connect() as client:
        client.sendall(
            f"PUT http://localhost:{port}/ HTTP/1.1\r\nHost: localhost:{port}\r\nTransfer-Encoding: chunked\r\n"
            "Expect: 100-continue\r\n\r\n".encode()
        )
        assert head(client).startswith(b"HTTP/1.1 100 ")
        client.sendall(b"5\r\nhello\r\n0\r\nTrailer: x\r\n\r\n")
        assert head(client).startswith(b"HTTP/1.1 200 ")
    assert seen[0].lower().count(b"transfer-encoding: chunked") == 1
    assert b"5\r\nhello\r\n" in seen[0]
    assert b"Trailer" not in seen[0]


def test_an_answer_is_passed_on_as_it_arrives(tmp_path: Path) -> None:
    """Each event of the stream is read by the client before the server writes the next one."""
    read = threading.Semaphore(0)

    def events(peer: socket.socket) -> None:
        head(peer)
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        for number in range(5):
            peer.sendall(b"data: %d\n\n" % number)
            assert read.acquire(timeout=HANG)

    with server(events) as port, gateway(tmp_path, private=private(port)) as found, found.connect() as client:
        client.sendall(f"GET http://localhost:{port}/ HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
        head(client)
        got = b""
        for number in range(5):
            while b"data: %d\n\n" % number not in got:
                got += client.recv(100)
            read.release()
        while not got.endswith(b"0\r\n\r\n"):
            got += client.recv(100)


def reset(peer: socket.socket) -> None:
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_a_server_that_resets_before_its_answer_is_a_clear_error(tmp_path: Path) -> None:
    def serve(peer: socket.socket) -> None:
        head(peer)
        reset(peer)

    with server(serve) as port, gateway(tmp_path, private=private(port)) as found:
        host = f"localhost:{port}"
        answer = found.exchange(f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 502 ")
    assert b"the server ended the connection" in answer


def test_an_answer_that_breaks_off_is_not_completed(tmp_path: Path) -> None:
    def serve(peer: socket.socket) -> None:
        head(peer)
        peer.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n")
        reset(peer)

    with server(serve) as port, gateway(tmp_path, private=private(port)) as found:
        host = f"localhost:{port}"
        answer = found.exchange(f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert not answer.endswith(b"0\r\n\r\n")


def test_a_server_that_speaks_no_http_is_a_clear_error(tmp_path: Path) -> None:
    seen: list[bytes] = []
    with server(recorder(seen, b"SSH-2.0-x\r\n\r\n")) as port, gateway(tmp_path, private=private(port)) as found:
        host = f"localhost:{port}"
        answer = found.exchange(f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 502 ")


def test_a_client_that_leaves_frees_the_server_at_once(tmp_path: Path) -> None:
    asked, gone = threading.Event(), threading.Event()

    def serve(peer: socket.socket) -> None:
        head(peer)
        asked.set()
        assert peer.recv(1) == b""
        gone.set()

    with server(serve) as port, gateway(tmp_path, private=private(port)) as found:
        with found.connect() as client:
            client.sendall(f"GET http://localhost:{port}/ HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
            assert asked.wait(HANG)
        assert gone.wait(HANG)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", 400, id="not for a proxy"),
        pytest.param(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, id="HTTP/2"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\r\n\r\n", 400, id="TLS"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 404, id="nothing there"),
        pytest.param(b"TRACE http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n", 405, id="TRACE"),
        pytest.param(b"GET / HTTP/1.1\r\nX: " + b"x" * 40_000, 431, id="a long head"),
    ],
)
def test_a_malformed_request_is_answered_and_the_connection_closed(
    shared: tuple[Running, int], data: bytes, status: int
) -> None:
    found, _ = shared
    assert found.exchange(data).startswith(f"HTTP/1.1 {status} ".encode())
