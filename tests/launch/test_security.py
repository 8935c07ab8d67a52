from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.config.checks import LEAST_MEMORY
from podbot.config.models import Origin
from podbot.container_spec import Limits, Security
from podbot.errors import IllegalCombination, InvalidValue
from podbot.launch.seccomp import profile_path
from podbot.launch.security import (
    DROPPED,
    effective_profile,
    nested_env,
    plan_limits,
    plan_security,
    plan_shm,
    without_defaults,
)
from tests.launch.build import config, facts

ASKED = {"sandbox.mount_dev_fuse": True}
SECCOMP = profile_path(facts().state_dir)
HARDENED = Security(no_new_privileges=True, dropped=DROPPED, seccomp=SECCOMP)
MINIMAL = Security(dropped=DROPPED, seccomp=SECCOMP)


def planned(values: dict[str, Any], *, dev_fuse: bool = True) -> tuple[Security, tuple[str, ...]]:
    return plan_security(config(values), facts(dev_fuse=dev_fuse))


def test_hardened_is_the_default_and_adds_no_capability_and_no_device() -> None:
    assert planned({}) == (dataclasses.replace(HARDENED, selinux_disable=True), ())
    assert planned({}, dev_fuse=False) == planned({})


def test_fuse_is_given_to_who_asks_for_it() -> None:
    asked = dataclasses.replace(HARDENED, devices=("/dev/fuse",), selinux_disable=True)
    assert planned(ASKED) == (asked, ())


@pytest.mark.parametrize("profile", ["hardened", "minimal", "sealed"])
def test_user_ids_of_its_own_are_for_every_profile_but_privileged(profile: str) -> None:
    assert planned({"sandbox.profile": profile, "sandbox.own_user_ids": True})[0].own_ids
    assert not planned({"sandbox.profile": profile})[0].own_ids
    assert not planned({"sandbox.profile": "privileged", "sandbox.own_user_ids": True})[0].own_ids


def test_hardened_with_selinux() -> None:
    values = {"sandbox.selinux_label_mode": "keep_default"}
    assert planned(values) == (HARDENED, ())


def test_sealed_has_no_capability_no_device_and_an_unprivileged_user() -> None:
    sealed = Security(
        no_new_privileges=True, dropped=("ALL",), selinux_disable=True, seccomp=SECCOMP,
        read_only_root=True, tmpfs=("/tmp",), user="65534:65534", keep_id=True,
    )  # fmt: skip
    assert planned({"sandbox.profile": "sealed"}) == (sealed, ())
    assert planned({"sandbox.profile": "sealed"}, dev_fuse=False) == (sealed, ())
    made, _ = plan_security(config({"sandbox.profile": "sealed"}), facts(uid=0))
    assert made == dataclasses.replace(sealed, keep_id=False), "root's own engine maps no users"


@pytest.mark.parametrize("values", [ASKED, {**ASKED, "sandbox.profile": "minimal"}, {"sandbox.profile": "minimal"}])
def test_a_host_without_fuse_gets_none_and_a_notice(values: dict[str, Any]) -> None:
    security, notes = planned(values, dev_fuse=False)
    assert security.devices == ()
    assert security.capabilities == ()
    assert any("vfs" in note for note in notes)


@pytest.mark.parametrize(
    ("values", "dev_fuse", "env"),
    [
        (ASKED, True, {}),
        (ASKED, False, {"STORAGE_DRIVER": "vfs"}),
        ({}, True, {"STORAGE_DRIVER": "vfs"}),
        ({"sandbox.profile": "minimal"}, True, {}),
        ({"sandbox.profile": "minimal"}, False, {"STORAGE_DRIVER": "vfs"}),
        ({"sandbox.profile": "privileged"}, False, {}),
        ({"sandbox.profile": "sealed"}, False, {}),
    ],
)
def test_the_inner_podman_is_configured_when_it_cannot_use_fuse(
    values: dict[str, Any], dev_fuse: bool, env: dict[str, str]
) -> None:
    assert nested_env(planned(values, dev_fuse=dev_fuse)[0]) == env


def test_no_notice_for_missing_fuse_that_was_not_requested() -> None:
    assert planned({}, dev_fuse=False)[1] == ()


