"""Detection reads files; here they are below a directory of the test's own."""

from __future__ import annotations

import contextlib
import os
import pwd
import socket
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot import machine as podbot_machine
from podbot.engine.podman.private.podman_facts import PROGRAMS, detect
from podbot.machine import KernelKeys


def put(root: Path, path: str, text: str = "", mode: int = 0o644) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)
    target.chmod(mode)


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["sys/fs/cgroup/cgroup.controllers"], "v2"),
        (["sys/fs/cgroup/unified/cgroup.controllers", "sys/fs/cgroup/memory/tasks"], "hybrid"),
        (["sys/fs/cgroup/memory/tasks"], "v1"),
    ],
)
def test_cgroup_layouts(tmp_path: Path, files: list[str], expected: str) -> None:
    for name in files:
        put(tmp_path, name)
    assert detect({}, str(tmp_path)).cgroups == expected


@pytest.mark.parametrize(("mask", "expected"), [("000001ffffffffff", True), ("000001fffeffffff", False), ("0", False)])
def test_sys_resource_is_bit_24_of_the_effective_set(tmp_path: Path, mask: str, expected: bool) -> None:
    put(tmp_path, "proc/self/status", f"Name:\tpython\nCapPrm:\tffffffffffffffff\nCapEff:\t{mask}\n")
    assert detect({}, str(tmp_path)).cap_sys_resource is expected


def test_an_empty_machine_is_read_without_errors(tmp_path: Path) -> None:
    facts = detect({}, str(tmp_path))
    assert (facts.systemd, facts.dev_fuse, facts.dev_net_tun, facts.subids) == (False, False, False, False)
    assert (facts.programs, facts.distribution, facts.codename, facts.container, facts.init) == ({}, (), "", "", "")


KEYS = """\
    0:    11 10/10 5/1000000 188/25000000
 1000:   181 181/181 180/200 5400/20000
65534:     1 1/1 1/200
"""


@pytest.mark.parametrize(
    ("uid", "keys"),
    [
        (1000, KernelKeys(180, 200, 5400, 20000)),
        (0, KernelKeys(5, 1000000, 188, 25000000)),
        (100, None),
        (65534, None),
    ],
)
def test_the_kernel_s_keys_of_this_user(tmp_path: Path, uid: int, keys: KernelKeys | None) -> None:
    put(tmp_path, "proc/key-users", KEYS)
    assert detect({}, str(tmp_path), uid).keys == keys


@given(st.text(max_size=200))
def test_any_list_of_keys_is_read(text: str) -> None:
    with tempfile.TemporaryDirectory() as root:
        put(Path(root), "proc/key-users", f"{text}\n 1000: 1 1/1 2/3 4/5\n")
        found = detect({}, root, 1000).keys
        assert found == KernelKeys(2, 3, 4, 5) or "1000:" in text


def test_process_ceiling_is_the_kernels_where_that_is_lower(tmp_path: Path) -> None:
    put(tmp_path, "proc/sys/kernel/pid_max", "123\n")
    assert detect({}, str(tmp_path)).nproc == 123


def test_a_derivative_is_recognised_by_its_parents_suite(tmp_path: Path) -> None:
    put(
        tmp_path,
        "etc/os-release",
        'ID=linuxmint\nID_LIKE="ubuntu debian"\nVERSION_CODENAME=wilma\nUBUNTU_CODENAME=noble\n# note\n',
    )
    facts = detect({}, str(tmp_path))
    assert (facts.distribution, facts.codename) == (("linuxmint", "ubuntu", "debian"), "noble")


def test_systemd_devices_and_ranges_are_detected(tmp_path: Path) -> None:
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    put(tmp_path, "dev/fuse", mode=0o666)
    put(tmp_path, "dev/net/tun", mode=0o666)
    for name in ("etc/subuid", "etc/subgid"):
        put(tmp_path, name, f"somebody:1:2\n{os.getuid()}:100000:65536\n")
    facts = detect({"CI": "true"}, str(tmp_path))
    assert (facts.systemd, facts.dev_fuse, facts.dev_net_tun, facts.subids, facts.ci) == (True, True, True, True, True)


def test_a_device_that_exists_and_does_not_open_is_not_usable(short_path: str) -> None:
    """Issue 16.2: its mode allows everything, but opening it fails, as where the kernel has no such driver."""
    tun = Path(short_path, "dev/net/tun")
    tun.parent.mkdir(parents=True)
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as made:  # opening one fails with ENXIO
        made.bind(str(tun))
    tun.chmod(0o666)
    assert detect({}, short_path).dev_net_tun is False


def test_a_containers_conf_that_the_operator_chose_is_known(tmp_path: Path) -> None:
    assert detect({"CONTAINERS_CONF": "/mine.conf"}, str(tmp_path)).conf_chosen is True
    assert detect({}, str(tmp_path)).conf_chosen is False


