"""The packages that set-up installs: which, how, and on a machine whose programs are one-line scripts."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from podbot.engine.check import Repair, installation
from podbot.engine.podman.engine_machine import PodmanMachine, missing_programs
from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.errors import MachineNotReady, RepairFailed
from podbot.events import Event
from podbot.images.image_build import Step
from podbot.provisioning.packages import can_install, install, installed_first, lacks_helpers, require_root
from podbot.provisioning.repairs import Root, Runner, way_to_root
from podbot.provisioning.setup import SetupPlan
from tests.engine.podman.test_machine_checks import ALL, DEBIAN_13, USER, VERSION_5

BARE = PodmanFacts(uid=1000, user="ada", distribution=("debian",), codename="trixie")
ALWAYS = ("podman", "fuse-overlayfs", "newuidmap", "netavark", "aardvark-dns", "catatonit", "crun")
APT = "apt-get install -y --no-install-recommends"
NO_TUN = replace(BARE, dev_net_tun=False, programs={"pasta": "/p"})
PLAN = SetupPlan("image", ("claude",), (Step("build", "build it", 10, 20),), "/c.toml")


def without(*names: str, facts: PodmanFacts = DEBIAN_13) -> PodmanFacts:
    return replace(facts, programs={name: path for name, path in facts.programs.items() if name not in names})


@pytest.mark.parametrize(
    ("facts", "number", "missing"),
    [
        (BARE, (5, 4, 2), (*ALWAYS, "pasta", "nft", "mmdebstrap", "git")),
        (BARE, (4, 3, 1), (*ALWAYS, "slirp4netns", "iptables", "mmdebstrap", "git")),
        (BARE, (), (*ALWAYS, "mmdebstrap", "git")),
        (replace(USER, programs=ALL), (4, 3, 1), ()),
        (DEBIAN_13, (5, 4, 2), ()),
        (without("crun"), (5, 4, 2), ("crun",)),
        (without("crun", facts=replace(DEBIAN_13, cgroups="hybrid")), (5, 4, 2), ("runc",)),
        (replace(DEBIAN_13, user_bus=False, bus_unit=False), (5, 4, 2), ("user-bus",)),
        (replace(DEBIAN_13, user_bus=False, bus_unit=False, uid=0), (5, 4, 2), ()),
        (replace(DEBIAN_13, user_bus=False, bus_unit=False, systemd=False), (5, 4, 2), ()),
    ],
)
def test_what_a_machine_lacks(facts: PodmanFacts, number: tuple[int, ...], missing: tuple[str, ...]) -> None:
    assert missing_programs(facts, number, debian=True) == missing
    others = missing_programs(replace(facts, distribution=("fedora",)), number, debian=False)
    assert others == tuple(name for name in missing if name not in {"mmdebstrap", "git"})


@pytest.mark.parametrize(
    ("distribution", "lines"),
    [
        (("debian",), ["apt-get update -q", "apt-get install -y --no-install-recommends podman netavark aardvark-dns"]),
        (
            ("ubuntu", "debian"),
            ["apt-get update -q", "apt-get install -y --no-install-recommends podman netavark aardvark-dns"],
        ),
        (("fedora",), ["dnf install -y podman netavark aardvark-dns"]),
        (("plan9",), []),
    ],
)
def test_the_commands_of_each_distribution(distribution: tuple[str, ...], lines: list[str]) -> None:
    found = installation(replace(BARE, distribution=distribution), ("podman", "netavark", "aardvark-dns"))
    assert [repair.line for repair in found] == lines
    assert all(repair.root for repair in found)


@pytest.mark.parametrize(
    ("facts", "lacks"),
    [
        (DEBIAN_13, False),
        (without("catatonit"), True),
        (without("catatonit", facts=replace(DEBIAN_13, distribution=("plan9",))), False),
        (without("mmdebstrap", "git", "fuse-overlayfs"), False),  # a session starts without them
        (replace(DEBIAN_13, dev_net_tun=False), False),  # packages do not help
    ],
)
def test_packages_are_installed_only_where_a_session_needs_them(facts: PodmanFacts, lacks: bool) -> None:
    assert lacks_helpers(PodmanMachine(facts, VERSION_5), "default") is lacks


def test_nothing_is_installed_on_other_systems() -> None:
    assert not can_install(PodmanMachine(PodmanFacts(platform="darwin", distribution=("debian",)), ""))


def test_the_plan_begins_with_the_packages() -> None:
    machine = PodmanMachine(BARE, "", candidate=lambda: "5.4.2+ds1-2+b2")
    plan = installed_first(PLAN, machine, "default")
    assert [step.kind for step in plan.steps] == ["packages", "build"]
    assert (
        "sudo apt-get update -q && sudo apt-get install -y --no-install-recommends podman fuse-" in plan.steps[0].text
    )
    assert "passt nftables" in plan.steps[0].text
    assert "slirp4netns" not in plan.steps[0].text
    assert plan.seconds == plan.steps[0].seconds + 20


def test_without_lists_the_plan_names_what_either_podman_needs() -> None:
    """The operator agrees before the lists are fetched, which say which Podman it is."""
    for facts, also in ((BARE, "slirp4netns iptables or passt nftables"), (NO_TUN, "slirp4netns iptables or nftables")):
        machine = PodmanMachine(replace(facts, dev_net_tun=True), "", candidate=lambda: "")
        (step, _) = installed_first(PLAN, machine, "default").steps
        assert step.text.endswith(f", with {also} as the version needs")


def test_a_podman_that_is_too_old_is_not_installed(machine: Machine) -> None:
    """Ubuntu 22.04 has Podman 3.4."""
    old = PodmanMachine(BARE, "", candidate=lambda: "3.4.4+ds1-1ubuntu1")
    with pytest.raises(MachineNotReady, match=r"Podman is 3\.4\.4, and podbot needs Podman 4"):
        installed_first(PLAN, old, "default")
    found = [PodmanMachine(BARE, "", candidate=lambda: ""), old]
    with pytest.raises(MachineNotReady, match=r"3\.4\.4"):
        install(lambda: found.pop(0), Runner(Root(), machine.environ, lambda _event: None))
    assert machine.asked == ["apt-get update -q"]


def test_on_an_unknown_distribution_it_is_said_what_to_install(machine: Machine) -> None:
    strange = PodmanMachine(replace(BARE, distribution=("plan9",)), "")
    with pytest.raises(MachineNotReady) as caught:
        install(lambda: strange, Runner(Root(), machine.environ, lambda _event: None))
    assert caught.value.fixes.startswith("Install podman and fuse-overlayfs and ")
    assert "with your distribution's package manager" in caught.value.fixes
    assert machine.asked == []


@pytest.mark.parametrize("facts", [NO_TUN, replace(NO_TUN, container="podman")])
def test_what_packages_do_not_fix_is_said_before_they_are_installed(facts: PodmanFacts) -> None:
    with pytest.raises(MachineNotReady, match="/dev/net/tun may not be opened"):
        installed_first(PLAN, PodmanMachine(facts, "", candidate=lambda: "5.4.2"), "default")
    installed_first(PLAN, PodmanMachine(facts, "", candidate=lambda: "5.4.2"), "none")


class Machine:
    """Programs that are scripts in a directory, and the commands that they were given."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "bin").mkdir()
        for tool in ("sh", "env"):
            (root / "bin" / tool).symlink_to(f"/bin/{tool}")
        self.program("apt-get")

    @property
    def environ(self) -> dict[str, str]:
        return {"PATH": str(self.root / "bin")}

    @property
    def asked(self) -> list[str]:
        file = self.root / "asked"
        return file.read_text().splitlines() if file.exists() else []

    def program(self, name: str, *lines: str) -> None:
        path = self.root / "bin" / name
        path.write_text("\n".join(["#!/bin/sh", f'echo "{name} $@" >> {self.root}/asked', *lines, ""]))
        path.chmod(0o755)

    def sudo(self, *, password: bool = False) -> None:
        refuse = f'[ "$1" != -v ] || {{ : > {self.root}/known; exit; }}; [ -e {self.root}/known ] || exit 1'
        self.program("sudo", *([refuse] if password else []), '[ "$1" != -n ] || shift', '[ "$1" = true ] || exec "$@"')


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_lists_are_fetched_first_and_then_decide_what_is_installed(machine: Machine) -> None:
    """A minimal Debian has no lists of packages, so nothing says which Podman it would install."""
    events: list[Event] = []
    found = [PodmanMachine(BARE, "", candidate=lambda: ""), PodmanMachine(BARE, "", candidate=lambda: "4.3.1+ds1")]
    machine.sudo()
    root = way_to_root(BARE, machine.environ, may_ask=False)
    assert root == Root((str(machine.root / "bin/sudo"), "-n"))
    install(lambda: found.pop(0), Runner(root, machine.environ, events.append))
    first, second = [line for line in machine.asked if line.startswith("apt-get")]
    assert first == "apt-get update -q"
    assert "install -y --no-install-recommends podman" in second
    assert "slirp4netns iptables" in second
    assert [event.fields["root"] for event in events if event.kind == "repair.run"] == [True, True]