def test_minimal_is_exactly_as_specified() -> None:
    security, notes = planned({"sandbox.profile": "minimal"})
    assert security == dataclasses.replace(
        MINIMAL,
        devices=("/dev/fuse",),
        capabilities=("SYS_ADMIN",),
        dropped=tuple(name for name in DROPPED if name != "SYS_ADMIN"),
        selinux_disable=True,
    )
    assert "SYS_ADMIN" in notes[0]
    security, notes = planned({"sandbox.profile": "minimal", "sandbox.mount_dev_fuse": False})
    assert security == dataclasses.replace(MINIMAL, selinux_disable=True)
    assert "SYS_ADMIN" not in notes[0]


@pytest.mark.parametrize("values", [{"sandbox.profile": "privileged"}, {"sandbox.privileged": True}])
def test_privileged_is_exactly_as_specified_and_reported(values: dict[str, Any]) -> None:
    security, notes = planned(values)
    assert security == Security(privileged=True)
    assert "privileged" in notes[0]


def test_both_spellings_together_agree() -> None:
    assert effective_profile(config({"sandbox.privileged": True, "sandbox.profile": "privileged"})) == "privileged"


@pytest.mark.parametrize("profile", ["hardened", "minimal"])
def test_privileged_against_a_chosen_profile_names_both_origins(profile: str) -> None:
    made = config(
        {"sandbox.privileged": True, "sandbox.profile": profile},
        {"sandbox.profile": Origin("environment", "PODBOT_SANDBOX_PROFILE")},
    )
    with pytest.raises(IllegalCombination) as caught:
        effective_profile(made)
    assert "variable PODBOT_SANDBOX_PROFILE" in str(caught.value)
    assert "config.toml" in str(caught.value)


def test_a_chosen_profile_without_a_recorded_origin_still_applies() -> None:
    made = config({"sandbox.privileged": True, "sandbox.profile": "minimal"}, {"sandbox.profile": Origin("default")})
    with pytest.raises(IllegalCombination):
        effective_profile(made)


def test_half_of_the_machine_by_default() -> None:
    assert plan_limits(config(), facts(memory=16 << 30)) == Limits(
        memory=8 << 30, pids=2048, nofile=65_536, by_default=("memory", "pids", "nofile")
    )


def test_a_sealed_sandbox_has_one_core_and_1_gib_by_default() -> None:
    sealed = {"sandbox.profile": "sealed"}
    assert plan_limits(config(sealed), facts(memory=16 << 30)) == Limits(
        memory=1 << 30, cpus=1.0, pids=2048, nofile=65_536, by_default=("memory", "cpus", "pids", "nofile")
    )


@pytest.mark.parametrize("origin", [Origin("file", "config.toml"), Origin("environment", "X"), Origin("override")])
def test_in_a_sealed_sandbox_limits_that_were_set_count(origin: Origin) -> None:
    keys = {"sandbox.memory": "50%", "sandbox.cpus": 3.0}
    made = config({"sandbox.profile": "sealed", **keys}, dict.fromkeys(keys, origin))
    found = plan_limits(made, facts(memory=16 << 30))
    assert (found.memory, found.cpus, found.by_default) == (8 << 30, 3.0, ("pids", "nofile"))


def test_no_share_when_the_machines_memory_is_unknown() -> None:
    assert plan_limits(config(), facts(memory=0)).memory is None


@pytest.mark.parametrize(("machine", "expected"), [(0, 65_536), (20_000, 20_000), (524_288, 65_536)])
def test_open_files_by_default_are_no_more_than_podbots_own(machine: int, expected: int) -> None:
    found = plan_limits(config(), facts(nofile=machine, nproc=32_768))
    assert (found.nofile, found.nproc) == (expected, 32_768)
    assert "nofile" in found.by_default


def test_an_explicit_limit_of_open_files_is_not_lowered() -> None:
    found = plan_limits(config({"sandbox.nofile": 1_000_000}), facts(nofile=20_000, nproc=9))
    assert (found.nofile, found.nproc) == (1_000_000, 9)
    assert "nofile" not in found.by_default


def test_with_the_engines_own_limit_of_open_files_podbot_sets_no_limit_of_processes() -> None:
    found = plan_limits(config({"sandbox.nofile": 0}), facts(nofile=20_000, nproc=9))
    assert (found.nofile, found.nproc) == (None, None)


