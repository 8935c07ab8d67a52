"""The archive of the operator's logins reaches the sandbox every time (issue 10.5).

``PODBOT_E2E_UPLOADS=1000`` for as many uploads as the issue asks for; the suite does 100.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import podbot
from e2e.harness import World
from podbot.credentials.login_files import Entry
from podbot.credentials.tar_archive import build
from podbot.engine.http import Wire
from podbot.engine.podman.rest import API
from podbot.engine.port import Engine
from podbot.errors import ContainerError
from podbot.testing.engine_contract import a_spec

UPLOADS = int(os.environ.get("PODBOT_E2E_UPLOADS", "100"))
THREADS = 4
ARCHIVE = build([Entry(".claude", "directory", 0o700), Entry(".claude/.credentials.json", "file", 0o600, b"x" * 700)])


@contextlib.contextmanager
def opened(world: World) -> Iterator[Engine]:
    config = podbot.load_config(podbot.LoadOptions(environ=world.env))
    with podbot.open_engine(config, environ={**os.environ, **world.env}) as engine:
        yield engine


@pytest.fixture
def containers(shared_world: World, image: str) -> Iterator[list[str]]:
    """Created, not started: podbot uploads in this state. One for each thread, because the engine locks a container."""
    with opened(shared_world) as engine:
        made = [engine.create(a_spec(image)) for _ in range(THREADS)]
        yield made
        for container in made:
            engine.remove(container)


@contextlib.contextmanager
def load() -> Iterator[None]:
    """Twice as many busy processes as this machine has processors."""
    words = ["timeout", "500", "sh", "-c", "while :; do :; done"]
    busy = [subprocess.Popen(words) for _ in range(2 * (os.cpu_count() or 2))]
    try:
        yield
    finally:
        for child in busy:
            child.terminate()
            child.wait()


def test_no_upload_fails_under_load(shared_world: World, containers: list[str]) -> None:
    def upload(container: str) -> list[str]:
        failed = []
        with opened(shared_world) as engine:
            for _ in range(UPLOADS // THREADS):
                try:
                    engine.put_archive(container, "/root", ARCHIVE)
                except ContainerError as exc:
                    failed.append(str(exc))
        return failed

    begun = time.monotonic()
    with load(), ThreadPoolExecutor(THREADS) as pool:
        failed = [reason for found in pool.map(upload, containers) for reason in found]
    print(f"{UPLOADS} uploads in {time.monotonic() - begun:.0f} s, {len(failed)} failed")
    assert failed == []


def test_an_archive_that_arrives_block_by_block(shared_world: World, containers: list[str]) -> None:
    """Data that arrives after the end marker aborts the upload: every time, with the archive that tarfile pads."""
    with opened(shared_world) as engine:
        path = engine.endpoint.removeprefix("unix://")
    target = f"{API}/containers/{containers[0]}/archive?path=%2Froot"
    head = (
        f"PUT {target} HTTP/1.1\r\nHost: d\r\nContent-Type: application/x-tar\r\nContent-Length: {len(ARCHIVE)}\r\n\r\n"
    )
    for _ in range(3):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(60)
            sock.connect(path)
            sock.sendall(head.encode())
            for start in range(0, len(ARCHIVE), 512):
                time.sleep(0.03)
                sock.sendall(ARCHIVE[start : start + 512])
            wire = Wire(sock)
            answer = wire.read_head()
            assert answer.status == 200, wire.read_body(answer)
