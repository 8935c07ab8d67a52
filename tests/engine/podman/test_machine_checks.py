"""Every problem of a machine by name: Podman's requirements, and doctor's checks of any host."""

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
from podbot.machine import PACKAGE_TOOLS, SHARED, KernelKeys

ALL = {name: f"/usr/bin/{name}" for name in (*PROGRAMS, *PACKAGE_TOOLS)}
ROOT = PodmanFacts(programs=ALL, distribution=("debian",), codename="bookworm")
USER = replace(ROOT, uid=1000, user="ada", free_subids=165536)
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
    facts: PodmanFacts,
    version: str = VERSION,
    *,
    network: str = "default",
    private: bool = True,
    token_unit: bool = False,
    fuse: bool = True,
    own_ids: bool = False,
) -> dict[str, Check]:
    machine = check_machine(facts, version, network=network, private=private)
    found = [*machine, *check_host(facts, token_unit=token_unit, fuse=fuse, own_ids=own_ids)]
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
def test_a_complete_machine_is_all_ok(facts: PodmanFacts, version: str) -> None:
    assert {check.status for check in checks(facts, version).values()} == {"ok"}


def lacking(*names: str) -> dict[str, str]:
    return {name: path for name, path in DEBIAN_13.programs.items() if name not in names}


@pytest.mark.parametrize(
    ("facts", "name", "status", "found", "fix"),
    [
        (
            replace(DEBIAN_13, programs=lacking("crun")),
            "runtime",
            "fail",
            "no crun or runc",
            "install -y --no-install-recommends crun",
        ),
        (
            replace(DEBIAN_13, programs={**lacking("crun"), "runc": "/usr/sbin/runc"}),
            "runtime",
            "warn",
            "runc alone",
            "install -y --no-install-recommends crun",
        ),
        (replace(DEBIAN_13, subids=False), "user-ids", "fail", "no range for you", "sudo usermod --add-subuids"),
        (
            replace(DEBIAN_13, programs=lacking("pasta")),
            "rootless-network",
            "fail",
            "no pasta",
            "install -y --no-install-recommends passt",
        ),
        (
            replace(DEBIAN_13, programs={**lacking("pasta"), "slirp4netns": "/usr/bin/slirp4netns"}),
            "rootless-network",
            "fail",
            "no pasta (slirp4netns is installed, but Podman 5 does not use it by default)",
            "install -y --no-install-recommends passt",
        ),
        (
            replace(DEBIAN_13, network_conf={"default_rootless_network_cmd": "slirp4netns"}),
            "rootless-network",
            "fail",
            "no slirp4netns (pasta is installed",
            "install -y --no-install-recommends slirp4netns",
        ),
        (
            replace(DEBIAN_13, delegated=frozenset({"memory", "pids", "cpuset"})),
            "delegation",
            "warn",
            "does not delegate cpu to you",
            "Delegate=cpu cpuset io memory pids",
        ),
        (replace(DEBIAN_13, delegated=frozenset()), "delegation", "warn", "cpu, memory, pids", "daemon-reload"),
        (
            replace(DEBIAN_13, delegated=None),
            "delegation",
            "warn",
            "you have no systemd user manager",
            "enable-linger ada",
        ),
        (
            replace(DEBIAN_13, user_bus=False, bus_unit=False, delegated=None),
            "delegation",
            "warn",
            "you have no D-Bus session",
            "sudo apt-get install -y --no-install-recommends dbus-user-session, then log out",
        ),
        (replace(DEBIAN_13, user_bus=False), "delegation", "warn", "no D-Bus session", "loginctl enable-linger ada"),
        (
            replace(DEBIAN_13, uid=0, programs=lacking("nft")),
            "netavark",
            "fail",
            "/usr/bin/netavark, and no nft",
            "apt-get install -y --no-install-recommends nftables",
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
def test_programs_removed_from_a_debian_13_machine(
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
        (replace(DEBIAN_13, programs=lacking("pasta")), "filtered"),
        (replace(DEBIAN_13, dev_net_tun=False), "host"),
    ],
)
def test_a_missing_network_helper_is_a_warning_when_the_network_needs_none(facts: PodmanFacts, network: str) -> None:
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
def test_machines_that_need_no_firewall_program(facts: PodmanFacts, network: str, version: str) -> None:
    assert checks(facts, version, network=network)["netavark"].status == "ok"


@pytest.mark.parametrize(
    ("keys", "status", "found"),
    [
        (KernelKeys(179, 200, 5370, 20000), "ok", "179 of 200 kernel keys used"),
        (KernelKeys(180, 200, 5400, 20000), "warn", "180 of 200 kernel keys used"),
        (KernelKeys(200, 200, 6000, 20000), "fail", "200 of 200 kernel keys used"),
        (KernelKeys(20, 200, 19000, 20000), "warn", "20 of 200 kernel keys used, with 19000 of 20000 bytes"),
        (KernelKeys(0, 0, 0, 0), "ok", "0 of 0 kernel keys used"),
    ],
)
def test_a_used_up_quota_of_kernel_keys_is_counted(keys: KernelKeys, status: str, found: str) -> None:
    """Issue 29.8: the kernel calls that a full disk."""
    check = checks(replace(DEBIAN_13, keys=keys), VERSION_5)["kernel-keys"]
    assert (check.status, check.found) == (status, found)
    raised = "sudo sysctl -w kernel.keys.maxkeys=2000 kernel.keys.maxbytes=200000"
    assert check.fix == ("" if status == "ok" else raised)
    assert "kernel-keys" not in checks(replace(ROOT, keys=keys))
    assert "kernel-keys" not in checks(replace(DEBIAN_13, keys=None), VERSION_5)


@pytest.mark.parametrize(
    ("linger", "token_unit", "status"),
    [(False, False, "ok"), (True, False, "ok"), (True, True, "ok"), (False, True, "warn")],
)
def test_linger_only_matters_with_an_installed_token_daemon(linger: bool, token_unit: bool, status: str) -> None:
    found = checks(replace(DEBIAN_13, linger=linger), VERSION_5, token_unit=token_unit)["linger"]
    assert found.status == status
    assert found.fix == ("sudo loginctl enable-linger ada" if status == "warn" else "")
    assert "linger" not in checks(replace(DEBIAN_13, systemd=False), VERSION_5, token_unit=token_unit)


@pytest.mark.parametrize(("facts", "said"), [(ROOT, False), (USER, True)])
def test_ordinary_users_on_old_cgroups_are_warned_that_no_limit_is_enforced(facts: PodmanFacts, said: bool) -> None:
    assert ("enforces no limit" in checks(replace(facts, cgroups="hybrid"))["cgroups"].meaning) is said


def test_delegation_is_checked_where_limits_can_be_enforced() -> None:
    assert "delegation" not in checks(replace(USER, cgroups="hybrid", delegated=None))
    assert "delegation" not in checks(replace(ROOT, delegated=None))
    assert "delegation" not in checks(replace(USER, systemd=False, delegated=None))


@pytest.mark.parametrize(
    ("facts", "name", "status", "fix"),
    [
        (
            replace(ROOT, programs=without("podman")),
            "podman",
            "fail",
            "apt-get install -y --no-install-recommends podman",
        ),
        (
            replace(ROOT, cgroups="hybrid", programs=without("runc")),
            "cgroups",
            "fail",
            "apt-get install -y --no-install-recommends runc",
        ),
        (
            replace(ROOT, cgroups="v1", programs=without("runc")),
            "cgroups",
            "warn",
            "apt-get install -y --no-install-recommends runc",
        ),
        (
            replace(ROOT, programs=without("netavark")),
            "netavark",
            "warn",
            "apt-get install -y --no-install-recommends netavark aardvark-dns",
        ),
        (
            replace(ROOT, programs=without("catatonit", "tini", "dumb-init")),
            "init",
            "fail",
            "apt-get install -y --no-install-recommends catatonit",
        ),
        (
            replace(USER, programs=without("newuidmap")),
            "user-ids",
            "fail",
            "sudo apt-get install -y --no-install-recommends uidmap",
        ),
        (replace(USER, subids=False), "user-ids", "fail", "sudo usermod --add-subuids"),
        (replace(USER, programs=without("pasta", "slirp4netns")), "rootless-network", "fail", "slirp4netns"),
        (replace(USER, dev_net_tun=False), "rootless-network", "fail", "sudo modprobe tun"),
        (replace(ROOT, dev_fuse=False), "fuse", "warn", "modprobe fuse"),
        (replace(ROOT, dev_fuse=False, container="docker"), "fuse", "warn", "--device /dev/fuse"),
        (
            replace(ROOT, programs=without("mmdebstrap")),
            "base-image",
            "warn",
            "apt-get install -y --no-install-recommends mmdebstrap",
        ),
    ],
)
def test_each_problem(facts: PodmanFacts, name: str, status: str, fix: str) -> None:
    found = checks(facts)
    assert found[name].status == status
    assert fix in found[name].fix
    assert found[name].meaning
    assert {other for other, check in found.items() if check.status != "ok"} == {name}


WORKED_AROUND = [
    (replace(ROOT, cgroups="hybrid"), "cgroups", 'runtime = "runc", cgroup_manager = "cgroupfs"', "uses runc"),
    (
        replace(ROOT, cap_sys_resource=False, nofile=9000),
        "rlimits",
        '"nofile=9000:9000", "nproc=16384:16384"',
        "uses nofile 9000, nproc 16384",
    ),
    (replace(ROOT, systemd=False), "systemd", 'events_logger = "file"', "uses cgroupfs and log files"),
]


@pytest.mark.parametrize(("facts", "name", "fix", "said"), WORKED_AROUND)
def test_what_podbot_configures_its_own_engine_for_is_one_ok_line(
    facts: PodmanFacts, name: str, fix: str, said: str
) -> None:
    """Issue 16.2. An engine that the operator started, or configured, needs the same lines from the operator."""
    ours = checks(facts)[name]
    assert (ours.status, ours.meaning, ours.fix) == ("ok", "", "")
    assert said in ours.found
    for theirs in (checks(facts, private=False), checks(replace(facts, conf_chosen=True))):
        assert theirs[name].status == "warn"
        assert fix in theirs[name].fix
        assert {other for other, check in theirs.items() if check.status != "ok"} == {name}


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (USER, ""),
        (replace(ROOT, subids=False, programs=without("newuidmap")), ""),
        (replace(USER, platform="darwin", programs={}), ""),
        (replace(USER, subids=False), "no range for you in /etc/subuid and /etc/subgid. `sudo usermod --add-subuids"),
        (
            replace(USER, subids=False, free_subids=None),
            "subgid. Have root add 65536 ids that no other user has: `user",
        ),
        (
            replace(USER, programs=without("newuidmap")),
            "no newuidmap. `sudo apt-get update -q && sudo apt-get install -y --no-install-recommends uidmap` fixes",
        ),
    ],
)
def test_reasons_why_a_user_can_have_no_image(facts: PodmanFacts, said: str) -> None:
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
        (("ubuntu", "debian"), "apt-get update -q && apt-get install -y --no-install-recommends uidmap"),
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


