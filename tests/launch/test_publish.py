"""Which ports of a sandbox this host offers."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.config.models import Origin
from podbot.config.published import Published
from podbot.errors import IllegalCombination, InvalidValue
from podbot.launch.describe import describe
from podbot.launch.plan import plan_sandbox, plan_session
from podbot.launch.publish import plan_ports, port_notes, public_notes
from podbot.launch.types import LaunchPlan, LaunchRequest
from tests.launch.build import FILE, config, facts, typed

PORT = Published("127.0.0.1", 3000, 3000)


def planned(
    *ports: str, configured: tuple[str, ...] = (), network: str = "", network_from: Origin = FILE
) -> LaunchPlan:
    values: dict[str, Any] = {"sandbox.publish": configured} if configured else {}
    made = config(values | ({"sandbox.network": network} if network else {}), {"sandbox.network": network_from})
    return plan_session(made, typed(publish=ports), facts())


def test_a_port_is_on_loopback_unless_an_address_is_written() -> None:
    plan = planned("3000:3000", "0.0.0.0:8080:80")
    assert plan.sandbox.container.ports == (PORT, Published("0.0.0.0", 8080, 80))
    assert describe(plan)["container"]["ports"][0] == {"address": "127.0.0.1", "host_port": 3000, "port": 3000}


def test_without_any_nothing_is_published() -> None:
    plan = planned()
    assert plan.sandbox.container.ports == ()
    assert not any("publish" in note for note in plan.sandbox.notes)


def test_configured_ports_are_added_and_the_same_one_counts_once() -> None:
    plan = planned("3000:3000", "4000:4000", configured=("3000:3000",))
    assert plan.sandbox.container.ports == (PORT, Published("127.0.0.1", 4000, 4000))


def test_the_operator_reads_where_they_are_and_a_warning_for_other_machines() -> None:
    ports = (PORT, Published("0.0.0.0", 1, 2), Published("10.0.0.7", 3, 4))
    local, public, named = port_notes(ports)
    assert public_notes(ports) == {public, named}
    assert "port 3000 of the sandbox at 127.0.0.1:3000" in local
    assert "WARNING" not in local
    assert "WARNING, every machine that can reach port 1 on any address of this host" in public
    assert "WARNING, every machine that can reach port 3 at 10.0.0.7" in named
    assert local in planned("3000:3000").sandbox.notes


def test_an_invalid_port_names_its_origin() -> None:
    with pytest.raises(InvalidValue) as caught:
        planned("0")
    assert (caught.value.field, caught.value.origin) == ("sandbox.publish", "LaunchRequest.publish")
    with pytest.raises(InvalidValue) as caught:
        planned(configured=("x",))
    assert caught.value.origin == str(FILE)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("3000:3000", "3000:80"),
        ("127.0.0.1:3000:80", "0.0.0.0:3000:80"),
        ("0.0.0.0:3000:80", "10.0.0.7:3000:81"),
    ],
)
def test_one_port_of_this_host_leads_to_one_port_inside(one: str, other: str) -> None:
    for ports in ((one, other), (other, one)):
        with pytest.raises(InvalidValue, match="both need port 3000 of this host"):
            planned(*ports)


def test_two_addresses_can_have_the_same_port() -> None:
    assert len(planned("127.0.0.1:3000:80", "10.0.0.7:3000:80").sandbox.container.ports) == 2


@pytest.mark.parametrize("network", ["none", "host"])
def test_ports_need_a_network_of_the_sandboxs_own(network: str) -> None:
    with pytest.raises(IllegalCombination) as caught:
        planned("3000:3000", network=network)
    assert caught.value.origin == "LaunchRequest.publish"
    assert f"sandbox.network = {network}, {FILE}" in caught.value.reason
    assert "sandbox.network = default" in caught.value.hint
    assert planned(network=network).sandbox.container.network == network


def test_ports_of_the_file_have_no_effect_where_this_session_has_no_network() -> None:
    flag = Origin("flag", "--network")
    plan = planned(configured=("3000:3000",), network="none", network_from=flag)
    assert plan.sandbox.container.ports == ()
    (note,) = [note for note in plan.sandbox.notes if "publish" in note]
    assert note.startswith(f"sandbox.publish ({FILE}) has no effect: ")
    assert note.endswith("(sandbox.network = none, flag --network)")
    with pytest.raises(IllegalCombination):
        planned("4000:4000", configured=("3000:3000",), network="none", network_from=flag)
    with pytest.raises(IllegalCombination):
        planned(configured=("3000:3000",), network="none")


def test_ports_of_the_file_have_no_effect_where_this_session_allows_single_hosts() -> None:
    plan = plan_session(config({"sandbox.publish": ("3000:3000",)}), typed(allow=("a.example",)), facts())
    assert plan.sandbox.container.ports == ()
    (note,) = [note for note in plan.sandbox.notes if "publish" in note]
    assert note.startswith(f"sandbox.publish ({FILE}) has no effect: ")
    assert note.endswith("(LaunchRequest.allow)")


def test_where_single_hosts_are_allowed_another_network_is_not_advised() -> None:
    with pytest.raises(IllegalCombination) as caught:
        plan_session(config({}), typed(publish=("3000:3000",), allow=("a.example",)), facts())
    assert caught.value.hint == "Leave the allowed hosts out, or publish no port."


def test_a_named_network_will_do() -> None:
    assert planned("3000:3000", network="shop").sandbox.container.ports == (PORT,)


@pytest.mark.parametrize(
    ("origin", "expected"),
    [(FILE, ()), (Origin("environment", "X"), ()), (Origin("override"), (PORT,)), (Origin("flag", "-p"), (PORT,))],
    ids=str,
)
def test_a_programs_sandboxes_have_only_ports_that_the_program_asks_for(
    origin: Origin, expected: tuple[Published, ...]
) -> None:
    made = config({"sandbox.publish": ("3000:3000",)}, {"sandbox.publish": origin})
    assert plan_sandbox(made, typed(), facts()).container.ports == expected


def test_a_sealed_sandbox_has_no_ports() -> None:
    made = config({"sandbox.profile": "sealed"})
    with pytest.raises(IllegalCombination, match=f"sandbox.profile = sealed, {FILE}"):
        plan_sandbox(made, typed(publish=("1:1",)), facts())


@given(st.lists(st.tuples(st.sampled_from(["127.0.0.1", "0.0.0.0", "10.0.0.7"]), st.integers(1, 4), st.integers(1, 2))))
def test_planned_ports_never_need_one_port_of_the_host_twice(wanted: list[tuple[str, int, int]]) -> None:
    texts = tuple(str(Published(*port)) for port in wanted)
    try:
        found, notes = plan_ports(config(), LaunchRequest(publish=texts), "default", with_agent=True)
    except InvalidValue:
        return
    assert {str(port) for port in found} == set(texts)
    assert len(notes) == len(found)
    for port in {port.host_port for port in found}:
        addresses = [other.address for other in found if other.host_port == port]
        assert len(set(addresses)) == len(addresses)
        assert "0.0.0.0" not in addresses or len(addresses) == 1
