"""The default network of a rootless sandbox, pasta (issue 11.3). Its traffic stays in this machine."""

from __future__ import annotations

import contextlib
import functools
import http.server
import subprocess
import threading
from collections.abc import Iterator

from e2e.vm.inside.operator import agent, said, workspace

# What a container that pasta serves calls the machine it runs on.
HOST = "host.containers.internal"
NOBODY = ("-c", "user.name=A", "-c", "user.email=a@example.org")


@contextlib.contextmanager
def served(directory: str) -> Iterator[int]:
    """The port of a server of files on every address of this machine, which nothing outside reaches."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=directory)
    with http.server.ThreadingHTTPServer(("0.0.0.0", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_the_network_is_pasta_s() -> None:
    assert said("podman", "info", "--format", "{{.Host.RootlessNetworkCmd}}") == "pasta"
    assert "169.254.1.2" in agent("getent", "hosts", HOST)


def test_git_over_http_from_inside() -> None:
    with workspace() as path:
        for words in (
            ["init", "-q", "-b", "main", "work"],
            ["-C", "work", *NOBODY, "commit", "-q", "--allow-empty", "-m", "one"],
            ["clone", "-q", "--bare", "work", "shop.git"],
            ["-C", "shop.git", "update-server-info"],
        ):
            subprocess.run(["git", *words], cwd=path, check=True)
        with served(path) as port:
            script = f"git clone -q http://{HOST}:{port}/shop.git /tmp/shop && git -C /tmp/shop log --format=%s"
            assert agent("sh", "-c", script) == "one"


def test_no_network_is_none() -> None:
    script = "ls /sys/class/net"
    assert agent("sh", "-c", script, env={"PODBOT_SANDBOX_NETWORK": "none"}) == "lo"
