"""The engine's own user socket, started by systemd, and its journal (issue 11.4)."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

import pytest

from e2e.vm.inside.operator import agent, doctor, podbot, said, workspace

SOCKET = f"/run/user/{os.getuid()}/podman/podman.sock"


@pytest.fixture
def podman_socket() -> Iterator[str]:
    """``podman.socket`` of this user, as `systemctl --user enable --now podman.socket` leaves it."""
    said("systemctl", "--user", "enable", "--now", "podman.socket")
    said("systemctl", "--user", "stop", "podman.service")
    yield SOCKET
    said("systemctl", "--user", "disable", "--now", "podman.socket")
    said("systemctl", "--user", "stop", "podman.service")


def test_it_is_found_and_used(podman_socket: str) -> None:
    """The first connection also starts the service."""
    assert said("systemctl", "--user", "show", "--value", "-p", "ActiveState", "podman.service") == "inactive"
    assert podman_socket in doctor()["engine"]["found"]
    assert "found there" in doctor()["engine"]["found"]
    assert said("systemctl", "--user", "show", "--value", "-p", "ActiveState", "podman.service") == "active"
    assert agent("id", "-u") == "0"


@pytest.mark.usefixtures("podman_socket")
def test_a_container_logs_nothing_into_the_journal_and_podbot_needs_no_log() -> None:
    name = "vm-journal"
    with workspace() as path:
        flags = ("--workspace", path, "--agent", "custom", "--name", name, "--keep")
        done = podbot("run", *flags, "--", "sh", "-c", "echo out; echo err >&2")
        assert done.stdout == "out\n"
        assert "err\n" in done.stderr
        assert said("podman", "inspect", name, "--format", "{{.HostConfig.LogConfig.Type}}") == "none"
        podbot("stop", "--rm", name)


def test_without_it_podbot_starts_a_service_of_its_own() -> None:
    assert "podbot's private service" in doctor()["engine"]["found"]
    assert json.loads(podbot("ps", "--json").stdout) == []
