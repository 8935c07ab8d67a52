"""A server inside a sandbox, reached from this host. All traffic stays on loopback."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import secrets
import socket
from collections.abc import Iterator

import pytest

from e2e.harness import ROOTLESS, World, wait_for

SERVE = ("python3", "-u", "-m", "http.server", "8000")  # on all of the sandbox's addresses
OTHER = "127.0.0.2"  # another address of this host's loopback interface
OPEN = ("--network", "default")
# Not every machine lets an ordinary user have a network: see e2e/vm/inside/test_network.py, too.
NETWORK = not ROOTLESS or os.access("/dev/net/tun", os.R_OK | os.W_OK)


def free_port() -> int:
    """A port that no program of this host has, in a range from which none is given out automatically."""
    while True:
        port = 20_000 + secrets.randbelow(10_000)
        if is_free(port):
            return port


def is_free(port: int) -> bool:
    with contextlib.closing(socket.socket()) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def page(port: int, address: str = "127.0.0.1") -> str:
    """The text of ``/hello`` there; the reason if there is none."""
    connection = http.client.HTTPConnection(address, port, timeout=10)
    with contextlib.closing(connection):
        try:
            connection.request("GET", "/hello")
            return connection.getresponse().read().decode()
        except OSError as exc:
            return type(exc).__name__


def site(world: World) -> str:
    """A workspace with a page."""
    workspace = world.workspace()
    with open(os.path.join(workspace, "hello"), "w", encoding="utf-8") as file:
        file.write("from the sandbox")
    return workspace


def serves(world: World, session: str) -> None:
    """Start the server in a session without an agent; it continues after the command."""
    world.podbot("exec", "-d", session, "setsid", "-f", *SERVE, check=True)


def arrives(port: int) -> None:
    wait_for(lambda: page(port) == "from the sandbox", what="the page")


def gateway(world: World, session: str) -> str:
    """An address of this host that is not a loopback one: on the session's own network."""
    (network,) = world.inspect(session)["NetworkSettings"]["Networks"].values()
    return str(network["Gateway"])


def listed(world: World, session: str) -> str:
    return world.podman("network", "ls", "--noheading", "--filter", f"label=io.podbot.session={session}").stdout


def test_a_port_without_a_network_is_refused(world: World) -> None:
    done = world.agent("true", flags=("-p", "3000:3000", "--network", "none"))
    assert done.returncode == 2
    assert "sandbox.publish = 3000:3000 (flag --publish)" in done.stderr


if NETWORK:

    @pytest.fixture
    def port() -> Iterator[int]:
        """A free port, which must be free again afterwards."""
        found = free_port()
        yield found
        wait_for(lambda: is_free(found), what=f"port {found} to be free")

    def test_a_server_inside_is_reached_on_loopback_only(world: World, port: int) -> None:
        with world.session(*SERVE, flags=(*OPEN, "-p", f"{port}:8000"), workspace=site(world)) as name:
            arrives(port)
            assert page(port, "localhost") == "from the sandbox", "which is ::1 first, on many machines"
            assert page(port, OTHER) == "ConnectionRefusedError"
            if not ROOTLESS:
                assert page(port, gateway(world, name)) == "ConnectionRefusedError"
            bound = world.inspect(name)["HostConfig"]["PortBindings"]
            assert bound == {"8000/tcp": [{"HostIp": "127.0.0.1", "HostPort": str(port)}]}
            (known,) = json.loads(world.podbot("inspect", "--json", name, check=True).stdout)
            assert known["plan"]["container"]["ports"] == [{"address": "127.0.0.1", "host_port": port, "port": 8000}]
            assert bool(listed(world, name)) is not ROOTLESS, "it is on its own network"

    def test_a_public_address_is_warned_about(world: World, port: int) -> None:
        flags = (*OPEN, "-p", f"0.0.0.0:{port}:8000", "--keep", "--name", "e2e-public")
        done = world.agent("true", workspace=site(world), flags=flags, check=True)
        assert f"0.0.0.0:{port}: WARNING, every machine that can reach port {port}" in done.stderr
        try:
            started = world.podbot("start", "e2e-public", check=True)
            assert f"0.0.0.0:{port}: WARNING" in started.stderr
            serves(world, "e2e-public")
            address = OTHER if ROOTLESS else gateway(world, "e2e-public")
            wait_for(lambda: page(port, address) == "from the sandbox", what="the page at another address")
            arrives(port)
        finally:
            world.podbot("stop", "--rm", "--time", "0", "e2e-public")

    def test_a_kept_session_has_its_port_again(world: World, port: int) -> None:
        flags = (*OPEN, "-p", f"{port}:8000", "--keep", "--name", "e2e-ported")
        world.agent("true", workspace=site(world), flags=flags, check=True)
        try:
            for _ in range(2):
                assert is_free(port)
                world.podbot("start", "e2e-ported", check=True)
                serves(world, "e2e-ported")
                arrives(port)
                world.podbot("stop", "--time", "0", "e2e-ported", check=True)
        finally:
            world.podbot("stop", "--rm", "--time", "0", "e2e-ported")

    def test_a_taken_port_is_one_clear_error_and_leaves_nothing(world: World, port: int) -> None:
        flags = (*OPEN, "-p", f"{port}:8000", "--name", "e2e-taken")
        with contextlib.closing(socket.create_server(("127.0.0.1", port))):
            done = world.agent("true", flags=flags)
        assert done.returncode == 1
        (line,) = [line for line in done.stderr.splitlines() if "cannot publish" in line]
        assert f"cannot publish 127.0.0.1:{port}: the port is in use" in line
        assert f"sport = :{port}" in done.stderr
        assert world.container("e2e-taken") == {}
        assert listed(world, "e2e-taken") == ""

    def test_a_port_of_another_session_is_taken(world: World, port: int) -> None:
        flags = (*OPEN, "-p", f"{port}:8000")
        with world.session(flags=flags):
            done = world.agent("true", flags=flags)
            assert (done.returncode, f"cannot publish 127.0.0.1:{port}" in done.stderr) == (1, True)

    def test_a_killed_podbot_leaves_no_port_behind(world: World, port: int) -> None:
        """The fixture waits until the port is free again."""
        run, _ = world.start_agent("sleep 600", *OPEN, "-p", f"{port}:8000", "--name", "e2e-killed-port")
        assert not is_free(port)
        run.kill()
        run.communicate(timeout=60)
        world.cleaned()
        assert world.container("e2e-killed-port") == {}

    def test_an_address_that_this_host_does_not_have(world: World, port: int) -> None:
        done = world.agent("true", flags=(*OPEN, "-p", f"192.0.2.1:{port}:8000"))  # reserved for documentation
        assert done.returncode == 1
        assert f"cannot publish 192.0.2.1:{port}: cannot assign requested address" in done.stderr

    def test_a_project_has_its_port_and_says_so(own_world: World, port: int) -> None:
        workspace = site(own_world)
        with open(own_world.config, "a", encoding="utf-8") as file:
            file.write(f'\n[project."{workspace}"]\nsandbox.network = "default"\nsandbox.publish = ["{port}:8000"]\n')
        with own_world.session(*SERVE, workspace=workspace):
            arrives(port)
        shown = own_world.podbot("config", "show", "-w", workspace, "--origin", check=True).stdout
        assert shown.startswith(f"# project {workspace}\n")
        assert f"project {workspace}" in next(line for line in shown.splitlines() if line.startswith("publish = "))
        other = own_world.agent("true", flags=("--dry-run", "--json"), check=True)
        assert json.loads(other.stdout)["container"]["ports"] == []
