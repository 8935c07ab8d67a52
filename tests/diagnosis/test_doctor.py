"""Every trap by name, and that no error escapes doctor."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.config.models import AppConfig, Origin, SandboxConfig
from podbot.diagnosis.disk_checks import MEGABYTE, Disks
from podbot.diagnosis.doctor import Patient, diagnose
from podbot.diagnosis.host_checks import check_host
from podbot.diagnosis.image_checks import Probed, judge
from podbot.engine.check import Check, install_command
from podbot.engine.endpoint import Endpoint
from podbot.engine.podman.machine import PodmanMachine
from podbot.engine.podman.machine_checks import check_machine
from podbot.engine.podman.private.podman_facts import PROGRAMS, PodmanFacts
from podbot.engine.podman.rootless_checks import user_ids_hint
from podbot.engine.podman.words import WORDS
from podbot.engine.port import Engine, EngineHost, EngineInfo, ImageInfo
from podbot.errors import (
    ConnectionFailed,
    MalformedFile,
    PodbotError,
    RequestFailed,
    SocketNotFound,
    UnsafeDirectory,
)
from podbot.machine import PACKAGE_TOOLS, Disk
from tests.diagnosis.test_github_checks import GITHUB_CHECKS

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


class FakeEngine:
    local = True
    words = WORDS

    def __init__(self, images: dict[str, ImageInfo], error: PodbotError | None = None) -> None:
        self.images, self.error, self.closed = images, error, False

    def host(self) -> EngineHost:
        return EngineHost(rootless=False, storage="/store")

    def ping(self) -> EngineInfo:
        if self.error:
            raise self.error
        return EngineInfo("unix:///e.sock", "4.3.1")

    def image(self, ref: str) -> ImageInfo | None:
        return self.images.get(ref)

    def close(self) -> None:
        self.closed = True


OURS = ImageInfo("id", ("img:1",), {"io.podbot.agents": "claude=2"}, 800_000_000, "")
CONFIGURED = AppConfig(image="img:1", origins={"image": Origin("file", "/c.toml")})


def free(megabytes: int) -> Disks:
    return {"store": Disk("/store", megabytes * MEGABYTE, 1), "temporary": Disk("/tmp", 9999 * MEGABYTE, 2)}


def seen_by_podman(facts: PodmanFacts) -> Callable[[AppConfig], PodmanMachine]:
    return lambda _config: PodmanMachine(facts, VERSION)


def patient(engine: FakeEngine | None = None, **changes: Any) -> Patient:
    engine = engine or FakeEngine({"img:1": OURS})
    whole = Patient(
        machine=seen_by_podman(ROOT),
        load=lambda: CONFIGURED,
        config_path=lambda: "/c.toml",
        locate=lambda _config: None,
        connect=lambda _config: cast("Engine", engine),
        runtime_dir=lambda: "/run/podbot",
        disks=lambda _host: free(50000),
        seccomp=lambda: "/state/seccomp/0a1b.json",
    )
    return replace(whole, **changes)


def raising(error: PodbotError) -> Any:
    def call(*_: object) -> NoReturn:
        raise error

    return call


def test_a_ready_machine() -> None:
    engine = FakeEngine({"img:1": OURS})
    found = {check.name: check for check in diagnose(patient(engine))}
    assert {check.status for check in found.values()} == {"ok"}
    assert found["engine"].found == "Podman 4.3.1 at unix:///e.sock (podbot's private service)"
    assert found["image"].found == "img:1 (config file /c.toml), 800 MB, claude=2"
    assert engine.closed


@pytest.mark.parametrize(
    ("changes", "name", "word"),
    [
        ({"load": raising(MalformedFile(path="/c.toml", reason="line 3"))}, "config", "line 3"),
        ({"runtime_dir": raising(UnsafeDirectory(path="/r", reason="it is a link"))}, "runtime-dir", "it is a link"),
        ({"connect": raising(SocketNotFound(path="/s", origin="here"))}, "engine", "/s"),
        ({"locate": raising(ConnectionFailed(endpoint="x", origin="y", reason="z"))}, "engine", "z"),
        ({"load": AppConfig}, "image", "none is configured"),
        ({"load": lambda: replace(CONFIGURED, image="img:2")}, "image", "img:2"),
    ],
)
def test_every_error_becomes_a_check(changes: dict[str, Any], name: str, word: str) -> None:
    found = [check for check in diagnose(patient(**changes)) if check.name == name]
    assert [check.status for check in found] == ["fail"]
    assert word in found[0].found
    assert found[0].fix


def test_an_engine_that_dies_is_a_check_and_is_closed() -> None:
    engine = FakeEngine({}, ConnectionFailed(endpoint="x", origin="y", reason="gone"))
    assert [check.status for check in diagnose(patient(engine)) if check.name == "engine"] == ["fail"]
    assert engine.closed


def test_a_distant_engine_is_not_judged_by_this_machine() -> None:
    far = Endpoint("ssh", "variable CONTAINER_HOST", host="far", port=22)
    engine = FakeEngine({"img:1": OURS})
    engine.local = False
    names = [check.name for check in diagnose(patient(engine, locate=lambda _config: far))]
    assert names == ["config", "runtime-dir", "engine", "image"]


@pytest.mark.parametrize(
    ("images", "megabytes", "status", "found"),
    [
        ({"img:1": OURS}, 50000, "ok", "50.0 GB free in /store"),
        ({"img:1": OURS}, 900, "warn", "900 MB free in /store"),
        ({}, 50000, "ok", "50.0 GB free in /store"),
        ({}, 1500, "fail", "1500 MB free in /store, and building the sandbox image takes about 1586 MB there"),
    ],
)
def test_the_disk_is_judged_by_what_is_still_to_be_built(
    images: dict[str, ImageInfo], megabytes: int, status: str, found: str
) -> None:
    seen = diagnose(patient(FakeEngine(images), disks=lambda _host: free(megabytes)))
    (disk,) = (check for check in seen if check.name == "disk")
    assert (disk.status, disk.found) == (status, found)
    assert bool(disk.fix) is (status != "ok")


def test_an_engine_that_does_not_describe_itself_hides_nothing_else() -> None:
    class Silent(FakeEngine):
        def host(self) -> EngineHost:
            raise RequestFailed(operation="describe itself", status=500, reason="it broke")

    seen = {check.name: check.status for check in diagnose(patient(Silent({})))}
    assert (seen["engine"], seen["disk"]) == ("ok", "fail")
    assert "image" in seen


def test_in_a_container_the_device_comes_from_whoever_starts_it() -> None:
    facts = replace(USER, dev_net_tun=False)
    for container, word in (("", "modprobe"), ("docker", "--device /dev/net/tun")):
        seen = diagnose(patient(machine=seen_by_podman(replace(facts, container=container))))
        (check,) = (check for check in seen if check.name == "rootless-network")
        assert word in check.fix


def test_the_network_and_the_unit_of_the_patient_are_asked_for() -> None:
    config = replace(CONFIGURED, sandbox=SandboxConfig(network="none"))
    facts = replace(USER, programs=without("slirp4netns"))
    seen = {c.name: c for c in diagnose(patient(machine=seen_by_podman(facts), load=lambda: config, token_unit=True))}
    assert (seen["rootless-network"].status, seen["linger"].status) == ("warn", "warn")


def test_the_reference_page_lists_every_check_and_no_other() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/doctor.md").read_text()
    own, others = (re.findall(r"^\| `([a-z0-9-]+)` \|", part, re.MULTILINE) for part in page.split("## An image"))
    lacking = judge(Probed(), "claude", ("claude-agent-acp",))
    assert others == ["start", *(check.name for check in lacking)]
    github = [Check(name, "ok", "") for name in GITHUB_CHECKS]  # tests/diagnosis/test_github_checks.py holds them
    found = diagnose(patient(machine=seen_by_podman(USER), github=lambda _config: iter(github)))
    assert own == list(dict.fromkeys(check.name for check in found))


def test_a_named_image_is_probed_and_a_configured_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str | None, str | None]] = []

    def probed(_engine: object, config: AppConfig, _remedy: str, seccomp: str | None) -> list[Check]:
        asked.append((config.image, seccomp))
        return [Check("git", "fail", "not installed")]

    monkeypatch.setattr("podbot.diagnosis.doctor.check_image", probed)
    assert "git" not in [check.name for check in diagnose(patient())]
    found = {check.name: check for check in diagnose(patient(), probe_image=True)}
    assert (found["git"].status, asked) == ("fail", [("img:1", "/state/seccomp/0a1b.json")])


def test_an_engine_elsewhere_does_not_get_a_path_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []

    def probed(_engine: object, _config: AppConfig, _remedy: str, seccomp: str | None) -> list[Check]:
        asked.append(seccomp)
        return []

    monkeypatch.setattr("podbot.diagnosis.doctor.check_image", probed)
    engine = FakeEngine({"img:1": OURS})
    engine.local = False
    list(diagnose(patient(engine), probe_image=True))
    assert asked == [None]
