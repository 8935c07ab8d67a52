"""What `podbot doctor --fix` would run, from doctor's checks of machines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from podbot.config.models import AppConfig
from podbot.diagnosis.doctor import diagnose
from podbot.diagnosis.host_checks import check_host
from podbot.diagnosis.repair_plan import RepairPlan, plan_repairs
from podbot.engine.check import Check
from podbot.engine.podman.engine_machine import PodmanMachine
from podbot.engine.podman.machine_checks import check_machine
from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.errors import SocketNotFound
from tests.diagnosis.test_doctor import context, raising
from tests.engine.podman.test_machine_checks import DEBIAN_13, VERSION_5, lacking

NO_IMAGE = Check("image", "fail", "none is configured", "x", "podbot setup")
NO_ENGINE = Check("engine", "fail", "there is no engine socket", "", "x")


def plan(facts: PodmanFacts, *others: Check, builds_image: bool = True) -> RepairPlan:
    version = VERSION_5 if "podman" in facts.programs else ""
    machine = PodmanMachine(facts, version, candidate=lambda: "5.4.2")
    return plan_repairs(
        [*check_machine(facts, version), *check_host(facts, fuse=True), *others], machine, builds_image=builds_image
    )


def test_a_ready_machine_needs_nothing() -> None:
    assert plan(DEBIAN_13).empty


@pytest.mark.parametrize(
    ("facts", "lines"),
    [
        (
            replace(DEBIAN_13, programs=lacking("catatonit", "pasta", "mmdebstrap")),
            ["apt-get update -q", "apt-get install -y --no-install-recommends catatonit passt mmdebstrap"],
        ),
        (replace(DEBIAN_13, dev_net_tun=False), ["modprobe tun", "chmod 0666 /dev/net/tun"]),
        (
            replace(DEBIAN_13, subids=False),
            [
                "usermod --add-subuids 165536-231071 --add-subgids 165536-231071 ada",
                "podman system migrate",
            ],
        ),
        (replace(DEBIAN_13, dev_fuse=False), ["modprobe fuse", "chmod 0666 /dev/fuse"]),
    ],
)
def test_the_commands_of_each_problem(facts: PodmanFacts, lines: list[str]) -> None:
    found = plan(facts)
    assert [repair.line for repair in found.commands] == lines
    assert [repair.line for repair in found.commands if not repair.root] == [line for line in lines if "podman" in line]
    assert (found.setup, found.left) == (False, ())


def test_without_podman_everything_is_installed_and_set_up() -> None:
    """doctor asks no engine for the image where there is none."""
    facts = replace(DEBIAN_13, programs={})
    machine = PodmanMachine(facts, "", candidate=lambda: "5.4.2")
    bare = context(
        machine=lambda _config: machine, load=AppConfig, connect=raising(SocketNotFound(path="/s", origin="here"))
    )
    checks = list(diagnose(bare))
    assert {check.name for check in checks if check.status == "fail"} >= {"podman", "engine"}
    assert "image" not in {check.name for check in checks}
    found = plan_repairs(checks, machine, builds_image=True)
    assert found.commands[1].line.startswith("apt-get install -y --no-install-recommends podman ")
    assert {"passt", "nftables", "catatonit", "mmdebstrap"} <= {*found.commands[1].line.split()}
    assert (found.setup, found.left) == (True, ())


def test_no_range_is_given_that_another_user_may_have() -> None:
    found = plan(replace(DEBIAN_13, subids=False, free_subids=None))
    assert found.empty
    assert [check.name for check in found.left] == ["user-ids"]


def test_what_set_up_will_install_as_well_is_in_the_plan() -> None:
    """Without lists of packages nothing says which Podman it will be."""
    facts = replace(DEBIAN_13, programs={})
    machine = PodmanMachine(facts, "", candidate=lambda: "")
    checks = [*check_machine(facts, ""), NO_ENGINE]
    found = plan_repairs(checks, machine, builds_image=True)
    assert (found.setup, found.helpers) == (True, ("slirp4netns iptables", "passt nftables"))
    known = PodmanMachine(facts, "", candidate=lambda: "5.4.2")
    assert plan_repairs(checks, known, builds_image=True).helpers == ()


def test_a_podman_that_is_too_old_is_not_installed() -> None:
    facts = replace(DEBIAN_13, programs={})
    machine = PodmanMachine(facts, "", candidate=lambda: "3.4.4+ds1")
    found = plan_repairs([*check_machine(facts, ""), NO_ENGINE], machine, builds_image=True)
    assert found.empty
    assert {"podman", "engine"} <= {check.name for check in found.left}


def test_an_image_of_the_operators_is_not_built() -> None:
    found = plan(replace(DEBIAN_13, programs={}), NO_ENGINE, builds_image=False)
    assert (bool(found.commands), found.setup, found.left) == (True, False, ())
    missing = Check("image", "fail", "my/own:1 is not on the engine", "x", "podman pull my/own:1")
    assert plan(DEBIAN_13, missing, builds_image=False) == RepairPlan(left=(missing,))
    assert plan(DEBIAN_13, missing).setup


def test_an_engine_that_packages_do_not_bring_is_left() -> None:
    assert [check.name for check in plan(DEBIAN_13, NO_ENGINE).left] == ["engine"]
    elsewhere = plan(replace(DEBIAN_13, distribution=("plan9",), programs={}), NO_ENGINE)
    assert not elsewhere.setup
    assert "engine" in {check.name for check in elsewhere.left}


def test_what_only_a_person_can_fix_is_named() -> None:
    inside = replace(DEBIAN_13, dev_net_tun=False, container="docker")
    found = plan(inside, Check("config", "fail", "line 3", "", "edit it"))
    assert found.empty
    assert [check.name for check in found.left] == ["rootless-network", "config"]
    elsewhere = plan(replace(DEBIAN_13, distribution=("plan9",), programs=lacking("catatonit")))
    assert [check.name for check in elsewhere.left] == ["init"]
