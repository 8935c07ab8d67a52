"""What ``podbot doctor`` thinks of a machine for Podman. Pure: facts in, checks out, each trap by its name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podbot.engine.check import Check, family, install_command
from podbot.engine.podman.private.fit import ULIMIT
from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.engine.podman.rootless_checks import check_rootless

OLDEST_PODMAN = (4, 0)
ON_MACOS = "brew install podman && podman machine init && podman machine start"
COPES = "podbot's private service is configured around it; an engine that you start yourself is not."


def check_machine(facts: PodmanFacts, podman_version: str, *, network: str = "default") -> Iterator[Check]:
    """Every check of what Podman needs, without asking one.

    ``podman_version``: what ``podman --version`` said, or empty. ``network``: ``sandbox.network``.
    """
    number = podman_number(podman_version)
    yield check_podman(facts, podman_version)
    if facts.platform != "linux":
        return
    yield check_cgroups(facts)
    yield check_runtime(facts)
    yield check_rlimits(facts)
    yield check_systemd(facts)
    yield check_network(facts, number, network)
    yield check_init(facts)
    if facts.rootless:
        yield from check_rootless(facts, number, network)


def check_podman(facts: PodmanFacts, version: str) -> Check:
    """The program is there and new enough."""
    path = facts.programs.get("podman")
    if not path:
        meaning = "Without it podbot can use an engine that runs already (CONTAINER_HOST), and start none."
        fix = ON_MACOS if facts.platform == "darwin" else install_command(facts, "podman")
        return Check("podman", "fail", "not installed", meaning, fix)
    number = podman_number(version)
    if not number:
        return Check("podman", "fail", path, "It does not say its version.", f"{path} --version")
    found = f"{'.'.join(map(str, number))} ({path})"
    if number < OLDEST_PODMAN:
        return Check("podman", "fail", found, "podbot needs Podman 4 or later.", install_command(facts, "podman"))
    return Check("podman", "ok", found)


def check_cgroups(facts: PodmanFacts) -> Check:
    """crun refuses hybrid cgroups and takes v1; runc takes both."""
    if facts.cgroups == "v2":
        return Check("cgroups", "ok", "v2")
    found = f"cgroups {facts.cgroups}"
    if "runc" not in facts.programs:
        found, fix = f"{found}, and no runc", install_command(facts, "runc")
        if facts.cgroups == "v1" and "crun" in facts.programs:
            meaning = "podbot is tested with runc and cgroupfs on such machines; crun says that it may drop cgroup v1."
            return Check("cgroups", "warn", found, meaning, fix)
        return Check("cgroups", "fail", found, "crun does not run containers here; runc with cgroupfs does.", fix)
    meaning = "crun is not for such machines; runc with cgroupfs runs containers here. "
    if facts.rootless:
        meaning += "A rootless engine enforces no limit here: a session can use up this machine's memory. "
    fix = 'containers.conf: [engine] runtime = "runc", cgroup_manager = "cgroupfs"'
    return Check("cgroups", "warn", found, meaning + COPES, fix)


def check_runtime(facts: PodmanFacts) -> Check:
    """The program that makes a container out of a process: crun, and runc where cgroups are not v2."""
    there = [name for name in ("crun", "runc") if name in facts.programs]
    if not there:
        meaning = "Podman starts every container with one of them; no session can start."
        fix = install_command(facts, "crun" if facts.cgroups == "v2" else "runc")
        return Check("runtime", "fail", "no crun or runc", meaning, fix)
    if there == ["runc"] and facts.cgroups == "v2":
        meaning = "Podman takes runc where there is no crun. podbot is tested with crun on cgroup v2."
        return Check("runtime", "warn", "runc alone", meaning, install_command(facts, "crun"))
    best = "crun" if facts.cgroups == "v2" else there[-1]
    return Check("runtime", "ok", facts.programs[best])


def check_rlimits(facts: PodmanFacts) -> Check:
    """Rootful Podman raises limits, which takes CAP_SYS_RESOURCE."""
    if facts.cap_sys_resource or facts.rootless:
        return Check("rlimits", "ok", f"nofile {facts.nofile}, nproc {facts.nproc}")
    found = f"root without CAP_SYS_RESOURCE (at most nofile {facts.nofile}, nproc {facts.nproc})"
    meaning = f"Podman's default limits are refused. {COPES}"
    nofile, nproc = min(ULIMIT, facts.nofile), min(ULIMIT, facts.nproc)
    fix = f'containers.conf: [containers] default_ulimits = ["nofile={nofile}:{nofile}", "nproc={nproc}:{nproc}"]'
    return Check("rlimits", "warn", found, meaning, fix)


def check_systemd(facts: PodmanFacts) -> Check:
    """Without systemd there is no journal, and no cgroup manager but cgroupfs."""
    if facts.systemd:
        return Check("systemd", "ok", "running")
    fix = (
        'containers.conf: [engine] cgroup_manager = "cgroupfs", events_logger = "file";'
        ' [containers] log_driver = "k8s-file"'
    )
    return Check("systemd", "warn", "not running", f"Podman must not ask it for cgroups or the journal. {COPES}", fix)


def check_network(facts: PodmanFacts, number: tuple[int, ...], network: str) -> Check:
    """Rootful sandboxes get their bridge from netavark, and its rules from nft or iptables."""
    meaning = "Sandboxes on the engine's default network may not start; sandbox.network none and host are unaffected."
    if "netavark" not in facts.programs:
        return Check("netavark", "warn", "not installed", meaning, install_command(facts, "netavark"))
    found = facts.programs["netavark"]
    if facts.rootless or network in ("none", "host"):  # an ordinary user's default network has no bridge
        return Check("netavark", "ok", found)
    firewall = _firewall(facts, number)
    if firewall and not any(name in facts.programs for name in firewall):
        meaning = 'A sandbox on the engine\'s default network does not start; sandbox.network = "none" works.'
        found = f"{found}, and no {' or '.join(firewall)}, with which it makes a network's rules"
        return Check("netavark", "fail", found, meaning, install_command(facts, firewall[0]))
    return Check("netavark", "ok", found)


def _firewall(facts: PodmanFacts, number: tuple[int, ...]) -> tuple[str, ...]:
    """Programs of which netavark needs one; empty: none."""
    driver = str(facts.network_conf.get("firewall_driver", ""))
    if driver in ("none", "firewalld"):  # the latter is asked over D-Bus
        return ()
    if driver in ("nftables", "iptables"):
        return ("nft",) if driver == "nftables" else ("iptables",)
    if not number:
        return ("nft", "iptables")
    if number >= (5,):
        # Debian's netavark 1.14: "nftables error: unable to execute nft". Elsewhere it was built for either.
        return ("nft",) if family(facts) == "debian" else ("nft", "iptables")
    return ("iptables",)


def check_init(facts: PodmanFacts) -> Check:
    """A sandbox's PID 1 is an init that reaps; Podman looks for catatonit."""
    if facts.init:
        return Check("init", "ok", facts.init)
    meaning = "A sandbox's first process must reap what agents leave behind; without an init it does not start."
    return Check("init", "fail", "no catatonit, tini or dumb-init", meaning, install_command(facts, "catatonit"))


def podman_number(version: str) -> tuple[int, ...]:
    """``podman version 5.4.2`` as (5, 4, 2); empty when there is no number in it."""
    # At most four digits: int() takes superscripts and refuses 5,000 digits.
    match = re.search(r"\b([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?", version)
    return tuple(int(part) for part in match.groups() if part) if match else ()
