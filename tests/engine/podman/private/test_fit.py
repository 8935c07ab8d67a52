"""The adapted containers.conf: one table of machines, and properties over all of them."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.engine.podman.private.fit import CAPABILITIES, containers_conf, containers_conf_override
from podbot.engine.podman.private.podman_facts import PodmanFacts

ALL = {"podman": "/usr/bin/podman", "runc": "/usr/sbin/runc", "netavark": "/usr/lib/podman/netavark"}
WORKSTATION = PodmanFacts(uid=0, programs=ALL)
CI = replace(WORKSTATION, cgroups="hybrid", systemd=False, cap_sys_resource=False, nofile=20000, nproc=32768)

ENGINE_FACTS = """\
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
exit_command_delay = 30

[containers]
log_driver = "k8s-file"
default_ulimits = [
    "nofile=16384:16384",
    "nproc=16384:16384",
]
default_capabilities = [
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
]

[network]
network_backend = "netavark"
"""


def conf(facts: PodmanFacts, *existing: dict[str, Any]) -> dict[str, Any]:
    text = containers_conf(facts, existing)
    return {} if text is None else tomllib.loads(text)


def test_a_measured_machine_gets_the_measured_file() -> None:
    assert conf(CI) == tomllib.loads(ENGINE_FACTS)


def test_a_workstation_needs_nothing() -> None:
    assert containers_conf(WORKSTATION, [{"engine": {"runtime": "crun"}}]) is None


@pytest.mark.parametrize(
    ("change", "table", "key", "value"),
    [
        ({"cgroups": "hybrid"}, "engine", "runtime", "runc"),
        ({"cgroups": "v1"}, "engine", "runtime", "runc"),
        ({"cgroups": "v1"}, "engine", "cgroup_manager", "cgroupfs"),
        ({"systemd": False}, "engine", "cgroup_manager", "cgroupfs"),
        ({"systemd": False}, "engine", "events_logger", "file"),
        ({"systemd": False}, "containers", "log_driver", "k8s-file"),
        ({"cap_sys_resource": False}, "containers", "default_ulimits", ["nofile=16384:16384", "nproc=16384:16384"]),
    ],
)
def test_each_machine_problem_alone(change: dict[str, Any], table: str, key: str, value: object) -> None:
    assert conf(replace(WORKSTATION, **change))[table][key] == value


def test_limits_stay_within_low_ceilings() -> None:
    low = replace(CI, nofile=1024, nproc=4000)
    assert conf(low)["containers"]["default_ulimits"] == ["nofile=1024:1024", "nproc=4000:4000"]


def test_without_runc_the_runtime_is_not_changed() -> None:
    assert "runtime" not in conf(replace(CI, programs={})).get("engine", {})


def test_the_operators_settings_are_kept() -> None:
    theirs = {
        "containers": {"default_capabilities": ["CHOWN"], "default_ulimits": ["core=0:0", "nofile=9:9"], "tz": "local"},
        "engine": {"runtime": "youki", "cgroup_manager": "systemd", "runtimes": {"youki": ["/opt/youki"]}},
        "network": {"network_backend": "cni"},
    }
    merged = conf(CI, theirs)
    assert merged["containers"]["default_capabilities"] == ["CHOWN"]
    assert merged["containers"]["default_ulimits"] == ["core=0:0", "nofile=16384:16384", "nproc=16384:16384"]
    assert merged["containers"]["tz"] == "local"
    assert merged["engine"]["runtime"] == "youki"  # their own runtime; crun would not work here
    assert merged["engine"]["runtimes"] == {"youki": ["/opt/youki"]}
    assert merged["engine"]["cgroup_manager"] == "cgroupfs"  # the trap itself
    assert merged["network"]["network_backend"] == "cni"


@pytest.mark.parametrize(
    ("theirs", "text"),
    [
        ([], "[engine]\nexit_command_delay = 30\n"),
        ([{"engine": {"runtime": "crun"}}], "[engine]\nexit_command_delay = 30\n"),
        ([{"engine": {"exit_command_delay": 5}}, {"engine": {"runtime": "crun"}}], None),
        ([{"engine": 1}], "[engine]\nexit_command_delay = 30\n"),
    ],
)
def test_a_workstation_gets_the_time_of_exec_monitors_alone(theirs: list[dict[str, Any]], text: str | None) -> None:
    assert containers_conf_override(theirs) == text


def test_containers_share_the_keyring_of_a_service_that_has_its_own() -> None:
    theirs: list[dict[str, Any]] = [{"engine": {"exit_command_delay": 5}}]
    assert containers_conf_override(theirs, own_keyring=True) == "[containers]\nkeyring = false\n"
    assert containers_conf_override([*theirs, {"containers": {"keyring": True}}], own_keyring=True) is None
    for mine, kept in (({}, False), ({"keyring": True}, True)):
        text = containers_conf(CI, [{"containers": mine}], own_keyring=True)
        assert text is not None
        assert tomllib.loads(text)["containers"]["keyring"] is kept
    assert "keyring" not in conf(CI)["containers"]


def test_what_is_no_table_is_left_to_podman() -> None:
    assert conf(CI, {"engine": 1, "containers": []}) == conf(CI)


def test_the_operators_time_of_exec_monitors_is_kept() -> None:
    assert conf(CI, {"engine": {"exit_command_delay": 300}})["engine"]["exit_command_delay"] == 300


def test_later_files_override_earlier_ones_and_inputs_are_not_changed() -> None:
    first, second = {"engine": {"events_logger": "none", "x": 1}}, {"engine": {"x": 2}}
    assert conf(CI, first, second)["engine"] | {"runtime": ""} == {
        "events_logger": "none",
        "x": 2,
        "runtime": "",
        "cgroup_manager": "cgroupfs",
        "exit_command_delay": 30,
    }
    assert first == {"engine": {"events_logger": "none", "x": 1}}
    assert second == {"engine": {"x": 2}}


machines = st.builds(
    PodmanFacts,
    uid=st.sampled_from([0, 1000]),
    cgroups=st.sampled_from(["v2", "v1", "hybrid"]),
    systemd=st.booleans(),
    cap_sys_resource=st.booleans(),
    nofile=st.integers(1, 2**20),
    nproc=st.integers(1, 2**20),
    programs=st.dictionaries(st.sampled_from(["runc", "crun", "netavark"]), st.just("/x")),
)
scalars = st.one_of(st.text(), st.booleans(), st.integers(-(2**63), 2**63 - 1))
existing = st.dictionaries(
    st.sampled_from(["containers", "engine", "network", "secrets"]), st.dictionaries(st.text(min_size=1), scalars)
)


@given(machines, st.lists(existing, max_size=3))
def test_each_problem_sets_its_key_and_no_other(facts: PodmanFacts, layers: list[dict[str, Any]]) -> None:
    trapped = facts.cgroups != "v2" or not facts.systemd
    limited = not facts.cap_sys_resource and not facts.rootless
    text = containers_conf(facts, layers)
    assert (text is not None) == (trapped or limited)
    if text is None:
        return
    tables = tomllib.loads(text)
    names = {key for layer in layers for table in layer.values() for key in table}
    if "runtime" not in names:
        assert ("runtime" in tables.get("engine", {})) == (facts.cgroups != "v2" and "runc" in facts.programs)
    if "cgroup_manager" not in names:
        assert ("cgroup_manager" in tables.get("engine", {})) == trapped
    if "log_driver" not in names:
        assert ("log_driver" in tables["containers"]) == (not facts.systemd)
    if "default_ulimits" not in names:
        assert ("default_ulimits" in tables["containers"]) == limited
    if "default_capabilities" not in names:
        assert tables["containers"]["default_capabilities"] == CAPABILITIES


@given(machines)
def test_soft_and_hard_limits_are_equal_and_within_the_ceiling(facts: PodmanFacts) -> None:
    for row in conf(facts).get("containers", {}).get("default_ulimits", []):
        name, _, values = row.partition("=")
        soft, _, hard = values.partition(":")
        assert soft == hard
        assert 0 < int(soft) <= getattr(facts, name)
