"""The default network of a rootless sandbox, pasta (issue 11.3). Its traffic stays in this machine."""

from __future__ import annotations

import contextlib
import functools
import http.server
import subprocess
import threading
import urllib.request
from collections.abc import Iterator

from e2e.vm.inside.operator import agent, eventually, podbot, said, workspace

# The name by which a container with pasta reaches its machine.
HOST = "host.containers.internal"
IDENTITY = ("-c", "user.name=A", "-c", "user.email=a@example.org")


@contextlib.contextmanager
def served(directory: str) -> Iterator[int]:
    """The port of a file server on every address of this machine, which nothing outside can reach."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=directory)
    with http.server.ThreadingHTTPServer(("0.0.0.0", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_the_network_is_pasta() -> None:
    assert said("podman", "info", "--format", "{{.Host.RootlessNetworkCmd}}") == "pasta"
    assert "169.254.1.2" in agent("getent", "hosts", HOST)


def test_git_over_http_from_inside() -> None:
    with workspace() as path:
        for words in (
            ["init", "-q", "-b", "main", "work"],
            ["-C", "work", *IDENTITY, "commit", "-q", "--allow-empty", "-m", "one"],
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


def test_a_server_inside_is_reached_on_loopback() -> None:
    """pasta publishes the port, and a taken one is one clear error."""
    name, port = "vm-ported", 23_117
    flags = ("--name", name, "--keep", "-p", f"{port}:8000")
    with workspace() as kept:  # which the start needs, too
        agent("sh", "-c", "echo from the sandbox > /root/hello", flags=flags, path=kept)
        _is_reached(name, port)


def _is_reached(name: str, port: int) -> None:
    try:
        podbot("start", name)
        podbot("exec", "-d", "-w", "/root", name, "setsid", "-f", "python3", "-m", "http.server", "8000")
        eventually(lambda: page("127.0.0.1", port) == "from the sandbox\n", "the page")
        assert page("127.0.0.2", port) == ""
        with workspace() as path:
            words = ("run", "--workspace", path, "--agent", "custom", "-p", f"{port}:80", "--", "true")
            refused = podbot(*words, check=False)
        assert (refused.returncode, f"{port}: the port is in use" in refused.stderr) == (1, True), refused.stderr
    finally:
        podbot("stop", "--rm", "--time", "0", name)


def page(address: str, port: int) -> str:
    """The text of ``/hello`` there; empty if there is none."""
    try:
        with urllib.request.urlopen(f"http://{address}:{port}/hello", timeout=60) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""
