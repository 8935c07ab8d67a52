"""``scripts/engine-packages`` on a machine that is a temporary directory: its programs are one-line scripts."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "engine-packages"
ALWAYS = ("fuse-overlayfs", "newuidmap", "netavark", "aardvark-dns", "catatonit", "mmdebstrap", "git")
HELPERS_4 = ("slirp4netns", "iptables")
HELPERS_5 = ("pasta", "nft")


@dataclass
class Machine:
    """A machine with apt: what was asked of it is in ``asked``."""

    root: Path

    def program(self, name: str, *lines: str) -> None:
        path = self.root / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(["#!/bin/sh", *lines, ""]))
        path.chmod(0o755)

    def file(self, name: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    def podman(self, version: str) -> None:
        self.program("podman", f"echo podman version {version}")

    def candidate(self, version: str, *, after_update: bool = False) -> None:
        """What apt would install; ``after_update``: it knows only then."""
        before = f'[ -e "{self.root}/updated" ] || exit 0' if after_update else ":"
        self.program("apt-cache", before, f"echo podman:; echo '  Installed: (none)'; echo '  Candidate: {version}'")

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        environ = {"PATH": str(self.root / "bin"), "PODBOT_TEST_ROOT": str(self.root)}
        return subprocess.run(
            [shutil.which("bash") or "bash", str(SCRIPT), *words],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
        )

    @property
    def installed(self) -> list[str]:
        """Packages of the last `apt-get install`."""
        asked = self.root / "asked"
        lines = [line.split() for line in asked.read_text().splitlines()] if asked.exists() else []
        return [word for line in lines if line[0] == "install" for word in line[1:] if not word.startswith("-")]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Root on cgroup v2, with every program but podman, a runtime and the helpers of one version."""
    made = Machine(tmp_path)
    for name in ALWAYS:
        made.program(name)
    made.program("id", "echo 0")
    made.program("apt-get", f'echo "$@" >> "{tmp_path}/asked"', f'[ "$1" != update ] || : > "{tmp_path}/updated"')
    for tool in ("sed", "env", "bash"):
        os.symlink(shutil.which(tool) or tool, tmp_path / "bin" / tool)
    made.file("sys/fs/cgroup/cgroup.controllers")
    made.program("crun")
    return made


@pytest.mark.parametrize(
    ("version", "packages"),
    [
        ("4.3.1", ["slirp4netns", "iptables"]),
        ("4.9.3", ["slirp4netns", "iptables"]),
        ("5.4.2", ["passt", "nftables"]),
        ("10.0.0-dev", ["passt", "nftables"]),
    ],
)
def test_the_podman_that_is_there_decides_over_its_helpers(machine: Machine, version: str, packages: list[str]) -> None:
    machine.podman(version)
    machine.candidate("5.4.2+ds1-2+b2" if version.startswith("4") else "4.3.1+ds1-8")  # ignored: one is installed
    assert machine.run().returncode == 0
    assert machine.installed == packages


@pytest.mark.parametrize("after_update", [False, True])
@pytest.mark.parametrize(
    ("candidate", "packages"),
    [
        ("5.4.2+ds1-2+b2", ["podman", "passt", "nftables"]),
        ("4.3.1+ds1-8+deb12u1+b3", ["podman", "slirp4netns", "iptables"]),
        ("(none)", ["podman"]),
    ],
)
def test_the_podman_that_is_about_to_be_installed_decides(
    machine: Machine, candidate: str, packages: list[str], after_update: bool
) -> None:
    machine.candidate(candidate, after_update=after_update)
    assert machine.run().returncode == 0
    assert machine.installed == packages


@pytest.mark.parametrize(("version", "helpers"), [("4.3.1", HELPERS_4), ("5.4.2", HELPERS_5)])
def test_a_ready_machine_is_left_alone(machine: Machine, version: str, helpers: tuple[str, ...]) -> None:
    machine.podman(version)
    for name in helpers:
        machine.program(name)
    done = machine.run()
    assert (done.returncode, done.stderr, (machine.root / "asked").exists()) == (0, "", False)


def test_helpers_are_found_where_podman_looks(machine: Machine) -> None:
    machine.podman("5.4.2")
    machine.program("pasta")
    sbin = machine.root / "usr/sbin"
    sbin.mkdir(parents=True)
    shutil.copy(machine.root / "bin/pasta", sbin / "nft")
    assert machine.run().returncode == 0
    assert machine.installed == []


@pytest.mark.parametrize(("v2", "packages"), [(True, ["crun"]), (False, ["runc"])])
def test_the_runtime_is_the_one_that_the_cgroups_allow(machine: Machine, v2: bool, packages: list[str]) -> None:
    machine.podman("5.4.2")
    for name in HELPERS_5:
        machine.program(name)
    if v2:
        (machine.root / "bin/crun").unlink()
    else:
        (machine.root / "sys/fs/cgroup/cgroup.controllers").unlink()
    assert machine.run().returncode == 0
    assert machine.installed == packages


@pytest.mark.parametrize(
    ("uid", "systemd", "there", "packages"),
    [
        ("1000", True, False, ["dbus-user-session"]),
        ("1000", True, True, []),
        ("1000", False, False, []),
        ("0", True, False, []),
    ],
)
def test_an_ordinary_user_gets_a_bus_for_limits(
    machine: Machine, uid: str, systemd: bool, there: bool, packages: list[str]
) -> None:
    machine.podman("5.4.2")
    for name in HELPERS_5:
        machine.program(name)
    machine.program("id", f"echo {uid}")
    machine.program("sudo", '[ "$1" != -n ] || shift', '[ "$1" = true ] || exec "$@"')
    if systemd:
        (machine.root / "run/systemd/system").mkdir(parents=True)
    if there:
        machine.file("usr/lib/systemd/user/dbus.socket")
    done = machine.run()
    assert done.returncode == 0, done.stderr
    assert machine.installed == packages
    assert ("Log out and in again" in done.stderr) is bool(packages)  # there is no systemctl


def test_the_bus_is_started_for_the_session_that_is_open(machine: Machine) -> None:
    machine.podman("5.4.2")
    for name in HELPERS_5:
        machine.program(name)
    machine.program("id", "echo 1000")
    machine.program("sudo", '[ "$1" != -n ] || shift', '[ "$1" = true ] || exec "$@"')
    machine.program("systemctl", f'echo "$@" >> "{machine.root}/systemctl-asked"')
    (machine.root / "run/systemd/system").mkdir(parents=True)
    assert "Log out" not in machine.run().stderr
    assert (machine.root / "systemctl-asked").read_text() == "--user daemon-reload\n--user start dbus.socket\n"


def test_who_may_not_install_is_told_what_to_type(machine: Machine) -> None:
    machine.candidate("5.4.2+ds1-2+b2")
    machine.program("id", "echo 1000")
    done = machine.run("systemd:systemd-analyze")
    assert done.returncode == 1
    assert done.stderr.splitlines()[1].strip() == (
        "sudo apt-get update && sudo apt-get install -y --no-install-recommends podman passt nftables systemd"
    )
    assert machine.installed == []


def test_without_apt_the_page_with_other_systems_is_named(machine: Machine) -> None:
    (machine.root / "bin/apt-get").unlink()
    done = machine.run()
    assert done.returncode == 1
    assert "docs/how-to/install.md" in done.stderr
    machine.podman("5.4.2")
    assert machine.run().returncode == 0
