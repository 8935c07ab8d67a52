"""The paths where podbot searches for a Podman."""

from __future__ import annotations

import pytest

from podbot.engine.podman.driver import SYSTEM_SOCKETS, VARIABLES, candidate_sockets


def test_the_variables_in_their_order() -> None:
    assert VARIABLES == ("CONTAINER_HOST", "DOCKER_HOST", "PODMAN_HOST")


def test_the_usual_places_with_the_rootless_one_first() -> None:
    assert candidate_sockets({"XDG_RUNTIME_DIR": "/run/user/7"}, 1000) == [
        "/run/user/7/podman/podman.sock",
        *SYSTEM_SOCKETS,
    ]
    assert SYSTEM_SOCKETS == ("/run/podman/podman.sock", "/var/run/docker.sock")


@pytest.mark.parametrize("environ", [{}, {"XDG_RUNTIME_DIR": " "}])
def test_without_the_variable_an_ordinary_users_socket_is_where_podman_looks(environ: dict[str, str]) -> None:
    assert candidate_sockets(environ, 1000) == ["/run/user/1000/podman/podman.sock", *SYSTEM_SOCKETS]
    assert candidate_sockets(environ, 0) == list(SYSTEM_SOCKETS)


def test_the_system_wide_sockets() -> None:
    assert SYSTEM_SOCKETS == ("/run/podman/podman.sock", "/var/run/docker.sock")
