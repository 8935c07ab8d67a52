"""An operator of podbot with a forge and a GitHub App, for the tests of clones."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from e2e.forge import Forge, forge
from e2e.harness import World, close_world, new_world
from podbot.config.write import set_keys

BASE = "/work"  # workspace.base_dir
CLONE = f"{BASE}/shop"

TOKEN = "/run/secrets/ghapp_token"
NETWORK = '[sandbox]\nnetwork = "host"\n'  # the forge listens on the host's loopback
IDENTITY = "git config user.name A && git config user.email a@example.org"
COMMIT = f"{IDENTITY} && echo more >> README.md && git commit -qam more"


@dataclass
class Site:
    """An operator whose configuration names a forge and its App."""

    world: World
    forge: Forge
    names: list[str] = field(default_factory=list)

    def run(self, *words: str, repo: str = "octo/shop", flags: tuple[str, ...] = (), **options: object):  # type: ignore[no-untyped-def]
        name = f"clone-{uuid.uuid4().hex[:8]}"
        self.names.append(name)
        command = ("run", "--repo", repo, "--agent", "custom", "--name", name, *flags, "--", *words)
        return self.world.podbot(*command, **options)  # type: ignore[arg-type]

    @property
    def name(self) -> str:
        """The last session's name."""
        return self.names[-1]

    def script(self, text: str, **options: object) -> subprocess.CompletedProcess[str]:
        done: subprocess.CompletedProcess[str] = self.run("sh", "-ec", text, **options)  # type: ignore[arg-type]
        return done

    def state(self) -> str:
        """The state of the last session's container: the engine's term, or "gone"."""
        return str(self.world.container(self.name).get("State", "gone"))


@pytest.fixture(scope="module")
def whole_site(image: str) -> Iterator[Site]:
    world = new_world(image, NETWORK)
    with forge(os.path.join(world.root, "forge")) as made:
        for key, value in made.config(os.path.join(world.env["HOME"], "app.pem")).items():
            set_keys(world.config, {key: value})
        yield Site(world, made)
    close_world(world)


@pytest.fixture
def site(whole_site: Site) -> Iterator[Site]:
    """The module's operator, with a fresh repository octo/shop; sessions that a test left are removed."""
    whole_site.names.clear()
    yield whole_site
    for name in whole_site.names:
        whole_site.world.podbot("stop", "--rm", "--time", "0", name)
    assert whole_site.world.sessions() == []


def fresh(site: Site, repo: str = "octo/shop", **made: object) -> None:
    """A new repository of that name on the forge."""
    shutil.rmtree(site.forge.path(repo), ignore_errors=True)
    site.forge.api.repositories = tuple(name for name in site.forge.api.repositories if name != repo)
    site.forge.repo(repo, **made)  # type: ignore[arg-type]


@contextlib.contextmanager
def live(site: Site, *flags: str, before: str = "true") -> Iterator[subprocess.Popen[bytes]]:
    """A session on octo/shop whose agent ran ``before`` and then sleeps."""
    name = f"clone-{uuid.uuid4().hex[:8]}"
    site.names.append(name)
    words = ("sh", "-ec", f"{before}; echo ready; exec sleep 600")
    child = site.world.start("run", "--repo", "octo/shop", "--agent", "custom", "--name", name, *flags, "--", *words)
    try:
        assert child.stdout is not None
        line = child.stdout.readline()
        assert line == b"ready\n", (line, child.communicate())
        yield child
    finally:
        if child.poll() is None:
            child.terminate()
        child.communicate(timeout=60)


class Thief(BaseHTTPRequestHandler):
    heard: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.heard.append(self.headers.get("Authorization", ""))
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="GitHub"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Print nothing on stderr."""


@pytest.fixture
def thief() -> Iterator[str]:
    """A server that asks for a password and records the answer; yields its address."""
    Thief.heard.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Thief) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()
