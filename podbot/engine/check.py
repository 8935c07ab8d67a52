"""A check of ``podbot doctor``, and the commands that fix it: what engines' checks and podbot's own have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from podbot.machine import MachineFacts

Status = Literal["ok", "warn", "fail"]

# Family of the distribution -> its install command, and the package of a program where the names differ.
_NAMES = {"netavark": "netavark aardvark-dns", "pasta": "passt", "nft": "nftables"}
MANAGERS: dict[str, tuple[str, dict[str, str]]] = {
    "debian": ("apt-get install -y", {**_NAMES, "newuidmap": "uidmap", "user-bus": "dbus-user-session"}),
    "fedora": ("dnf install -y", {**_NAMES, "newuidmap": "shadow-utils", "user-bus": "dbus-daemon"}),
    "arch": ("pacman -S --noconfirm", {**_NAMES, "newuidmap": "shadow", "user-bus": "dbus"}),
    "suse": ("zypper install -y", {**_NAMES, "newuidmap": "shadow", "user-bus": "dbus-1"}),
    "alpine": ("apk add", {**_NAMES, "newuidmap": "shadow-uidmap", "user-bus": "dbus"}),
}
_UNKNOWN = {"user-bus": "the D-Bus user session"}  # what has no program of its own, for any other distribution
FAMILIES = {
    "debian": "debian", "ubuntu": "debian", "fedora": "fedora", "rhel": "fedora", "centos": "fedora",
    "arch": "arch", "suse": "suse", "opensuse": "suse", "sles": "suse", "alpine": "alpine",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that doctor looked at. ``meaning`` and ``fix`` are empty when all is well."""

    name: str
    status: Status
    found: str
    meaning: str = ""
    fix: str = ""


def family(facts: MachineFacts) -> str:
    """The family of the distribution, a key of :data:`MANAGERS`; empty when it is another."""
    return next((FAMILIES[name] for name in facts.distribution if name in FAMILIES), "")


def install_command(facts: MachineFacts, *programs: str) -> str:
    """The command that installs ``programs`` on this distribution."""
    if not (kind := family(facts)):
        wanted = " and ".join(_UNKNOWN.get(program, program) for program in programs)
        return f"install {wanted} with your distribution's package manager"
    manager, names = MANAGERS[kind]
    return f"{sudo(facts)}{manager} {' '.join(names.get(program, program) for program in programs)}"


def sudo(facts: MachineFacts) -> str:
    """What stands before a command that takes root."""
    return "sudo " if facts.rootless else ""
