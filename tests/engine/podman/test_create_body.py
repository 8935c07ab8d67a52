"""Golden requests: a change in podbot's requests to an engine is a change in a file under ``golden/``."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import tarfile
from typing import Any

import pytest

from podbot.config.published import Published
from podbot.container_spec import ContainerSpec, Limits, Mount, Security
from podbot.engine.podman.create_body import create_body, unmet, workdir_archive
from podbot.engine.port import Unmet

GOLDEN = os.path.join(os.path.dirname(__file__), "golden")
SECCOMP = "/home/ann/.local/state/podbot/seccomp/0a1b.json"
BASE = ContainerSpec(
    name="podbot-proj-0a1b2c",
    image="localhost/podbot:latest",
    image_origin="default",
    labels={"io.podbot.managed": "true"},
    mounts=(Mount("/home/ann/src/proj", "/workspace"),),
    security=Security(
        no_new_privileges=True, devices=("/dev/fuse",), dropped=("MKNOD",), selinux_disable=True, seccomp=SECCOMP
    ),
)
CASES: dict[str, ContainerSpec] = {
    "hardened": BASE,
    "minimal": dataclasses.replace(
        BASE,
        security=Security(devices=("/dev/fuse",), capabilities=("SYS_ADMIN",), selinux_disable=True, seccomp=SECCOMP),
    ),
    "privileged": dataclasses.replace(BASE, security=Security(privileged=True)),
    "sealed": dataclasses.replace(
        BASE,
        security=Security(
            no_new_privileges=True,
            dropped=("ALL",),
            seccomp=SECCOMP,
            read_only_root=True,
            tmpfs=("/tmp",),
            user="65534:65534",
            keep_id=True,
        ),
    ),
    "own-ids": dataclasses.replace(
        BASE,
        mounts=(*BASE.mounts, Mount("/srv/reference", "/reference", read_only=True)),
        security=Security(own_ids=True),
        workdir="/clones/shop",
        make_workdir=True,
    ),
    "limits": dataclasses.replace(BASE, limits=Limits(memory=512 << 20, cpus=1.5, pids=128, nofile=4096, nproc=9)),
    "everything": dataclasses.replace(
        BASE,
        mounts=(*BASE.mounts, Mount("/srv/reference", "/reference", read_only=True)),
        files=(Mount("/home/ann/.local/state/podbot/gitconfig/0a1b", "/run/podbot/gitconfig", read_only=True),),
        link=("/workspace", "/home/ann/src/proj"),
        guest="/run/podbot/guest",
        workdir="/workspace",
        network="my-net",
        env={"TZ": "UTC"},
        runtime="crun",
        limits=Limits(cpus=0.29),
    ),
    "guest": dataclasses.replace(BASE, link=None, guest="/run/podbot/guest"),
    "clone": dataclasses.replace(BASE, mounts=(), workdir="/clones/shop", make_workdir=True),
    "ports": dataclasses.replace(
        BASE, network="default", ports=(Published("127.0.0.1", 3000, 3000), Published("0.0.0.0", 8080, 80))
    ),
    "unlimited": dataclasses.replace(BASE, limits=Limits(pids=0)),
}


@pytest.mark.parametrize("name", CASES)
def test_golden_requests(name: str) -> None:
    with open(os.path.join(GOLDEN, f"{name}.json"), encoding="utf-8") as file:
        assert create_body(CASES[name]) == json.load(file)


def test_a_container_that_is_not_kept_is_removed_by_the_engine_and_its_main_process_waits_for_nobody() -> None:
    before, body = create_body(CASES["guest"]), create_body(dataclasses.replace(CASES["guest"], auto_remove=True))
    assert ("remove" in before, body["remove"]) == (False, True)
    assert ("serve " in before["command"][1], "serve-or-end" in before["command"][1]) == (True, False)
    assert "serve-or-end" in body["command"][1]


@pytest.mark.parametrize(
    ("network", "expected"), [("default", {}), ("none", {"nsmode": "none"}), ("host", {"nsmode": "host"})]
)
def test_networks_without_a_name(network: str, expected: dict[str, str]) -> None:
    body = create_body(dataclasses.replace(BASE, network=network))
    assert body.get("netns", {}) == expected
    assert "networks" not in body


def test_slirp4netns_does_not_open_the_hosts_loopback() -> None:
    """Whatever a containers.conf says; other networks do not accept this option."""
    assert create_body(dataclasses.replace(BASE, network="default"))["network_options"] == {
        "slirp4netns": ["allow_host_loopback=false"]
    }
    assert all("network_options" not in create_body(dataclasses.replace(BASE, network=name)) for name in ("none", "n"))


def test_only_the_privileged_profile_is_privileged() -> None:
    assert [name for name in CASES if create_body(CASES[name])["privileged"]] == ["privileged"]
    assert [name for name in CASES if create_body(CASES[name])["cap_add"]] == ["minimal"]


# --- what the engine did not do; the answers are cut from Podman 4.3.1's inspect ---


def inspected(**host: Any) -> dict[str, Any]:
    plain = {"SecurityOpt": ["no-new-privileges"], "Memory": 0, "CpuQuota": 0, "PidsLimit": 2048}
    return {"OCIRuntime": "runc", "EffectiveCaps": ["CAP_CHOWN", "CAP_SETFCAP"], "HostConfig": plain | host}


def test_everything_is_enforced() -> None:
    spec = dataclasses.replace(CASES["limits"], runtime="/usr/bin/runc")
    files = [{"Name": "RLIMIT_NOFILE", "Soft": 4096, "Hard": 4096}, {"Name": "RLIMIT_NPROC", "Soft": 9, "Hard": 9}]
    assert unmet(spec, inspected(Memory=512 << 20, CpuQuota=150_000, PidsLimit=128, Ulimits=files)) == ()
    assert unmet(CASES["privileged"], inspected(SecurityOpt=[])) == ()


def test_a_runtime_that_the_engine_ignored() -> None:
    assert unmet(dataclasses.replace(BASE, runtime="runsc"), inspected()) == (
        Unmet("sandbox.runtime", "runsc", "runc"),
    )


def test_the_size_of_shared_memory() -> None:
    """Issue 29.21: the engine's own is 64 MB."""
    spec = dataclasses.replace(BASE, shm=1 << 30)
    assert create_body(spec)["shm_size"] == 1 << 30
    assert "shm_size" not in create_body(BASE)
    assert unmet(spec, inspected(ShmSize=1 << 30)) == ()
    assert unmet(spec, inspected(ShmSize=65536000)) == (Unmet("sandbox.shm", str(1 << 30), "65536000"),)