def test_a_requirement_without_a_program_is_reported_on_any_distribution() -> None:
    command = install_command(PodmanFacts(distribution=("plan9",)), "user-bus", "crun")
    assert command == "install the D-Bus user session and crun with your distribution's package manager"


def test_macos_gets_advice_about_its_machine() -> None:
    facts = PodmanFacts(platform="darwin", uid=501)
    (only,) = checks(facts, "").values()
    assert (only.status, "podman machine init" in only.fix) == ("fail", True)


@given(st.text())
def test_any_version_text_is_accepted(version: str) -> None:
    assert checks(ROOT, version)["podman"].status in ("ok", "fail")


@pytest.mark.parametrize(
    ("facts", "status", "words"),
    [
        (replace(USER, container_ids=0), "ok", "root is you"),
        (replace(ROOT, cgroups="v2", container_ids=65_535), "fail", "65,535 user ids for `containers`"),
        (replace(ROOT, cgroups="v2", container_ids=131_072), "ok", "for 2 sessions"),
        (replace(ROOT, cgroups="hybrid", container_ids=65_536), "warn", "runc"),
        (replace(ROOT, cgroups="v2", container_ids=65_536, programs=without("crun")), "warn", "runc"),
    ],
)
def test_user_ids_of_its_own(facts: PodmanFacts, status: str, words: str) -> None:
    found = checks(facts, own_ids=True)["own-user-ids"]
    assert (found.status, words in found.found) == (status, True)
    assert "own-user-ids" not in checks(facts)


def test_fuse_only_matters_where_sessions_ask_for_it() -> None:
    for facts in (ROOT, replace(ROOT, dev_fuse=False)):
        assert checks(facts, fuse=False)["fuse"].status == "ok"


def test_low_limits_that_sandboxes_share_with_the_host_are_named() -> None:
    assert "kernel-limits" not in checks(ROOT)
    assert checks(replace(ROOT, shared=SHARED))["kernel-limits"].status == "ok"
    low = {**SHARED, "kernel.pty.max": 64, "user.max_net_namespaces": 0}
    found = checks(replace(ROOT, shared=low))["kernel-limits"]
    assert (found.status, found.found) == ("warn", "kernel.pty.max is 64, user.max_net_namespaces is 0")
    assert "sysctl kernel.pty.max=4096 user.max_net_namespaces=1024" in found.fix