def test_the_bus_is_started_for_the_session_that_is_open(machine: Machine) -> None:
    facts = replace(DEBIAN_13, uid=1000, user_bus=False, bus_unit=False)
    events: list[Event] = []
    for starts in (False, True):
        if starts:
            machine.program("systemctl")
        install(lambda: PodmanMachine(facts, VERSION_5), Runner(Root(), machine.environ, events.append))
        assert ("setup.bus" in {event.kind for event in events}) is not starts
        events.clear()
    assert machine.asked[-2:] == ["systemctl --user daemon-reload", "systemctl --user start dbus.socket"]


@pytest.mark.parametrize(
    ("sudo", "password", "may_ask", "way"),
    [(False, False, True, None), (True, True, False, None), (True, True, True, True), (True, False, False, False)],
)
def test_ways_to_root(machine: Machine, *, sudo: bool, password: bool, may_ask: bool, way: bool | None) -> None:
    """``way``: whether sudo asks for a password; None: there is no way."""
    if sudo:
        machine.sudo(password=password)
    root = way_to_root(BARE, machine.environ, may_ask=may_ask)
    assert (root and root.asks) is way
    assert way_to_root(replace(BARE, uid=0), machine.environ, may_ask=False) == Root()
    if way is None:
        looked = PodmanMachine(BARE, "", candidate=lambda: "5.4.2")
        with pytest.raises(MachineNotReady) as caught:
            require_root(looked, machine.environ, "default", may_ask=may_ask)
        assert "podman: not installed" in caught.value.problems
        assert "`sudo apt-get update -q && sudo apt-get install -y" in caught.value.fixes


