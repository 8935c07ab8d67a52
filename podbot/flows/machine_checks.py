"""What ``podbot doctor`` thinks of a machine. Pure: facts in, checks out, each trap by its name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from podbot.engine.private.fit import ULIMIT
from podbot.engine.private.machine import MachineFacts
from podbot.flows.base_image import can_debootstrap

Status = Literal["ok", "warn", "fail"]
OLDEST_PODMAN = (4, 0)
COPES = "podbot's private service is configured around it; an engine that you start yourself is not."

# Family of the distribution -> its install command, and the package of a program where the names differ.
MANAGERS: dict[str, tuple[str, dict[str, str]]] = {
    "debian": ("apt-get install -y", {"newuidmap": "uidmap", "netavark": "netavark aardvark-dns"}),
    "fedora": ("dnf install -y", {"newuidmap": "shadow-utils", "netavark": "netavark aardvark-dns"}),
    "arch": ("pacman -S --noconfirm", {"newuidmap": "shadow", "netavark": "netavark aardvark-dns"}),
    "suse": ("zypper install -y", {"newuidmap": "shadow", "netavark": "netavark aardvark-dns"}),
    "alpine": ("apk add", {"newuidmap": "shadow-uidmap", "netavark": "netavark aardvark-dns"}),
}
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


def install_command(facts: MachineFacts, *programs: str) -> str:
    """The command that installs ``programs`` on this distribution."""
    if facts.platform == "darwin":
        return "brew install podman && podman machine init && podman machine start"
    family = next((FAMILIES[name] for name in facts.distribution if name in FAMILIES), "")
    if not family:
        return f"install {' '.join(programs)} with your distribution's package manager"
    manager, names = MANAGERS[family]
    return f"{_sudo(facts)}{manager} {' '.join(names.get(program, program) for program in programs)}"


def check_machine(facts: MachineFacts, podman_version: str) -> Iterator[Check]:
    """Every check that needs no engine. ``podman_version``: what ``podman --version`` said, or empty."""
    yield check_podman(facts, podman_version)
    if facts.platform != "linux":
        return
    yield check_cgroups(facts)
    yield check_rlimits(facts)
    yield check_systemd(facts)
    yield check_network(facts)
    yield check_init(facts)
    if facts.rootless:
        yield check_user_ids(facts)
        yield check_rootless_network(facts)
    yield check_fuse(facts)
    yield check_base(facts)


def check_podman(facts: MachineFacts, version: str) -> Check:
    """The program is there and new enough."""
    path = facts.programs.get("podman")
    if not path:
        meaning = "Without it podbot can use an engine that runs already (CONTAINER_HOST), and start none."
        return Check("podman", "fail", "not installed", meaning, install_command(facts, "podman"))
    # At most four digits: int() takes superscripts and refuses 5,000 digits.
    match = re.search(r"\b([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?", version)
    number = tuple(int(part) for part in match.groups() if part) if match else ()
    if not number:
        return Check("podman", "fail", path, "It does not say its version.", f"{path} --version")
    found = f"{'.'.join(map(str, number))} ({path})"
    if number < OLDEST_PODMAN:
        return Check("podman", "fail", found, "podbot needs Podman 4 or later.", install_command(facts, "podman"))
    return Check("podman", "ok", found)


def check_cgroups(facts: MachineFacts) -> Check:
    """crun refuses hybrid cgroups; runc does not."""
    if facts.cgroups == "v2":
        return Check("cgroups", "ok", "v2")
    found = f"cgroups {facts.cgroups}"
    meaning = "crun does not run containers here; runc with cgroupfs does. "
    if "runc" not in facts.programs:
        return Check("cgroups", "fail", f"{found}, and no runc", meaning.strip(), install_command(facts, "runc"))
    fix = 'containers.conf: [engine] runtime = "runc", cgroup_manager = "cgroupfs"'
    return Check("cgroups", "warn", found, meaning + COPES, fix)


def check_rlimits(facts: MachineFacts) -> Check:
    """Rootful Podman raises limits, which takes CAP_SYS_RESOURCE."""
    if facts.cap_sys_resource or facts.rootless:
        return Check("rlimits", "ok", f"nofile {facts.nofile}, nproc {facts.nproc}")
    found = f"root without CAP_SYS_RESOURCE (at most nofile {facts.nofile}, nproc {facts.nproc})"
    meaning = f"Podman's default limits are refused. {COPES}"
    nofile, nproc = min(ULIMIT, facts.nofile), min(ULIMIT, facts.nproc)
    fix = f'containers.conf: [containers] default_ulimits = ["nofile={nofile}:{nofile}", "nproc={nproc}:{nproc}"]'
    return Check("rlimits", "warn", found, meaning, fix)


def check_systemd(facts: MachineFacts) -> Check:
    """Without systemd there is no journal, and no cgroup manager but cgroupfs."""
    if facts.systemd:
        return Check("systemd", "ok", "running")
    fix = (
        'containers.conf: [engine] cgroup_manager = "cgroupfs", events_logger = "file";'
        ' [containers] log_driver = "k8s-file"'
    )
    return Check("systemd", "warn", "not running", f"Podman must not ask it for cgroups or the journal. {COPES}", fix)


def check_network(facts: MachineFacts) -> Check:
    """Rootful sandboxes get their bridge from netavark."""
    if "netavark" in facts.programs:
        return Check("netavark", "ok", facts.programs["netavark"])
    meaning = "Sandboxes on the engine's default network may not start; sandbox.network none and host are unaffected."
    return Check("netavark", "warn", "not installed", meaning, install_command(facts, "netavark"))


def check_init(facts: MachineFacts) -> Check:
    """A sandbox's PID 1 is an init that reaps; Podman looks for catatonit."""
    if facts.init:
        return Check("init", "ok", facts.init)
    meaning = "A sandbox's first process must reap what agents leave behind; without an init it does not start."
    return Check("init", "fail", "no catatonit, tini or dumb-init", meaning, install_command(facts, "catatonit"))