def test_confinement_and_limits_that_the_engine_dropped() -> None:
    spec = dataclasses.replace(CASES["limits"], limits=Limits(memory=1, cpus=1.0, pids=2, nofile=3))
    files = [{"Name": "RLIMIT_NPROC", "Soft": 3, "Hard": 3}, {"Name": "RLIMIT_NOFILE", "Soft": 3, "Hard": 1048576}]
    assert unmet(spec, inspected(SecurityOpt=None, Ulimits=files)) == (
        Unmet("sandbox.profile", "no-new-privileges", "none"),
        Unmet("sandbox.memory", "1", "0"),
        Unmet("sandbox.cpus", "1", "0"),
        Unmet("sandbox.pids", "2", "2048"),
        Unmet("sandbox.nofile", "3", "1048576"),
    )


def test_a_capability_that_was_not_dropped() -> None:
    found = inspected() | {"EffectiveCaps": ["CAP_CHOWN", "CAP_MKNOD"]}
    assert unmet(BASE, found) == (Unmet("sandbox.profile", "no CAP_MKNOD", "CAP_MKNOD"),)
    assert unmet(CASES["privileged"], found) == ()


def test_a_sealed_sandbox_is_read_back() -> None:
    caps = {"EffectiveCaps": None, "BoundingCaps": None}
    found = inspected(ReadonlyRootfs=True) | caps | {"Config": {"User": "65534:65534"}}
    assert unmet(CASES["sealed"], found) == ()
    kept = {
        "EffectiveCaps": None,
        "BoundingCaps": ["CAP_KILL", "CAP_CHOWN"],
    }  # as Podman 4.3.1 reports without cap_drop
    found = inspected() | kept | {"Config": {"User": ""}}
    assert unmet(CASES["sealed"], found) == (
        Unmet("sandbox.profile", "no CAP_CHOWN, CAP_KILL", "CAP_CHOWN, CAP_KILL"),
        Unmet("sandbox.profile", "a read-only root", "one that can be written"),
        Unmet("sandbox.profile", "user 65534:65534", ""),
    )