def test_a_range_in_one_file_only_is_not_a_range(tmp_path: Path) -> None:
    put(tmp_path, "etc/subuid", f"{os.getuid()}:100000:65536\n")
    assert detect({}, str(tmp_path)).subids is False


def test_programs_come_from_path_then_from_the_helper_directories(tmp_path: Path) -> None:
    put(tmp_path, "opt/bin/podman", "#!/bin/sh\n", 0o755)
    put(tmp_path, "usr/bin/podman", "#!/bin/sh\n", 0o755)
    put(tmp_path, "usr/lib/podman/netavark", "#!/bin/sh\n", 0o755)
    put(tmp_path, "usr/bin/runc", "not executable", 0o644)
    found = detect({"PATH": "/opt/bin:/usr/bin"}, str(tmp_path)).programs
    assert found["podman"] == str(tmp_path / "opt/bin/podman")
    assert found["netavark"] == str(tmp_path / "usr/lib/podman/netavark")
    assert "runc" not in found


def test_no_program_is_found_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "podman", "#!/bin/sh\n", 0o755)
    monkeypatch.chdir(tmp_path)
    assert podbot_machine.find_programs({"PATH": ":.:relative"}, PROGRAMS) == {}


@pytest.mark.parametrize(
    ("path", "kind"), [("run/.containerenv", "podman"), (".dockerenv", "docker"), ("run/systemd/container", "lxc")]
)
def test_the_container_that_podbot_runs_in(tmp_path: Path, path: str, kind: str) -> None:
    put(tmp_path, path, "lxc\n" if "systemd" in path else "")
    assert detect({}, str(tmp_path)).container == kind


@pytest.mark.parametrize(
    ("release", "kernel"), [("6.1.0-13-amd64", (6, 1)), ("5.13", (5, 13)), ("odd", (0, 0)), ("5.x", (0, 0))]
)
def test_kernel_releases(release: str, kernel: tuple[int, int]) -> None:
    assert podbot_machine.kernel_release(release) == kernel


UID = os.getuid()
NAME = pwd.getpwuid(UID).pw_name
SLICE = f"sys/fs/cgroup/user.slice/user-{UID}.slice/user@{UID}.service/cgroup.controllers"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("cpuset cpu io memory pids\n", {"cpuset", "cpu", "io", "memory", "pids"}), ("", None), (None, None)],
)
def test_controllers_that_systemd_delegates(tmp_path: Path, text: str | None, expected: set[str] | None) -> None:
    if text is not None:
        put(tmp_path, SLICE, text)
    assert detect({}, str(tmp_path)).delegated == expected


@pytest.mark.parametrize(
    ("environ", "there", "expected"),
    [
        ({}, f"run/user/{UID}/bus", True),
        ({}, "", False),
        ({"XDG_RUNTIME_DIR": "/run/mine"}, "run/mine/bus", True),
        ({"XDG_RUNTIME_DIR": "/run/mine"}, f"run/user/{UID}/bus", False),
        ({"DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/b,guid=1"}, "run/b", True),
        ({"DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/b"}, f"run/user/{UID}/bus", False),  # as Podman decides
        ({"DBUS_SESSION_BUS_ADDRESS": "unix:abstract=/tmp/x"}, "", True),
    ],
)
def test_the_users_bus(tmp_path: Path, environ: dict[str, str], there: str, expected: bool) -> None:
    if there:
        put(tmp_path, there)
    assert detect(environ, str(tmp_path)).user_bus is expected


def test_a_bus_that_systemd_would_start_and_lingering(tmp_path: Path) -> None:
    before = detect({}, str(tmp_path))
    assert (before.bus_unit, before.linger, before.user) == (False, False, NAME)
    put(tmp_path, "usr/lib/systemd/user/dbus.socket")
    put(tmp_path, f"var/lib/systemd/linger/{NAME}")
    after = detect({}, str(tmp_path))
    assert (after.bus_unit, after.linger) == (True, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("subid: sss\n", True), ("passwd: files\nsubid:files\n", False), ("# subid: sss\n", False), ("subid:\n", False)],
)
def test_ranges_assigned_by_a_directory_service(tmp_path: Path, text: str, expected: bool) -> None:
    put(tmp_path, "etc/nsswitch.conf", text)
    assert detect({}, str(tmp_path)).subids is expected


def test_an_empty_name_is_nobodys_range(tmp_path: Path) -> None:
    nameless = 2_000_000_000
    for name in ("etc/subuid", "etc/subgid"):
        put(tmp_path, name, "\n:100000:65536\n")
    found = detect({}, str(tmp_path), nameless)
    assert (found.uid, found.user, found.subids) == (nameless, "", False)


