"""What is read from Podman's descriptions of containers."""

from __future__ import annotations

from typing import Any

import pytest

from podbot.engine.podman.rest_answers import MISSHAPEN, confinement, image, inspected

FOUND: dict[str, Any] = {
    "OCIRuntime": "runc",
    "EffectiveCaps": ["CAP_KILL", "CAP_CHOWN"],
    "BoundingCaps": None,
    "Config": {"User": "1000:1000"},
    "HostConfig": {
        "Privileged": False,
        "SecurityOpt": ["no-new-privileges"],
        "Devices": [{"PathOnHost": "/dev/fuse", "PathInContainer": "/dev/fuse"}],
        "ReadonlyRootfs": True,
        "NetworkMode": "none",
        "Memory": 1 << 30,
        "CpuQuota": 150_000,
        "CpuPeriod": 100_000,
        "PidsLimit": 512,
        "Ulimits": [{"Name": "RLIMIT_NPROC", "Hard": 1}, {"Name": "RLIMIT_NOFILE", "Hard": 4096, "Soft": 1024}],
    },
}


def test_confinement() -> None:
    found = confinement(FOUND)
    assert found.capabilities == ("CAP_CHOWN", "CAP_KILL")
    assert (found.bounding, found.devices, found.no_new_privileges) == ((), ("/dev/fuse",), True)
    assert (found.user, found.network, found.runtime, found.read_only_root) == ("1000:1000", "none", "runc", True)
    assert (found.memory_limit, found.cpus_limit, found.pids_limit, found.nofile_limit) == (1 << 30, 1.5, 512, 4096)


@pytest.mark.parametrize(("config", "user"), [({"User": "node"}, "node"), ({"User": ""}, ""), ({}, ""), (None, "")])
def test_the_user_of_an_image(config: dict[str, str] | None, user: str) -> None:
    assert image({"Id": "f0", "Config": config}).user == user


@pytest.mark.parametrize(
    ("env", "home"), [(["PATH=/bin", "HOME=/home/x=y"], "/home/x=y"), (["HOMES=/x"], ""), ([], ""), (None, "")]
)
def test_the_home_that_an_image_sets(env: list[str] | None, home: str) -> None:
    assert image({"Id": "f0", "Config": {"Env": env}}).home == home


def test_the_path_of_a_containers_resolv_conf() -> None:
    found = {"Id": "0" * 64, "Name": "/c", "State": {"Status": "running"}, "Created": "2026-08-01T12:00:00Z"}
    assert inspected(found | {"Config": {}, "ResolvConfPath": "/run/c/resolv.conf"}).resolv_conf == "/run/c/resolv.conf"
    assert not inspected(found | {"Config": {}}).resolv_conf


def test_what_is_zero_negative_or_missing_is_no_limit() -> None:
    found = confinement({"Config": {}, "HostConfig": {"Memory": 0, "PidsLimit": -1, "CpuQuota": -1, "Ulimits": None}})
    assert (found.memory_limit, found.cpus_limit, found.pids_limit, found.nofile_limit) == (None, None, None, None)
    assert (found.no_new_privileges, found.devices) == (False, ())


@pytest.mark.parametrize("found", [{}, [], {"HostConfig": {"Devices": [{}]}, "Config": {}}, {"HostConfig": None}])
def test_other_shapes_are_reported_as_such(found: Any) -> None:
    with pytest.raises(MISSHAPEN):
        confinement(found)
