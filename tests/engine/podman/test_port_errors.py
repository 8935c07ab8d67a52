"""Ports that cannot be published, in Podman's words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.engine.podman.start_refusals import unusable_port

PRIVILEGED = (
    "rootlessport cannot expose privileged port 80, you can add 'net.ipv4.ip_unprivileged_port_start=80' to"
    " /etc/sysctl.conf (currently 1024), or choose a larger port number (>= 1024): listen tcp 0.0.0.0:80: bind:"
    " permission denied"
)
# From the source of Podman 4.3.1 and 5.4.2; those that were recorded are in tests/engine/recorded.
PASTA = (
    "setting up Pasta: pasta failed with exit code 1: Failed to bind port 3000 (Address already in use) for option"
    " '-t 127.0.0.1/3000-3000:3000-3000', exiting"
)


@pytest.mark.parametrize(
    ("reason", "at", "why", "hint"),
    [
        (
            "cannot listen on the TCP port: listen tcp4 127.0.0.1:3000: bind: address already in use",
            "127.0.0.1:3000",
            "the port is in use",
            "sport = :3000",
        ),
        (
            "rootlessport listen tcp 127.0.0.1:3000: bind: address already in use",
            "127.0.0.1:3000",
            "the port is in use",
            "sport = :3000",
        ),
        (PRIVILEGED, "0.0.0.0:80", "permission denied", "from 1024 on"),
        (
            "cannot listen on the TCP port: listen tcp4 10.9.9.9:3000: bind: cannot assign requested address",
            "10.9.9.9:3000",
            "cannot assign requested address",
            "127.0.0.1",
        ),
        (PASTA, "127.0.0.1:3000", "the port is in use", "sport = :3000"),
        ("Failed to bind port 80 (Permission denied)", "port 80", "permission denied", "from 1024 on"),
        ("listen tcp 127.0.0.1:1: bind: protocol error", "127.0.0.1:1", "protocol error", ""),
    ],
)
def test_the_port_the_reason_and_the_remedy(reason: str, at: str, why: str, hint: str) -> None:
    error = unusable_port(reason)
    assert error is not None
    assert (error.at, error.reason) == (at, why)
    assert hint in error.remedy
    assert str(error).count(at) == 1


@pytest.mark.parametrize("reason", ["", "runc: exec failed", "bind: address already in use"])
def test_other_reasons_are_not_about_a_port(reason: str) -> None:
    assert unusable_port(reason) is None


@given(st.text())
def test_any_reason_is_read(reason: str) -> None:
    error = unusable_port(f"listen tcp 1.2.3.4:5: bind: {reason}")
    assert error is None or error.at == "1.2.3.4:5"
