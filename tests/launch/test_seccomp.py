"""The seccomp profile, evaluated by a small interpreter: which actions match a call's arguments on a machine."""

from __future__ import annotations

import errno
import json
import os
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.launch import seccomp
from podbot.launch.seccomp import REMOVED, derived, profile, profile_path

PROFILE = json.loads(profile())
INTS = st.integers(0, 2**64 - 1)
LOW = 2**32 - 1
NEWCGROUP = 0x02000000


def answers(name: str, *arguments: int, arch: str = "amd64", caps: frozenset[str] = frozenset()) -> set[int]:
    """0 for allowed, else the error's number, for every matching entry; without a match, the default's result."""
    found = set()
    for entry in PROFILE["syscalls"]:
        if (
            name in entry["names"]
            and selected(entry, arch, caps)
            and all(holds(a, arguments) for a in entry["args"] or ())
        ):
            found.add(0 if entry["action"] == "SCMP_ACT_ALLOW" else entry["errnoRet"])
    return found or {PROFILE["defaultErrnoRet"]}


def selected(entry: dict[str, Any], arch: str, caps: frozenset[str]) -> bool:
    includes, excludes = entry["includes"], entry["excludes"]
    return (
        arch in includes.get("arches", [arch])
        and arch not in excludes.get("arches", [])
        and caps >= set(includes.get("caps", []))
        and not caps & set(excludes.get("caps", []))
    )


def holds(argument: dict[str, Any], arguments: tuple[int, ...]) -> bool:
    assert argument["op"] == "SCMP_CMP_MASKED_EQ"
    return bool(arguments[argument["index"]] & argument["value"] == argument["valueTwo"])


@pytest.mark.parametrize("name", sorted(REMOVED))
@pytest.mark.parametrize("caps", [frozenset(), frozenset({"CAP_SYS_ADMIN"})])
def test_removed_calls_do_not_exist_inside(name: str, caps: frozenset[str]) -> None:
    assert answers(name, caps=caps) == {errno.ENOSYS}


@given(flags=INTS)
def test_a_cgroup_namespace_is_refused_and_any_other_allowed(flags: int) -> None:
    expected = {errno.EPERM} if flags & NEWCGROUP else {0}
    assert answers("unshare", flags) == answers("clone", flags, 0) == expected
    assert answers("clone", 0, flags, arch="s390x") == expected


@given(command=st.one_of(INTS, st.integers(0, 1100), st.integers(0, 1100).map(lambda low: low | 1 << 32)))
def test_every_known_fcntl_command_except_leases(command: int) -> None:
    low = command & LOW
    expected = {0} if low < 1024 or 1024 < low < 1040 else {errno.EINVAL if low == 1024 else errno.ENOSYS}
    assert answers("fcntl", 3, command) == answers("fcntl64", 3, command) == expected


@given(
    family=st.one_of(INTS, st.integers(0, 64), st.integers(0, 64).map(lambda low: low | 1 << 40)),
    protocol=st.one_of(INTS, st.integers(0, 64), st.integers(0, 64).map(lambda low: low | 1 << 40)),
)
def test_sockets_of_four_families_by_the_bits_that_the_kernel_reads(family: int, protocol: int) -> None:
    got = answers("socket", family, 1, protocol)
    match family & LOW, protocol & LOW:
        case 1 | 2 | 10, _:
            assert got == {0}
        case 16, 9:
            assert got == {errno.EINVAL}
        case 16, known if known < 32:
            assert got == {0}
        case 17 | 38 | 40, _:
            assert got == {errno.EAFNOSUPPORT}
        case _:
            assert got == {errno.ENOSYS}


def test_the_rest_is_the_engines_default_profile() -> None:
    with open(os.path.join(os.path.dirname(seccomp.__file__), "default.json"), encoding="utf-8") as file:
        default = json.load(file)
    changed = REMOVED | {"unshare", "clone", "fcntl", "fcntl64", "socket"}
    kept = [{**entry, "names": [n for n in entry["names"] if n not in changed]} for entry in default["syscalls"]]
    ours = [entry for entry in PROFILE["syscalls"] if not set(entry["names"]) & changed]
    assert ours == [entry for entry in kept if entry["names"]]
    assert {key: PROFILE[key] for key in ("defaultAction", "defaultErrnoRet", "defaultErrno")} == {
        "defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38, "defaultErrno": "ENOSYS",
    }  # fmt: skip
    assert changed <= {name for entry in default["syscalls"] for name in entry["names"]} | {"add_key", "request_key"}


def test_no_other_architecture_than_the_kernels_own() -> None:
    assert {entry["architecture"] for entry in PROFILE["archMap"]} >= {"SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"}
    assert not [entry for entry in PROFILE["archMap"] if entry["subArchitectures"]]


def test_a_newer_default_keeps_podbots_differences() -> None:
    newer = {"defaultAction": "SCMP_ACT_ERRNO", "archMap": [], "syscalls": [
        {"names": ["keyctl", "read"], "action": "SCMP_ACT_ALLOW", "args": None, "includes": {}, "excludes": {}},
        {"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": None, "includes": {}, "excludes": {}},
    ]}  # fmt: skip
    entries = derived(newer)["syscalls"]
    assert entries[0]["names"] == ["read"]
    assert all(entry["args"] for entry in entries if "socket" in entry["names"])


def test_its_file_is_named_by_its_content() -> None:
    path = profile_path("/home/ann/.local/state/podbot")
    assert os.path.dirname(path) == "/home/ann/.local/state/podbot/seccomp"
    assert path == profile_path("/home/ann/.local/state/podbot")