def test_a_password_is_asked_for_once_before_the_first_command(machine: Machine) -> None:
    machine.sudo(password=True)
    events: list[Event] = []
    root = way_to_root(BARE, machine.environ, may_ask=True)
    Runner(root, machine.environ, events.append).run([Repair("apt-get a"), Repair("apt-get b")])
    assert [event.kind for event in events if event.level != "debug"] == ["repair.password", "repair.run", "repair.run"]
    assert [line for line in machine.asked if line.startswith("apt-get")] == ["apt-get a", "apt-get b"]


def test_sudo_may_ask_at_each_command(machine: Machine) -> None:
    """Defaults timestamp_timeout=0: `sudo -n` is refused even right after `sudo -v`."""
    machine.program("sudo", '[ "$1" != -n ] || exit 1', '[ "$1" != -v ] || exit 0', 'exec "$@"')
    root = way_to_root(BARE, machine.environ, may_ask=True)
    Runner(root, machine.environ, lambda _event: None).run([Repair("apt-get a"), Repair("apt-get b")])
    assert [line for line in machine.asked if line.startswith("apt-get")] == ["apt-get a", "apt-get b"]


def test_an_interruption_is_not_replaced_by_what_it_cannot_end(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An ordinary user may not send signals to sudo."""

    def refused(_child: object) -> None:
        raise PermissionError

    def interrupted(event: Event) -> None:
        if event.kind == "repair.line":
            raise KeyboardInterrupt

    monkeypatch.setattr(subprocess.Popen, "terminate", refused)
    machine.program("apt-get", "echo one")
    with pytest.raises(KeyboardInterrupt):
        Runner(Root(), machine.environ, interrupted).run([Repair("apt-get a")])


def refused_password(machine: Machine) -> Runner:
    machine.program("sudo", "exit 1")
    return Runner(way_to_root(BARE, machine.environ, may_ask=True), machine.environ, lambda _event: None)


def failing_command(machine: Machine) -> Runner:
    machine.program("apt-get", "echo E: no such package", "exit 100")
    return Runner(Root(), machine.environ, lambda _event: None)


def silent_command(machine: Machine) -> Runner:
    machine.program("apt-get", "exit 7")
    return Runner(Root(), machine.environ, lambda _event: None)


def no_program(machine: Machine) -> Runner:
    (machine.root / "bin/env").unlink()
    return Runner(Root(), machine.environ, lambda _event: None)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (refused_password, "did not accept you"),
        (failing_command, "E: no such package"),
        (silent_command, "status 7"),
        (no_program, "env: No such file"),
    ],
)
def test_a_command_that_fails_ends_the_repairs(
    machine: Machine, make: Callable[[Machine], Runner], reason: str
) -> None:
    with pytest.raises(RepairFailed, match=reason):
        make(machine).run([Repair("apt-get x"), Repair("apt-get y")])
    assert "apt-get y" not in machine.asked
