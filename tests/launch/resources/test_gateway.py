"""Planning the filtered network."""

from __future__ import annotations

from typing import Any

import pytest

from podbot.cli.remedies import remedy_of
from podbot.config.models import AppConfig, Origin
from podbot.errors import IllegalCombination, InvalidValue
from podbot.frozen import replace
from podbot.launch.held_keys import PORT
from podbot.launch.network_choice import network_of
from podbot.launch.plan import plan_sandbox, plan_session
from podbot.launch.resources.gateway import GatewayPlan
from podbot.launch.types import LaunchPlan, LaunchRequest, SandboxPlan
from podbot.session.plan_json import plan_from, public_part
from tests.launch.build import FILE, config, facts, typed

FLAG = Origin("flag", "--network")


def planned(values: dict[str, Any] | None = None, *, origin: Origin = FILE, **request: Any) -> LaunchPlan:
    chosen = {"sandbox.network": "filtered", **(values or {})}
    return plan_session(config(chosen, dict.fromkeys(chosen, origin)), typed(**request), facts())


def gateway(plan: SandboxPlan) -> GatewayPlan | None:
    return plan.find(GatewayPlan)


def test_a_filtered_sandbox_has_no_network_of_the_engine() -> None:
    plan = planned().sandbox
    found = gateway(plan)
    assert found is not None
    assert plan.container.network == "none"
    assert (found.allow, found.deny, found.private) == (("@models", "@registries", "@github"), (), ())
    assert found.directory == f"{plan.runtime_dir}/gateway"
    assert list(plan.resources).index("gateway") > list(plan.resources).index("guest")


def test_its_programs_are_led_to_the_gateway() -> None:
    env = planned().sandbox.container.env
    url = f"http://127.0.0.1:{PORT}"
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
        assert env[name] == url
    assert env["NO_PROXY"] == env["no_proxy"] == "localhost,127.0.0.1,::1"
    assert "ALL_PROXY" not in env
    assert "all_proxy" not in env


def test_variables_of_the_operator_override_those() -> None:
    assert planned({"sandbox.env": {"NO_PROXY": "*"}}).sandbox.container.env["NO_PROXY"] == "*"


def test_the_operator_sees_what_can_be_reached() -> None:
    plan = planned({"network.allow": ("a.example",), "network.deny": ("b.example",), "network.private": ("c.example",)})
    note = "the sandbox can reach a.example, c.example, but not b.example; refused hosts are in its network log"
    assert note in plan.sandbox.notes
    assert "the sandbox can reach nothing; refused" in " ".join(planned({"network.allow": ()}).sandbox.notes)


def test_hosts_of_one_session_are_added() -> None:
    found = gateway(planned(allow=("a.example", "@models")).sandbox)
    assert found is not None
    assert found.allow == ("@models", "@registries", "@github", "a.example")


def test_allowing_a_host_makes_the_network_filtered() -> None:
    plan = plan_session(config({}), typed(allow=("a.example",)), facts()).sandbox
    assert plan.container.network == "none"
    assert gateway(plan) is not None
    configured = config({"sandbox.network": "none"}, {"sandbox.network": FILE})
    assert gateway(plan_session(configured, typed(allow=("a.example",)), facts()).sandbox) is not None


def test_but_not_if_another_one_was_chosen_for_the_session() -> None:
    with pytest.raises(IllegalCombination) as caught:
        planned({"sandbox.network": "default"}, origin=FLAG, allow=("a.example",))
    assert "the network is default (flag --network), not filtered" in caught.value.message
    assert (caught.value.field, caught.value.origin) == ("network.allow", "LaunchRequest.allow")


