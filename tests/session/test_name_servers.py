"""A sandbox that resolves names by public servers although this host does not: the operator is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.engine.port import ContainerInfo
from podbot.events import Event
from podbot.frozen import replace
from podbot.session.network import public_servers, servers
from tests.session.plans import Place

PUBLIC = "nameserver 8.8.8.8\nnameserver 8.8.4.4\nnameserver 2001:4860:4860::8888\n"


class Machine:
    """A host with ``/etc/resolv.conf``, and a container with a file of its own."""

    def __init__(self, root: Path, place: Place) -> None:
        self._root, self._plan = root, place.plan().sandbox
        self.network = "default"

    def put(self, name: str, text: str) -> str:
        path = self._root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return str(path)

    def notice(self, inside: str = PUBLIC) -> Event | None:
        path = self.put("run/c1/resolv.conf", inside) if inside else ""
        found = ContainerInfo("c1", "s", "i", "running", 0.0, {}, resolv_conf=path)
        plan = replace(self._plan, container=replace(self._plan.container, network=self.network))
        return public_servers(plan, found, str(self._root))


@pytest.fixture
def machine(tmp_path: Path, place: Place) -> Machine:
    return Machine(tmp_path, place)


@pytest.mark.parametrize(
    ("ours", "named"),
    [
        ("nameserver 127.0.0.1\n", " (127.0.0.1)"),
        ("search corp.example\nnameserver fd00::53 # ours\nnameserver ::1\n", " (::1, fd00::53)"),
        ("", ""),
        ("nameserver 8.8.8.8\n", " (8.8.8.8)"),
    ],
)
def test_public_servers_in_place_of_the_host_s(machine: Machine, ours: str, named: str) -> None:
    machine.put("etc/resolv.conf", ours)
    event = machine.notice()
    assert event is not None
    assert (event.level, event.kind) == ("notice", "network.public_servers")
    assert f"by 8.8.8.8 and 8.8.4.4, not by this host's servers{named}: Podman" in event.message


@pytest.mark.parametrize("inside", ["", "nameserver 10.0.0.53\n", "nameserver 8.8.8.8\n", "nameserver 10.0.2.3\n"])
def test_other_servers_give_no_notice(machine: Machine, inside: str) -> None:
    machine.put("etc/resolv.conf", "nameserver 127.0.0.1\n")
    assert machine.notice(inside) is None


@pytest.mark.parametrize("name", ["etc/resolv.conf", "run/systemd/resolve/resolv.conf"])
def test_a_host_that_uses_them_itself_gives_no_notice(machine: Machine, name: str) -> None:
    machine.put("etc/resolv.conf", "nameserver 127.0.0.53\n")
    machine.put(name, PUBLIC)
    assert machine.notice() is None


def test_a_network_that_the_operator_chose_gives_no_notice(machine: Machine) -> None:
    machine.network = "mine"
    assert machine.notice() is None


def test_a_container_s_file_that_is_gone_or_is_a_pipe_is_no_error(tmp_path: Path) -> None:
    assert servers(str(tmp_path / "gone")) == set()
    os.mkfifo(tmp_path / "pipe")
    assert servers(str(tmp_path / "pipe")) == set()
    assert servers("") == set()


@given(st.binary(max_size=300))
def test_any_content_of_the_file_is_read(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / "resolv.conf"
    path.write_bytes(b"nameserver 10.0.0.1\n" + content)
    assert "10.0.0.1" in servers(str(path))
