"""Every trap of a machine by name: what Podman needs of it, and what doctor asks of any host."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.diagnosis.host_checks import check_host
from podbot.engine.check import Check, install_command
from podbot.engine.podman.machine_checks import check_machine
from podbot.engine.podman.private.podman_facts import PROGRAMS, PodmanFacts
from podbot.engine.podman.rootless_checks import user_ids_hint
from podbot.machine import PACKAGE_TOOLS

ALL = {name: f"/usr/bin/{name}" for name in (*PROGRAMS, *PACKAGE_TOOLS)}
ROOT = PodmanFacts(programs=ALL, distribution=("debian",), codename="bookworm")
USER = replace(ROOT, uid=1000, user="ada")
VERSION = "podman version 4.3.1"
VERSION_5 = "podman version 5.4.2"
# An ordinary user's Debian 13 with what `scripts/engine-packages` installs there: no runc, slirp4netns or iptables.
DEBIAN_13 = replace(
    USER,
    kernel=(6, 12),
    codename="trixie",
    programs={
        name: path for name, path in ALL.items() if name not in ("runc", "slirp4netns", "iptables", "tini", "dumb-init")
    },
)


def without(*names: str) -> dict[str, str]:
    return {name: path for name, path in ALL.items() if name not in names}


def checks(
    facts: PodmanFacts, version: str = VERSION, *, network: str = "default", token_unit: bool = False
) -> dict[str, Check]:
    found = [*check_machine(facts, version, network=network), *check_host(facts, token_unit=token_unit)]
    return {check.name: check for check in found}


@pytest.mark.parametrize(
    ("facts", "version"),
    [
        (ROOT, VERSION),
        (USER, VERSION),
        (DEBIAN_13, VERSION_5),
        (replace(DEBIAN_13, uid=0, user="root"), VERSION_5),
        (replace(USER, programs=without("pasta", "nft", "runc")), VERSION),
    ],
)
def test_a_good_machine_is_all_ok(facts: PodmanFacts, version: str) -> None:
    assert {check.status for check in checks(facts, version).values()} == {"ok"}


def lacking(*names: str) -> dict[str, str]:
    return {name: path for name, path in DEBIAN_13.programs.items() if name not in names}


@pytest.mark.parametrize(
    ("facts", "name", "status", "found", "fix"),
    [
        (replace(DEBIAN_13, programs=lacking("crun")), "runtime", "fail", "no crun or runc", "install -y crun"),
        (
            replace(DEBIAN_13, programs={**lacking("crun"), "runc": "/usr/sbin/runc"}),
            "runtime",
            "warn",
            "runc alone",
            "install -y crun",
        ),
        (replace(DEBIAN_13, subids=False), "user-ids", "fail", "no range for you", "sudo usermod --add-subuids"),
        (replace(DEBIAN_13, programs=lacking("pasta")), "rootless-network", "fail", "no pasta", "install -y passt"),
        (
            replace(DEBIAN_13, programs={**lacking("pasta"), "slirp4netns": "/usr/bin/slirp4netns"}),
            "rootless-network",
            "fail",
            "no pasta (slirp4netns is there, and Podman 5 does not use it unless told to)",
            "install -y passt",
        ),
        (
            replace(DEBIAN_13, network_conf={"default_rootless_network_cmd": "slirp4netns"}),
            "rootless-network",
            "fail",
            "no slirp4netns (pasta is there",
            "install -y slirp4netns",
        ),
        (
            replace(DEBIAN_13, delegated=frozenset({"memory", "pids", "cpuset"})),
            "delegation",
            "warn",
            "does not pass on cpu to you",
            "Delegate=cpu cpuset io memory pids",
        ),
        (replace(DEBIAN_13, delegated=frozenset()), "delegation", "warn", "cpu, memory, pids", "daemon-reload"),
        (
            replace(DEBIAN_13, delegated=None),
            "delegation",
            "warn",
            "no systemd user manager of yours",
            "enable-linger ada",
        ),
        (
            replace(DEBIAN_13, user_bus=False, bus_unit=False, delegated=None),
            "delegation",
            "warn",
            "no D-Bus session of yours",
            "sudo apt-get install -y dbus-user-session, then log out",
        ),
        (replace(DEBIAN_13, user_bus=False), "delegation", "warn", "no D-Bus session", "loginctl enable-linger ada"),
        (
            replace(DEBIAN_13, uid=0, programs=lacking("nft")),
            "netavark",
            "fail",
            "/usr/bin/netavark, and no nft",
            "apt-get install -y nftables",
        ),
        (
            replace(DEBIAN_13, uid=0, distribution=("arch",), programs=lacking("nft")),
            "netavark",
            "fail",
            "no nft or iptables",
            "pacman -S --noconfirm nftables",
        ),
    ],
)
def test_what_is_taken_from_a_debian_13_machine(
    facts: PodmanFacts, name: str, status: str, found: str, fix: str
) -> None:
    """Issue 11.5."""
    seen = {check.name: check for check in checks(facts, VERSION_5).values() if check.status != "ok"}
    if facts.distribution != ("arch",):
        assert set(seen) == {name}
    assert seen[name].status == status
    assert found in seen[name].found
    assert fix in seen[name].fix
    assert seen[name].meaning


@pytest.mark.parametrize(
    ("facts", "network"),
    [
        (replace(DEBIAN_13, programs=lacking("pasta")), "none"),
        (replace(DEBIAN_13, dev_net_tun=False), "host"),
    ],
)
def test_a_network_that_takes_no_helper_makes_its_lack_a_warning(facts: PodmanFacts, network: str) -> None:
    assert checks(facts, VERSION_5, network=network)["rootless-network"].status == "warn"
    assert checks(facts, VERSION_5, network="mine")["rootless-network"].status == "fail"


@pytest.mark.parametrize(
    ("facts", "network", "version"),
    [
        (replace(DEBIAN_13, programs=lacking("nft")), "default", VERSION_5),  # an ordinary user's network has no bridge
        (replace(ROOT, programs=without("nft", "iptables")), "none", VERSION),
        (
            replace(ROOT, programs=without("nft", "iptables"), network_conf={"firewall_driver": "none"}),
            "default",
            VERSION,
        ),
        (replace(ROOT, programs=without("nft"), network_conf={"firewall_driver": "iptables"}), "default", VERSION_5),
        (
            replace(ROOT, programs=without("nft", "iptables"), network_conf={"firewall_driver": "firewalld"}),
            "default",
            VERSION_5,
        ),
    ],
)
def test_who_needs_no_firewall_program(facts: PodmanFacts, network: str, version: str) -> None:
    assert checks(facts, version, network=network)["netavark"].status == "ok"


@pytest.mark.parametrize(
    ("linger", "token_unit", "status"),
    [(False, False, "ok"), (True, False, "ok"), (True, True, "ok"), (False, True, "warn")],
)
def test_linger_matters_to_an_installed_token_daemon_alone(linger: bool, token_unit: bool, status: str) -> None:
    found = checks(replace(DEBIAN_13, linger=linger), VERSION_5, token_unit=token_unit)["linger"]
    assert found.status == status
    assert found.fix == ("sudo loginctl enable-linger ada" if status == "warn" else "")
    assert "linger" not in checks(replace(DEBIAN_13, systemd=False), VERSION_5, token_unit=token_unit)


@pytest.mark.parametrize(("facts", "said"), [(ROOT, False), (USER, True)])
def test_that_no_limit_holds_is_said_to_ordinary_users_on_old_cgroups(facts: PodmanFacts, said: bool) -> None:
    assert ("enforces no limit" in checks(replace(facts, cgroups="hybrid"))["cgroups"].meaning) is said


def test_delegation_is_asked_for_where_limits_can_hold_at_all() -> None:
    assert "delegation" not in checks(replace(USER, cgroups="hybrid", delegated=None))
    assert "delegation" not in checks(replace(ROOT, delegated=None))
    assert "delegation" not in checks(replace(USER, systemd=False, delegated=None))


@pytest.mark.parametrize(
    ("facts", "name", "status", "fix"),
    [
        (replace(ROOT, programs=without("podman")), "podman", "fail", "apt-get install -y podman"),
        (replace(ROOT, cgroups="hybrid"), "cgroups", "warn", 'runtime = "runc", cgroup_manager = "cgroupfs"'),
        (replace(ROOT, cgroups="hybrid", programs=without("runc")), "cgroups", "fail", "apt-get install -y runc"),
        (replace(ROOT, cgroups="v1", programs=without("runc")), "cgroups", "warn", "apt-get install -y runc"),
        (
            replace(ROOT, cap_sys_resource=False, nofile=9000),
            "rlimits",
            "warn",
            '"nofile=9000:9000", "nproc=16384:16384"',
        ),
        (replace(ROOT, systemd=False), "systemd", "warn", 'events_logger = "file"'),
        (replace(ROOT, programs=without("netavark")), "netavark", "warn", "apt-get install -y netavark aardvark-dns"),
        (
            replace(ROOT, programs=without("catatonit", "tini", "dumb-init")),
            "init",
            "fail",
            "apt-get install -y catatonit",
        ),
        (replace(USER, programs=without("newuidmap")), "user-ids", "fail", "sudo apt-get install -y uidmap"),
        (replace(USER, subids=False), "user-ids", "fail", "sudo usermod --add-subuids"),
        (replace(USER, programs=without("pasta", "slirp4netns")), "rootless-network", "fail", "slirp4netns"),
        (replace(USER, dev_net_tun=False), "rootless-network", "fail", "sudo modprobe tun"),
        (replace(ROOT, dev_fuse=False), "fuse", "warn", "modprobe fuse"),
        (replace(ROOT, programs=without("mmdebstrap")), "base-image", "warn", "apt-get install -y mmdebstrap"),
    ],
)
def test_each_trap(facts: PodmanFacts, name: str, status: str, fix: str) -> None:
    found = checks(facts)
    assert found[name].status == status
    assert fix in found[name].fix
    assert found[name].meaning
    assert {other for other, check in found.items() if check.status != "ok"} == {name}


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (USER, ""),
        (replace(ROOT, subids=False, programs=without("newuidmap")), ""),
        (replace(USER, platform="darwin", programs={}), ""),
        (replace(USER, subids=False), "no range for you in /etc/subuid and /etc/subgid. `sudo usermod --add-subuids"),
        (replace(USER, programs=without("newuidmap")), "no newuidmap. `sudo apt-get install -y uidmap` fixes that."),
    ],
)
def test_why_a_user_can_have_no_image(facts: PodmanFacts, said: str) -> None:
    hint = user_ids_hint(facts)
    assert said in hint
    assert bool(said) is bool(hint)


@pytest.mark.parametrize(
    ("version", "status"),
    [
        ("podman version 5.4.0", "ok"),
        ("podman version 4.0-rc1", "ok"),
        ("podman version 3.4.4", "fail"),
        ("", "fail"),
    ],
)
def test_podman_versions(version: str, status: str) -> None:
    assert checks(ROOT, version)["podman"].status == status


@pytest.mark.parametrize(
    ("distribution", "command"),
    [
        (("ubuntu", "debian"), "apt-get install -y uidmap"),
        (("fedora",), "dnf install -y shadow-utils"),
        (("rocky", "rhel", "centos", "fedora"), "dnf install -y shadow-utils"),
        (("manjaro", "arch"), "pacman -S --noconfirm shadow"),
        (("opensuse-leap", "suse", "opensuse"), "zypper install -y shadow"),
        (("alpine",), "apk add shadow-uidmap"),
        (("plan9",), "install newuidmap with your distribution's package manager"),
    ],
)
def test_install_commands(distribution: tuple[str, ...], command: str) -> None:
    facts = PodmanFacts(distribution=distribution)
    assert install_command(facts, "newuidmap") == command


def test_what_has_no_program_is_named_on_any_distribution() -> None:
    command = install_command(PodmanFacts(distribution=("plan9",)), "user-bus", "crun")
    assert command == "install the D-Bus user session and crun with your distribution's package manager"


def test_macos_is_told_of_the_machine() -> None:
    facts = PodmanFacts(platform="darwin", uid=501)
    (only,) = checks(facts, "").values()
    assert (only.status, "podman machine init" in only.fix) == ("fail", True)


@given(st.text())
def test_any_version_text_is_judged(version: str) -> None:
    assert checks(ROOT, version)["podman"].status in ("ok", "fail")
