"""Ports, against recorded answers of each Podman for which e2e/record.py has asked about them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from podbot.config.published import Published
from podbot.container_spec import ContainerSpec, Security
from podbot.errors import PortUnusable
from tests.engine.podman.serve import Serve
from tests.engine.serving import VERSIONS, http, recorded, recordings_of, replay

PORTED = ContainerSpec(
    name="podbot-rec-5",
    image="localhost/pbase:1",
    image_origin="config file x",
    labels={},
    mounts=(),
    security=Security(),
    ports=(Published("127.0.0.1", 23_119, 80), Published("0.0.0.0", 23_120, 8080)),
)


def asked(version: str) -> bool:
    with recordings_of(version):
        return "inspect_ports" in recorded()


@pytest.fixture(params=[version for version in VERSIONS if asked(version)])
def serve(serve: Serve, request: pytest.FixtureRequest) -> Iterator[Serve]:
    with recordings_of(request.param):
        yield serve


def test_the_ports_that_it_will_publish(serve: Serve) -> None:
    engine, _ = serve(*[replay("inspect_ports")] * 3)
    assert engine.unmet("c", PORTED) == ()
    everywhere = (Published("0.0.0.0", 23_119, 80), PORTED.ports[1])
    for ports in ((), everywhere):
        (unmet,) = engine.unmet("c", dataclasses.replace(PORTED, ports=ports))
        assert unmet.key == "sandbox.publish"
        assert "127.0.0.1:23119:80/tcp" in unmet.got


def test_a_port_that_is_taken(serve: Serve) -> None:
    engine, _ = serve(http(200, "{}"), replay("start_port_taken"))
    with pytest.raises(PortUnusable) as caught:
        engine.start("c")
    assert (caught.value.at, caught.value.reason) == ("127.0.0.1:23119", "the port is in use")
