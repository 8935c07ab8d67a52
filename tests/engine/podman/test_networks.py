"""The requests that move a container to its own network, against answers of Podman 4.3.1."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podbot.engine.podman.networks import like
from podbot.engine.port import Unmet
from podbot.errors import EngineStorageFull, HealthCheckFailed, RequestFailed
from tests.engine.podman.serve import Serve
from tests.engine.serving import Answer, Server, http

LABELS = {"io.podbot.managed": "true", "io.podbot.session": "shop"}
DEFAULT = {
    "name": "podman",
    "id": "2f259bab93aa",
    "driver": "bridge",
    "network_interface": "podman0",
    "created": "2026-11-23T19:14:43.350227258Z",
    "subnets": [{"subnet": "10.88.0.0/16", "gateway": "10.88.0.1"}],
    "ipv6_enabled": False,
    "internal": False,
    "dns_enabled": False,
    "ipam_options": {"driver": "host-local"},
}
ASKED = {
    "name": "shop-net",
    "driver": "bridge",
    "ipv6_enabled": False,
    "internal": False,
    "dns_enabled": False,
    "options": {"isolate": "true"},
    "labels": LABELS,
}
MADE = {**ASKED, "id": "a952785b6eb0", "network_interface": "podman1", "ipam_options": {"driver": "host-local"}}
EXISTS = "network name shop-net already used: network already exists"
IN_USE = (
    '"shop-net" has associated containers with it. Use -f to forcibly delete containers and pods: network is being used'
)


def said(value: Any, status: int = 200) -> Answer:
    return http(status, json.dumps(value))


def no(status: int, message: str) -> Answer:
    return said({"cause": "no", "message": message, "response": status}, status)


def on(*networks: str, mode: str = "bridge") -> Answer:
    """A container's document."""
    found = {name: {"NetworkID": name} for name in networks}
    return said({"HostConfig": {"NetworkMode": mode}, "NetworkSettings": {"Networks": found or None}})


def asked(server: Server) -> list[tuple[str, str]]:
    return [(request.method, request.target.removeprefix("/v4.0.0/libpod")) for request in server.requests]


def test_it_is_moved_to_a_network_like_the_default_one_but_isolated(serve: Serve) -> None:
    done = http(200, "OK\n")
    engine, server = serve(on("podman"), said(DEFAULT), said(MADE), done, done, on("shop-net"))
    assert engine.isolate("c1", "shop-net", LABELS) is None
    assert asked(server) == [
        ("GET", "/containers/c1/json"),
        ("GET", "/networks/podman/json"),
        ("POST", "/networks/create"),
        ("POST", "/networks/podman/disconnect"),
        ("POST", "/networks/shop-net/connect"),
        ("GET", "/containers/c1/json"),
    ]
    bodies = [json.loads(request.body) for request in server.requests[2:5]]
    assert bodies == [ASKED, {"Container": "c1"}, {"container": "c1"}]


@pytest.mark.parametrize("mode", ["slirp4netns", "pasta", "none", "host", "private"])
def test_a_separate_network_stack_is_not_changed(serve: Serve, mode: str) -> None:
    engine, server = serve(on(mode=mode))
    assert engine.isolate("c1", "shop-net", LABELS) is None
    assert len(server.requests) == 1


def test_a_container_that_is_on_its_own_network_stays_there(serve: Serve) -> None:
    """A kept session is started again."""
    engine, server = serve(on("shop-net"))
    assert engine.isolate("c1", "shop-net", LABELS) is None
    assert len(server.requests) == 1


def test_several_networks_are_the_operator_s_choice(serve: Serve) -> None:
    engine, server = serve(on("podman", "corp"))
    assert engine.isolate("c1", "shop-net", LABELS) is None
    assert len(server.requests) == 1


def test_a_network_left_by_a_killed_podbot_is_made_again(serve: Serve) -> None:
    done = http(200, "OK\n")
    left = {**MADE, "options": {}, "dns_enabled": True}
    engine, server = serve(
        *(on("podman"), said(DEFAULT), no(409, EXISTS), said(left), said([]), said(MADE), done, done, on("shop-net"))
    )
    assert engine.isolate("c1", "shop-net", LABELS) is None
    requests = asked(server)
    assert requests.index(("DELETE", "/networks/shop-net")) < requests.index(("POST", "/networks/shop-net/connect"))
    assert requests.count(("POST", "/networks/create")) == 2


def test_a_network_with_the_sessions_labels_and_a_container_is_not_used(serve: Serve) -> None:
    engine, server = serve(on("podman"), said(DEFAULT), no(409, EXISTS), said(MADE), no(500, IN_USE))
    with pytest.raises(RequestFailed, match="another container is on the network shop-net"):
        engine.isolate("c1", "shop-net", LABELS)
    assert ("POST", "/networks/shop-net/connect") not in asked(server)


@pytest.mark.parametrize("change", [{"labels": None}, {"labels": {**LABELS, "io.podbot.session": "other"}}])
def test_a_foreign_network_of_that_name_is_not_used(serve: Serve, change: dict[str, object]) -> None:
    engine, _ = serve(on("podman"), said(DEFAULT), no(409, EXISTS), said({**MADE, **change}))
    with pytest.raises(RequestFailed, match="there is another network called shop-net"):
        engine.isolate("c1", "shop-net", LABELS)