def check_user_ids(facts: MachineFacts) -> Check:
    """Rootless: a range of user ids, and the programs that may map it."""
    missing = [name for name in ("newuidmap", "newgidmap") if name not in facts.programs]
    if missing:
        meaning = "Rootless Podman cannot give a sandbox users of its own."
        return Check("user-ids", "fail", f"no {' and '.join(missing)}", meaning, install_command(facts, "newuidmap"))
    if not facts.subids:
        fix = (
            'sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 "$(id -un)" && podman system migrate'
        )
        meaning = "Rootless Podman needs a range of user ids for the users inside a sandbox."
        return Check("user-ids", "fail", "no range for you in /etc/subuid and /etc/subgid", meaning, fix)
    return Check("user-ids", "ok", "newuidmap, and a range in /etc/subuid and /etc/subgid")


def user_ids_hint(facts: MachineFacts) -> str:
    """Why this user's own Podman can unpack no image, and what mends it; empty when that is not so."""
    if not facts.rootless or facts.platform != "linux" or (check := check_user_ids(facts)).status == "ok":
        return ""
    return f"Rootless Podman can build or load no image: {check.found}. `{check.fix}` mends that."


def check_rootless_network(facts: MachineFacts) -> Check:
    """Rootless: slirp4netns or pasta, and the device they need."""
    helpers = [name for name in ("pasta", "slirp4netns") if name in facts.programs]
    meaning = 'A rootless sandbox has no network; sandbox.network = "none" works.'
    if not helpers:
        return Check(
            "rootless-network", "fail", "no slirp4netns or pasta", meaning, install_command(facts, "slirp4netns")
        )
    if not facts.dev_net_tun:
        fix = "sudo modprobe tun && sudo chmod 0666 /dev/net/tun"
        return Check("rootless-network", "warn", "/dev/net/tun may not be opened", meaning, fix)
    return Check("rootless-network", "ok", f"{helpers[0]}, /dev/net/tun")


def check_fuse(facts: MachineFacts) -> Check:
    """Nested containers use fuse-overlayfs."""
    if facts.dev_fuse:
        return Check("fuse", "ok", "/dev/fuse")
    meaning = "Nested containers fall back to the slow vfs storage; set sandbox.mount_dev_fuse = false."
    fix = "sudo modprobe fuse && sudo chmod 0666 /dev/fuse" if facts.rootless else "modprobe fuse"
    return Check("fuse", "warn", "/dev/fuse may not be opened", meaning, fix)


def check_base(facts: MachineFacts) -> Check:
    """Where the sandbox's base image can come from."""
    if can_debootstrap(facts):
        return Check("base-image", "ok", f"mmdebstrap, {facts.codename} packages")
    if {"debian", "ubuntu"} & {*facts.distribution}:
        meaning = "`podbot setup` would have to pull its base from an image registry."
        return Check("base-image", "warn", "no mmdebstrap", meaning, install_command(facts, "mmdebstrap"))
    return Check("base-image", "ok", "pulled through the engine (not a Debian or Ubuntu machine)")


def _sudo(facts: MachineFacts) -> str:
    return "sudo " if facts.rootless else ""
