"""The rows of ``make bench`` for the gateway of a filtered network: its own cost, with servers and clients on loopback.

The gateway is the real process on a listening socket of this host, so that the cost of `podbot exec` is not counted.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from e2e.bench import CONSOLE, MEGABYTES, paired, say, timed
from e2e.harness import World
from tests.gateway.running import Running, exactly, gateway, head

REQUESTS = 10_000
_ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_KEY = {"header": "x-api-key", "private": True, "key": "real", "placeholder": "p", "paths": ["/v1/"]}


def bench_gateway(world: World, rounds: int) -> list[dict[str, Any]]:
    """The rows."""
    with tempfile.TemporaryDirectory() as place, serving(_bytes) as data, serving(_api) as api:
        endpoint = {"name": "x", "upstream": f"http://127.0.0.1:{api}", **_KEY}
        rules = (f"127.0.0.1:{data}", f"127.0.0.1:{api}")
        with gateway(Path(place), private=rules, endpoints=(endpoint,)) as found:
            rows = [
                _added("first byte through CONNECT", lambda: _tunnelled(found, api), lambda: _direct(api), "+ 1.5 ms"),
                _added("first byte through a reverse endpoint", *_requests(found, api), "+ 2 ms"),
                _throughput(found, data, rounds),
                _at_once(found, api),
                _memory(found),
            ]
    return [*rows, _start(world, max(5, rounds // 2))]


@contextlib.contextmanager
def serving(serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """A server in a process of its own: its port."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)

    def accept() -> None:
        with ThreadPoolExecutor(256) as pool:
            while True:
                pool.submit(serve, listener.accept()[0])

    child = multiprocessing.get_context("fork").Process(target=accept, daemon=True)
    child.start()
    port = listener.getsockname()[1]
    listener.close()
    try:
        yield port
    finally:
        child.kill()
        child.join()


def _bytes(peer: socket.socket) -> None:
    block = bytes(1 << 18)
    with peer, contextlib.suppress(OSError):
        peer.recv(1)
        for _ in range(MEGABYTES * 4):
            peer.sendall(block)


def _api(peer: socket.socket) -> None:
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with peer, contextlib.suppress(OSError, AssertionError):
        while True:
            head(peer)
            peer.sendall(_ANSWER)


def _asked(client: socket.socket, path: str = "/v1/a", *headers: str) -> None:
    client.sendall("\r\n".join([f"GET {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]).encode())
    assert head(client).startswith(b"HTTP/1.1 200 ")
    assert exactly(client, 2) == b"ok"


def _direct(port: int) -> float:
    begin = time.perf_counter()
    with socket.create_connection(("127.0.0.1", port)) as client:
        _asked(client)
    return time.perf_counter() - begin


def _tunnelled(found: Running, port: int) -> float:
    begin = time.perf_counter()
    with found.tunnel(f"127.0.0.1:{port}") as client:
        _asked(client)
    return time.perf_counter() - begin


def _requests(found: Running, port: int) -> tuple[Callable[[], float], Callable[[], float]]:
    """One request on a connection that is open already, as clients of APIs make it."""
    through, direct = found.connect(), socket.create_connection(("127.0.0.1", port))

    def measured(client: socket.socket, path: str, *headers: str) -> float:
        begin = time.perf_counter()
        _asked(client, path, *headers)
        return time.perf_counter() - begin

    return lambda: measured(through, "/x/v1/a", "X-Api-Key: p"), lambda: measured(direct, "/v1/a")


def _added(name: str, ours: Callable[[], float], other: Callable[[], float], asked: str) -> dict[str, Any]:
    row = paired(ours, other, 200)
    added = row["podbot_ms"] - row["other_ms"]
    row = {"name": name, "other": "directly", "asked": f"<= {asked}", "added_ms": round(added, 2), **row}
    say({**row, "name": f"{name} (adds {added:.1f} ms)"})
    return row


def _throughput(found: Running, port: int, rounds: int) -> dict[str, Any]:
    buffer = bytearray(1 << 18)

    def read(client: socket.socket) -> float:
        begin, got = time.perf_counter(), 0
        with client:
            client.sendall(b"g")
            while size := client.recv_into(buffer):
                got += size
        assert got == MEGABYTES << 20
        return time.perf_counter() - begin

    target = f"127.0.0.1:{port}"
    row = paired(
        lambda: read(found.tunnel(target)), lambda: read(socket.create_connection(("127.0.0.1", port))), max(5, rounds)
    )
    row |= {
        "name": f"{MEGABYTES} MB through a tunnel (throughput)",
        "other": "directly",
        "asked": ">= 0.7",
        "ratio": round(1 / row["ratio"], 2),
        "low": round(1 / row["high"], 2),
        "high": round(1 / row["low"], 2),
    }
    say(row)
    return row


def _at_once(found: Running, port: int) -> dict[str, Any]:
    begin = time.perf_counter()
    with ThreadPoolExecutor(200) as pool:
        times = list(pool.map(lambda _: _tunnelled(found, port), range(200)))
    seconds = time.perf_counter() - begin
    row = {"name": "200 tunnels at once", "figures": f"{seconds:.2f} s, the slowest {max(times):.2f} s", "asked": "all"}
    say(row)
    return row


def _memory(found: Running) -> dict[str, Any]:
    def resident() -> int:
        return int(Path(f"/proc/{found.pid}/statm").read_text(encoding="ascii").split()[1]) * 4

    with found.connect() as client:
        for _ in range(1000):
            _asked(client, "/x/v1/a", "X-Api-Key: p")
        before = resident()
        for _ in range(REQUESTS):
            _asked(client, "/x/v1/a", "X-Api-Key: p")
    grown = resident() - before
    row = {"name": f"the gateway's memory after {REQUESTS:,} requests", "asked": "<= 30 MiB, no growth",
           "figures": f"{resident() / 1024:.1f} MiB, grown by {grown} KiB"}  # fmt: skip
    say(row)
    return row


def _start(world: World, rounds: int) -> dict[str, Any]:
    work = world.workspace()

    def run(network: str) -> float:
        words = ["run", "--workspace", work, "--agent", "custom", "--network", network, "--", "true"]
        return timed([CONSOLE, *words], world.env)

    row = paired(lambda: run("filtered"), lambda: run("none"), rounds)
    row = {"name": "podbot run --network filtered … -- true", "other": "with --network none", "asked": "<= 1.15", **row}
    say(row)
    return row