def test_an_engine_without_isolated_networks_is_reported(serve: Serve) -> None:
    reason = "unsupported bridge network option isolate"
    engine, _ = serve(on("podman"), said(DEFAULT), no(500, reason))
    assert engine.isolate("c1", "shop-net", LABELS) == Unmet("sandbox.network", "a network of its own", reason)


def test_a_network_that_was_made_without_isolation_is_not_used(serve: Serve) -> None:
    engine, server = serve(on("podman"), said(DEFAULT), said({**MADE, "options": None}), said([]))
    found = engine.isolate("c1", "shop-net", LABELS)
    assert found is not None
    assert found.got == "a network that is not isolated"
    assert asked(server)[-1] == ("DELETE", "/networks/shop-net")


def test_a_default_network_that_cannot_be_copied_stays_in_use(serve: Serve) -> None:
    engine, server = serve(on("podman"), said({**DEFAULT, "driver": "macvlan"}))
    found = engine.isolate("c1", "shop-net", LABELS)
    assert found is not None
    assert found.got == "the network podman, which podbot cannot copy"
    assert len(server.requests) == 2


@pytest.mark.parametrize("failing", range(6))
def test_any_other_failure_is_an_error(serve: Serve, failing: int) -> None:
    done = http(200, "OK\n")
    answers = [on("podman"), said(DEFAULT), said(MADE), done, done, on("shop-net")]
    engine, server = serve(*answers[:failing], no(500, "could not find free subnet"))
    with pytest.raises(RequestFailed, match="could not find free subnet"):
        engine.isolate("c1", "shop-net", LABELS)
    assert len(server.requests) == failing + 1


@pytest.mark.parametrize("found", [(), ("podman",), ("podman", "shop-net")])
def test_the_final_network_is_read_back(serve: Serve, found: tuple[str, ...]) -> None:
    done = http(200, "OK\n")
    engine, _ = serve(on("podman"), said(DEFAULT), said(MADE), done, done, on(*found))
    with pytest.raises(RequestFailed, match="it is on"):
        engine.isolate("c1", "shop-net", LABELS)


def test_a_full_disk_and_an_answer_of_unexpected_form(serve: Serve) -> None:
    engine, _ = serve(on("podman"), said(DEFAULT), no(500, "write: no space left on device"), said([1]))
    with pytest.raises(EngineStorageFull):
        engine.isolate("c1", "shop-net", LABELS)
    with pytest.raises(HealthCheckFailed):
        engine.isolate("c1", "shop-net", LABELS)


# --- removing it ----------------------------------------------------------------------------------


def test_its_network_is_removed(serve: Serve) -> None:
    engine, server = serve(said(MADE), said([{"Name": "shop-net", "Err": None}]))
    engine.remove_network("shop-net", LABELS)
    assert asked(server) == [("GET", "/networks/shop-net/json"), ("DELETE", "/networks/shop-net")]


@pytest.mark.parametrize(
    "answers",
    [
        [no(404, "network not found")],
        [said({**MADE, "labels": {"io.podbot.managed": "true"}})],
        [said({**MADE, "labels": None})],
        [said(MADE), no(404, "network not found")],
        [said(MADE), no(500, IN_USE)],
    ],
)
def test_a_network_that_is_gone_used_or_foreign_is_not_removed(serve: Serve, answers: list[Answer]) -> None:
    engine, server = serve(*answers)
    engine.remove_network("shop-net", LABELS)
    assert len(server.requests) == len(answers)


def test_a_failed_removal_is_an_error(serve: Serve) -> None:
    engine, _ = serve(said(MADE), no(500, "read-only file system"))
    with pytest.raises(RequestFailed, match="read-only file system"):
        engine.remove_network("shop-net", LABELS)


# --- what it is like ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "copied"),
    [
        ({"internal": True}, {"internal": True}),
        ({"ipv6_enabled": True}, {"ipv6_enabled": True}),
        ({"dns_enabled": True, "network_dns_servers": ["9.9.9.9"]}, {"network_dns_servers": ["9.9.9.9"]}),
        ({"options": {"mtu": "1400"}}, {"options": {"mtu": "1400", "isolate": "true"}}),
        ({"options": {"isolate": "false"}}, {"options": {"isolate": "true"}}),
        ({"options": None, "ipam_options": None}, {"options": {"isolate": "true"}}),
    ],
)
def test_the_operators_settings_of_the_default_network_are_copied(
    change: dict[str, object], copied: dict[str, object]
) -> None:
    found = like({**DEFAULT, **change})
    assert found is not None
    assert found.items() >= copied.items()
    assert not found.keys() & {"subnets", "id", "network_interface", "name"}


@pytest.mark.parametrize(
    "change", [{"driver": "ipvlan"}, {"options": {"vlan": "7"}}, {"ipam_options": {"driver": "dhcp"}}]
)
def test_settings_that_cannot_be_copied(change: dict[str, object]) -> None:
    assert like({**DEFAULT, **change}) is None
