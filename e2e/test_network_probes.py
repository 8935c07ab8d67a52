"""Each way out of a sandbox with the filtered network is closed, and each malformed request is refused."""

from __future__ import annotations

import inspect
import json
import os
import secrets
import socket

import pytest

from e2e import network_probes
from e2e.harness import World
from e2e.outside import FLAGS, allowed, outside

ALLOWED = "the allowed server"
NAMES = [name for name in network_probes.probes(1, 2, "x") if name != ALLOWED]


@pytest.fixture(scope="module")
def results(shared_world: World) -> dict[str, str]:
    """The result of every probe, all in one sandbox; the server was reached once, by the one that is allowed."""
    abstract = f"podbot-e2e-{secrets.token_hex(8)}"
    workspace = shared_world.workspace("probes")
    with open(os.path.join(workspace, "probes.py"), "w", encoding="utf-8") as file:
        file.write(inspect.getsource(network_probes))
    with outside() as site, outside() as other, socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0" + abstract)
        listener.listen()
        words = ("python3", os.path.join(workspace, "probes.py"), str(site.port), str(other.port), abstract)
        done = shared_world.agent(
            *words, workspace=workspace, flags=FLAGS, env=allowed(site.rule), timeout=300, check=True
        )
        assert [line for line, _, _ in site.seen] == ["GET /reached"]
        assert other.seen == []
    found: dict[str, str] = json.loads(done.stdout)
    return found


def test_there_are_a_hundred() -> None:
    assert len(NAMES) >= 100


@pytest.mark.parametrize("name", NAMES)
def test_it_is_closed(results: dict[str, str], name: str) -> None:
    assert not results[name].startswith("reached"), results[name]


def test_the_allowed_server_is_reached(results: dict[str, str]) -> None:
    assert results[ALLOWED].startswith("reached: ")
    assert "from outside" in results[ALLOWED]