@pytest.mark.parametrize(
    ("uid", "kernel", "pids", "nproc", "expected"),
    [
        (1000, (5, 14), 64, 30_000, 64),
        (1000, (6, 1), 64, 0, 64),
        (1000, (6, 1), 64, 50, 50),
        (1000, (6, 1), 0, 30_000, 30_000),  # no limit is asked for
        (1000, (5, 10), 64, 30_000, 30_000),  # it would count the operator's own processes
        (1000, (0, 0), 64, 30_000, 30_000),
        (0, (6, 1), 64, 30_000, 30_000),  # a rootful engine limits processes itself
    ],
)
def test_in_a_sealed_sandbox_of_a_rootless_engine_the_kernel_counts_processes(
    uid: int, kernel: tuple[int, int], pids: int, nproc: int, expected: int
) -> None:
    made = config({"sandbox.profile": "sealed", "sandbox.pids": pids})
    assert plan_limits(made, facts(uid=uid, kernel=kernel, nproc=nproc)).nproc == expected
    hardened = config({"sandbox.pids": pids})
    assert plan_limits(hardened, facts(uid=uid, kernel=kernel, nproc=nproc)).nproc == (nproc or None)


def test_limits() -> None:
    made = config({"sandbox.memory": "512m", "sandbox.cpus": 1.5, "sandbox.pids": 100, "sandbox.nofile": 4096})
    assert plan_limits(made, facts()) == Limits(memory=512 * 1024 * 1024, cpus=1.5, pids=100, nofile=4096)


def test_an_explicit_default_value_counts_as_requested() -> None:
    made = config({"sandbox.memory": "50%", "sandbox.pids": 2048, "sandbox.nofile": 65_536})
    assert plan_limits(made, facts(memory=1 << 30)).by_default == ()


def test_limits_can_be_removed() -> None:
    made = config({"sandbox.memory": "none", "sandbox.pids": 0, "sandbox.nofile": 0})
    assert plan_limits(made, facts(memory=1 << 30)) == Limits(pids=0)


@given(percent=st.integers(1, 100), machine=st.integers(0, 2**50))
def test_a_share_is_never_more_than_the_machines_memory_nor_too_little(percent: int, machine: int) -> None:
    found = plan_limits(config({"sandbox.memory": f"{percent}%"}), facts(memory=machine)).memory
    if machine == 0:
        assert found is None
    else:
        assert found is not None
        assert LEAST_MEMORY <= found <= max(LEAST_MEMORY, machine)
        assert found == LEAST_MEMORY or found * 100 <= machine * percent < (found + 1) * 100


def test_limits_that_were_not_requested_can_be_omitted() -> None:
    limits = Limits(memory=8 << 30, cpus=1.5, pids=2048, nofile=9, nproc=9, by_default=("memory", "pids", "nofile"))
    files = Limits(cpus=1.5, nofile=9, nproc=9, by_default=("nofile",))
    assert without_defaults(limits, ("memory", "pids")) == files
    assert without_defaults(files, ("nofile",)) == Limits(cpus=1.5)
    asked = Limits(memory=8 << 30, pids=2048, by_default=("pids",))
    assert without_defaults(asked, ("memory", "pids")) == Limits(memory=8 << 30)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("memory", "lots"),
        ("memory", "1k"),
        ("cpus", 0.0),
        ("cpus", -1.0),
        ("cpus", float("nan")),
        ("cpus", float("inf")),
        ("cpus", 0.001),
        ("pids", -1),
        ("pids", 7),
    ],
)
def test_a_limit_that_the_engine_would_treat_as_none_is_refused(key: str, value: Any) -> None:
    with pytest.raises(InvalidValue) as caught:
        plan_limits(config({f"sandbox.{key}": value}), facts())
    assert caught.value.field == f"sandbox.{key}"
    assert "config.toml" in caught.value.origin


def test_shared_memory_is_large_enough_for_a_browser() -> None:
    assert plan_shm(config()) == 1 << 30
    assert plan_shm(config({"sandbox.shm": "64m"})) == 64 << 20
    with pytest.raises(InvalidValue, match=r"sandbox\.shm"):
        plan_shm(config({"sandbox.shm": "much"}))
