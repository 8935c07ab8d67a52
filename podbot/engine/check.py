"""The result of one check of ``podbot doctor``, and install commands for its remedies; used by engines and podbot."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from podbot.machine import MachineFacts

Status = Literal["ok", "warn", "fail"]

# Family of the distribution -> its install command, and the package of each program whose name differs.
_NAMES = {"netavark": "netavark aardvark-dns", "pasta": "passt", "nft": "nftables"}
NO_RECOMMENDS = "--no-install-recommends"  # recommended packages are a second engine, documentation, desktop files
MANAGERS: dict[str, tuple[str, dict[str, str]]] = {
    "debian": ("apt-get install -y", {**_NAMES, "newuidmap": "uidmap", "user-bus": "dbus-user-session"}),
    "fedora": ("dnf install -y", {**_NAMES, "newuidmap": "shadow-utils", "user-bus": "dbus-daemon"}),
    "arch": ("pacman -S --noconfirm", {**_NAMES, "newuidmap": "shadow", "user-bus": "dbus"}),
    "suse": ("zypper install -y", {**_NAMES, "newuidmap": "shadow", "user-bus": "dbus-1"}),
    "alpine": ("apk add", {**_NAMES, "newuidmap": "shadow-uidmap", "user-bus": "dbus"}),
}
_UNKNOWN = {"user-bus": "the D-Bus user session"}  # names to show on other distributions
FAMILIES = {
    "debian": "debian", "ubuntu": "debian", "fedora": "fedora", "rhel": "fedora", "centos": "fedora",
    "arch": "arch", "suse": "suse", "opensuse": "suse", "sles": "suse", "alpine": "alpine",
}  # fmt: skip


class Repair(NamedTuple):
    """A command line for ``sh`` that podbot runs if the operator agrees; all of it is podbot's own text.

    ``root``: root has to run it.
    """

    line: str
    root: bool = True

    def typed(self, facts: MachineFacts) -> str:
        """The line as this user types it."""
        return f"{sudo(facts)}{self.line}" if self.root else self.line


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check. ``meaning`` and ``fix`` are empty when the status is ok.

    ``install``: the missing programs, if installing them is the fix. ``repairs``: commands, if they are the fix.
    Neither is set where only a person can fix it.
    """

    name: str
    status: Status
    found: str
    meaning: str = ""
    fix: str = ""
    install: tuple[str, ...] = ()
    repairs: tuple[Repair, ...] = ()


def lacks(facts: MachineFacts, name: str, status: Status, texts: tuple[str, str], *programs: str) -> Check:
    """A check that installing ``programs`` fixes. ``texts``: what was found, and its meaning."""
    return Check(name, status, *texts, install_command(facts, *programs), install=programs)


def repaired_by(facts: MachineFacts, name: str, status: Status, texts: tuple[str, str], *repairs: Repair) -> Check:
    """A check that commands fix. ``texts``: what was found, and its meaning."""
    return Check(name, status, *texts, " && ".join(repair.typed(facts) for repair in repairs), repairs=repairs)


def family(facts: MachineFacts) -> str:
    """The family of the distribution, a key of :data:`MANAGERS`; empty for an unknown one."""
    return next((FAMILIES[name] for name in facts.distribution if name in FAMILIES), "")


def install_command(facts: MachineFacts, *programs: str) -> str:
    """The commands of :func:`installation` as one line, as this user types it; a sentence where there are none."""
    if commands := installation(facts, programs):
        return " && ".join(repair.typed(facts) for repair in commands)
    wanted = " and ".join(_UNKNOWN.get(program, program) for program in programs)
    return f"install {wanted} with your distribution's package manager"


def installation(facts: MachineFacts, programs: Iterable[str]) -> tuple[Repair, ...]:
    """The commands that install ``programs`` from fresh lists of packages; none on an unknown distribution."""
    if not (kind := family(facts)):
        return ()
    manager, packages = MANAGERS[kind][0], " ".join(packages_of(facts, programs))
    if kind != "debian":
        return (Repair(f"{manager} {packages}"),)
    return (Repair("apt-get update -q"), Repair(f"{manager} {NO_RECOMMENDS} {packages}"))


def packages_of(facts: MachineFacts, programs: Iterable[str]) -> tuple[str, ...]:
    """The packages with ``programs``, in the names of this distribution."""
    _, names = MANAGERS.get(family(facts), ("", {}))
    return tuple(dict.fromkeys(word for program in programs for word in names.get(program, program).split()))


def sudo(facts: MachineFacts) -> str:
    """The prefix for a command that needs root."""
    return "sudo " if facts.rootless else ""