@pytest.mark.parametrize(
    ("users", "groups", "expected"),
    [
        ("", "", 100000),
        ("ada:100000:65536\n", "ada:100000:65536\n", 165536),
        ("ada:100000:65536\n# note\n\nbob:300000:10\n", "ada:231072:65536\n", 300010),
        ("ada:1:2\n", "", 100000),
        ("ada:600000000:65536\n", "", None),
        ("ada:600034464:1\n", "", 600034465),
        ("ada:600034465:1\n", "", None),
        ("ada:100000:65536\ncontainers:1000000000:67108864\n", "", 165536),
        ("ada:100000\n", "", None),
        ("ada:x:65536\n", "", None),
        (None, "", None),
        ("", None, None),
    ],
)
def test_the_first_ids_that_no_user_has(
    tmp_path: Path, users: str | None, groups: str | None, expected: int | None
) -> None:
    for name, text in (("etc/subuid", users), ("etc/subgid", groups)):
        if text is not None:
            put(tmp_path, name, text)
    assert detect({}, str(tmp_path)).free_subids == expected


@pytest.mark.parametrize(
    ("users", "groups", "expected"),
    [
        ("containers:1:65536\n", "containers:1:65536\n", 65536),
        ("containers:1:10\ncontainers:50:20\nada:1:99\n", " containers:1:40 \n", 30),
        ("containers:1:65536\n", "", 0),
        ("containers:1:x\ncontainers:1\ncontainers:1:2:3\n", "containers:1:5\n", 0),
        ("", None, 0),
    ],
)
def test_the_ids_for_containers_of_root(tmp_path: Path, users: str, groups: str | None, expected: int) -> None:
    put(tmp_path, "etc/subuid", users)
    if groups is not None:
        put(tmp_path, "etc/subgid", groups)
    assert detect({}, str(tmp_path)).container_ids == expected


@given(st.text(alphabet="a:019#\n-x²", max_size=40))
def test_the_ranges_of_any_file_are_read_or_refused(text: str) -> None:
    with tempfile.TemporaryDirectory() as root:
        for name in ("etc/subuid", "etc/subgid"):
            put(Path(root), name, text)
        found = detect({}, root).free_subids
    assert found is None or 100000 <= found <= 600034465


def test_the_operators_network_settings(tmp_path: Path) -> None:
    put(tmp_path, "usr/share/containers/containers.conf", '[network]\nfirewall_driver = "nftables"\n')
    put(tmp_path, "etc/containers/containers.conf", '[network]\ndefault_rootless_network_cmd = "slirp4netns"\n')
    put(tmp_path, "etc/containers/containers.conf.d/b.conf", "not toml")
    put(tmp_path, "etc/containers/containers.conf.d/deep.conf", "a = " + "[" * 100_000)
    assert detect({}, str(tmp_path)).network_conf == {
        "firewall_driver": "nftables",
        "default_rootless_network_cmd": "slirp4netns",
    }
    put(tmp_path, "only.conf", "network = 1\n")
    only = {"CONTAINERS_CONF": str(tmp_path / "only.conf")}
    assert detect(only, str(tmp_path)).network_conf == {}
    put(tmp_path, "over.conf", '[network]\nfirewall_driver = "none"\n')
    over = {**only, "CONTAINERS_CONF_OVERRIDE": str(tmp_path / "over.conf")}
    assert detect(over, str(tmp_path)).network_conf == {"firewall_driver": "none"}


def test_configuration_is_never_read_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(tmp_path, ".config/containers/containers.conf", '[network]\nfirewall_driver = "none"\n')
    monkeypatch.chdir(tmp_path)
    assert "firewall_driver" not in detect({}, str(tmp_path / "root"), 12345).network_conf
    for name in (
        "CONTAINERS_CONF",
        "CONTAINERS_CONF_OVERRIDE",
    ):  # the engine's service, which runs in /, has none there
        relative = {name: ".config/containers/containers.conf"}
        assert "firewall_driver" not in detect(relative, str(tmp_path / "root"), 12345).network_conf


def test_the_disk_of_a_path_that_does_not_exist_yet(tmp_path: Path) -> None:
    path = str(tmp_path / "not" / "yet")
    found = podbot_machine.disk(path)
    assert found is not None
    assert (found.path, found.device) == (path, os.stat(tmp_path).st_dev)
    assert found.free > 0
    there = os.statvfs(tmp_path)
    assert (found.inodes is None) is (there.f_files == 0), "btrfs has no number of inodes"


def test_the_limits_that_sandboxes_share_with_the_host(tmp_path: Path) -> None:
    assert detect({}, str(tmp_path)).shared == {}
    for name, text in (("kernel/pty/max", "4096\n"), ("user/max_net_namespaces", "junk"), ("kernel/pty/nr", "7\n")):
        (tmp_path / "proc" / "sys" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "proc" / "sys" / name).write_text(text)
    assert detect({}, str(tmp_path)).shared == {"kernel.pty.max": 4096}