def test_user_ids_of_its_own_are_read_back() -> None:
    spec = dataclasses.replace(BASE, security=Security(own_ids=True))
    mapped = {"UidMap": ["0:200000:65536"], "GidMap": ["0:200000:65536"]}
    assert unmet(spec, inspected(IDMappings=mapped)) == ()
    for maps in (None, {}, {"UidMap": ["0:0:1", "1:200000:65535"]}):
        assert unmet(spec, inspected(IDMappings=maps)) == (Unmet("sandbox.own_user_ids", "true", "the host's"),)


def test_only_with_user_ids_of_its_own_the_working_directory_is_unpacked() -> None:
    assert [name for name, spec in CASES.items() if workdir_archive(spec) is not None] == ["own-ids"]
    archive = workdir_archive(CASES["own-ids"]) or b""
    with tarfile.open(fileobj=io.BytesIO(archive)) as found:
        assert [(entry.name, entry.type, entry.mode, entry.uid) for entry in found] == [
            ("clones/shop", tarfile.DIRTYPE, 0o755, 0)
        ]


BINDINGS = {
    "3000/tcp": [{"HostIp": "127.0.0.1", "HostPort": "3000"}],
    "80/tcp": [{"HostIp": "", "HostPort": "8080"}],
}


def test_published_ports_are_read_back() -> None:
    spec = CASES["ports"]
    assert unmet(spec, inspected(PortBindings=BINDINGS)) == ()
    assert unmet(BASE, inspected(PortBindings={})) == ()
    wanted = "0.0.0.0:8080:80/tcp, 127.0.0.1:3000:3000/tcp"
    assert unmet(spec, inspected(PortBindings=None)) == (Unmet("sandbox.publish", wanted, "none"),)


@pytest.mark.parametrize(
    ("inside", "binding", "got"),
    [
        ("3000/tcp", {"HostIp": "", "HostPort": "3000"}, "0.0.0.0:3000:3000/tcp"),
        ("3000/tcp", {"HostIp": "127.0.0.1", "HostPort": "3001"}, "127.0.0.1:3001:3000/tcp"),
        ("3000/udp", {"HostIp": "127.0.0.1", "HostPort": "3000"}, "127.0.0.1:3000:3000/udp"),
        ("22/tcp", {"HostIp": "127.0.0.1", "HostPort": "3000"}, "127.0.0.1:3000:22/tcp"),
    ],
)
def test_a_port_that_was_published_otherwise(inside: str, binding: dict[str, str], got: str) -> None:
    """Above all, one that was to be on loopback is never on all addresses unnoticed."""
    spec = dataclasses.replace(CASES["ports"], ports=(Published("127.0.0.1", 3000, 3000),))
    found = inspected(PortBindings={inside: [binding]})
    assert unmet(spec, found) == (Unmet("sandbox.publish", "127.0.0.1:3000:3000/tcp", got),)


def test_a_port_that_nobody_asked_for() -> None:
    found = inspected(PortBindings={"22/tcp": [{"HostIp": "", "HostPort": "22"}]})
    assert unmet(BASE, found) == (Unmet("sandbox.publish", "none", "0.0.0.0:22:22/tcp"),)


def test_an_engine_of_root_maps_no_user() -> None:
    security = dataclasses.replace(CASES["sealed"].security, keep_id=False)
    assert "userns" not in create_body(dataclasses.replace(BASE, security=security))


def test_any_process_limit_is_accepted_when_none_was_requested() -> None:
    assert unmet(CASES["unlimited"], inspected(PidsLimit=0)) == ()


def test_an_answer_without_a_host_part_enforces_nothing() -> None:
    assert {entry.key for entry in unmet(CASES["limits"], {})} == {
        "sandbox.profile",
        "sandbox.memory",
        "sandbox.cpus",
        "sandbox.pids",
        "sandbox.nofile",
    }
