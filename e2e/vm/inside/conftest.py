"""These tests run only in the test machine, because they move system files away and back."""

from __future__ import annotations

import socket

import pytest

from e2e.vm import HOSTNAME


@pytest.fixture(scope="session", autouse=True)
def machine() -> None:
    """Fails anywhere else."""
    assert socket.gethostname() == HOSTNAME, (
        "these tests change the machine; `make test-vm` runs them in a disposable one"
    )