@pytest.mark.parametrize("text", ["a b", "https://a.example", "@nothing", "*.com", ""])
def test_a_host_that_is_none_is_refused_with_its_flag(text: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        planned(allow=(text,))
    assert (caught.value.field, caught.value.origin) == ("network.allow", "LaunchRequest.allow")


def test_a_kernel_of_its_own_cannot_be_reached() -> None:
    with pytest.raises(IllegalCombination) as caught:
        planned({"sandbox.runtime": "kata"})
    assert "sandbox.runtime = kata" in caught.value.message


def test_other_networks_have_no_gateway() -> None:
    for network in ("none", "default", "host", "my-net"):
        plan = planned({"sandbox.network": network}).sandbox
        assert (gateway(plan), plan.container.network) == (None, network)
        assert "HTTPS_PROXY" not in plan.container.env


def test_ports_cannot_be_published() -> None:
    with pytest.raises(IllegalCombination) as caught:
        planned(publish=("3000:3000",))
    assert "a sandbox with the filtered network has no ports (sandbox.network = filtered," in caught.value.message
    with pytest.raises(IllegalCombination) as caught:
        plan_session(config({}), typed(publish=("3000:3000",), allow=("a.example",)), facts())
    assert "(LaunchRequest.allow)" in caught.value.message


def test_a_sealed_sandbox_has_none_unless_it_was_chosen_for_it() -> None:
    values = {"sandbox.network": "filtered", "sandbox.profile": "sealed", "workspace.source": "none"}
    request = LaunchRequest()
    from_file = plan_sandbox(config(values, dict.fromkeys(values, FILE)), request, facts(kernel=(6, 0)))
    assert (gateway(from_file), from_file.container.network) == (None, "none")
    chosen = plan_sandbox(config(values, dict.fromkeys(values, Origin("override"))), request, facts(kernel=(6, 0)))
    assert gateway(chosen) is not None


def test_the_hosts_proxy_is_for_the_gateway_and_in_no_record() -> None:
    env = {"HTTPS_PROXY": "http://user:c4n4ry@proxy.example:3128", "NO_PROXY": "x", "SSL_CERT_FILE": "/ca.pem"}
    chosen = {"sandbox.network": "filtered"}
    plan = plan_session(config(chosen), typed(), facts(env=env)).sandbox
    found = gateway(plan)
    assert found is not None
    assert found.host == env
    assert "c4n4ry" not in repr(plan)
    assert "c4n4ry" not in str(public_part(plan))
    assert "c4n4ry" not in str(plan.container.env)
    again = gateway(plan_from(public_part(plan)))
    assert again is not None
    assert again.refreshed(facts(env=env)).host == env


def test_a_record_cannot_give_a_gateway_to_another_sandbox() -> None:
    plan = planned().sandbox
    found = gateway(plan)
    assert found is not None
    assert found.agrees_with(plan, facts())
    open_one = replace(plan, container=replace(plan.container, network="default"))
    assert not found.agrees_with(open_one, facts())
    assert not replace(found, directory="/elsewhere").agrees_with(plan, facts())
    assert not replace(found, port=80).agrees_with(plan, facts())


def test_a_name_that_is_no_network_is_refused() -> None:
    bad: AppConfig = config({"sandbox.network": "a b"})
    with pytest.raises(InvalidValue, match="is not a network"):
        network_of(bad, LaunchRequest())


@pytest.mark.parametrize(
    "mode", ["bridge", "container:x", "ns:/proc/1/ns/net", "pasta", "pasta:-T,5432", "private", "slirp4netns"]
)
def test_a_mode_of_podmans_is_refused_before_anything_is_made(mode: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        planned({"sandbox.network": mode}, origin=FLAG)
    assert caught.value.message.startswith(
        f"sandbox.network (flag --network): {mode.partition(':')[0]} is a mode of Podman's and no network"
    )
    assert "Write default" in caught.value.remedy
    assert network_of(config({"sandbox.network": "bridges"}), LaunchRequest()) == "bridges"


def test_a_private_address_that_is_only_allowed_is_refused_with_the_line_to_type() -> None:
    """The plan said that the sandbox can reach it, and the gateway then refused it."""
    with pytest.raises(InvalidValue) as caught:
        planned({"network.private": ("a.example",)}, allow=("10.0.0.5:5432",))
    assert (caught.value.field, caught.value.origin) == ("network.allow", "LaunchRequest.allow")
    assert "`podbot config set network.private a.example,10.0.0.5:5432` opens it" in remedy_of(caught.value)
    with pytest.raises(InvalidValue) as caught:
        planned({"network.allow": ("localhost",)})
    assert (caught.value.field, caught.value.origin) == ("network.allow", str(FILE))
    with pytest.raises(InvalidValue, match="no rule opens that"):
        planned({"network.private": ("169.254.169.254",)})
    found = gateway(planned({"network.private": ("10.0.0.5:5432",)}, allow=("10.0.0.5:5432",)).sandbox)
    assert found is not None
    assert found.allow[-1] == "10.0.0.5:5432"
