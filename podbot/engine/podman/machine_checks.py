"""The checks of ``podbot doctor`` for Podman on a machine. Pure: facts in, checks out."""

from __future__ import annotations

import re
from collections.abc import Iterator

from podbot.engine.check import Check, family, install_command, lacks
from podbot.engine.podman.private.fit import ULIMIT
from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.engine.podman.rootless_checks import check_rootless

OLDEST_PODMAN = (4, 0)
ON_MACOS = "brew install podman && podman machine init && podman machine start"
YOURS = "podbot configures only the engine service that it starts itself, and not if CONTAINERS_CONF is set."
OURS = "podbot's engine service"


def check_machine(
    facts: PodmanFacts, podman_version: str, *, network: str = "default", private: bool = True
) -> Iterator[Check]:
    """Every check of Podman's needs, without contacting an engine.

    ``podman_version``: the output of ``podman --version``, or empty. ``network``: ``sandbox.network``. ``private``:
    podbot starts the engine. What it configures that engine for is no warning.
    """
    number = podman_number(podman_version)
    adapted = private and not facts.conf_chosen
    yield check_podman(facts, podman_version)
    if facts.platform != "linux":
        return
    yield check_cgroups(facts, adapted=adapted)
    yield check_runtime(facts)
    yield check_rlimits(facts, adapted=adapted)
    yield check_systemd(facts, adapted=adapted)
    yield check_network(facts, number, network)
    yield check_init(facts)
    if facts.rootless:
        yield from check_rootless(facts, number, network)


def check_podman(facts: PodmanFacts, version: str) -> Check:
    """Whether the program exists and is new enough."""
    path = facts.programs.get("podman")
    if not path:
        meaning = "Without it podbot cannot start an engine; it can use one that runs already (CONTAINER_HOST)."
        if facts.platform == "darwin":
            return Check("podman", "fail", "not installed", meaning, ON_MACOS)
        return lacks(facts, "podman", "fail", ("not installed", meaning), "podman")
    number = podman_number(version)
    if not number:
        return Check("podman", "fail", path, "It does not report a version.", f"{path} --version")
    found = f"{'.'.join(map(str, number))} ({path})"
    if number < OLDEST_PODMAN:
        return Check("podman", "fail", found, "podbot needs Podman 4 or later.", install_command(facts, "podman"))
    return Check("podman", "ok", found)


def check_cgroups(facts: PodmanFacts, *, adapted: bool = True) -> Check:
    """crun refuses hybrid cgroups and accepts v1; runc accepts both. ``adapted``: podbot configures the engine."""
    if facts.cgroups == "v2":
        return Check("cgroups", "ok", "v2")
    found = f"cgroups {facts.cgroups}"
    if "runc" not in facts.programs:
        found = f"{found}, and no runc"
        if facts.cgroups == "v1" and "crun" in facts.programs:
            meaning = "podbot is tested with runc and cgroupfs on such machines; crun may drop support for cgroup v1."
            return lacks(facts, "cgroups", "warn", (found, meaning), "runc")
        meaning = "crun does not run containers here; runc with cgroupfs does."
        return lacks(facts, "cgroups", "fail", (found, meaning), "runc")
    unlimited = "A rootless engine enforces no limit here: a session can exhaust this machine's memory."
    if not adapted:
        meaning = f"crun does not support such machines; runc with cgroupfs does. {YOURS}"
        fix = 'containers.conf: [engine] runtime = "runc", cgroup_manager = "cgroupfs"'
        return Check("cgroups", "warn", found, f"{unlimited} {meaning}" if facts.rootless else meaning, fix)
    if facts.rootless:
        fix = "start this machine with cgroup v2 (kernel option systemd.unified_cgroup_hierarchy=1)"
        return Check("cgroups", "warn", found, unlimited, fix)
    return Check("cgroups", "ok", f"{facts.cgroups}; {OURS} uses runc and cgroupfs")


def check_runtime(facts: PodmanFacts) -> Check:
    """The OCI runtime: crun, or runc where cgroups are not v2."""
    there = [name for name in ("crun", "runc") if name in facts.programs]
    if not there:
        meaning = "Podman starts every container with one of them; no session can start."
        program = "crun" if facts.cgroups == "v2" else "runc"
        return lacks(facts, "runtime", "fail", ("no crun or runc", meaning), program)
    if there == ["runc"] and facts.cgroups == "v2":
        meaning = "Podman uses runc if there is no crun. podbot is tested with crun on cgroup v2."
        return lacks(facts, "runtime", "warn", ("runc alone", meaning), "crun")
    best = "crun" if facts.cgroups == "v2" else there[-1]
    return Check("runtime", "ok", facts.programs[best])


def check_rlimits(facts: PodmanFacts, *, adapted: bool = True) -> Check:
    """Rootful Podman raises limits, which needs CAP_SYS_RESOURCE. ``adapted``: podbot configures the engine."""
    if facts.cap_sys_resource or facts.rootless:
        return Check("rlimits", "ok", f"nofile {facts.nofile}, nproc {facts.nproc}")
    nofile, nproc = min(ULIMIT, facts.nofile), min(ULIMIT, facts.nproc)
    if adapted:
        return Check("rlimits", "ok", f"no CAP_SYS_RESOURCE; {OURS} uses nofile {nofile}, nproc {nproc}")
    found = f"root without CAP_SYS_RESOURCE (at most nofile {facts.nofile}, nproc {facts.nproc})"
    meaning = f"Podman's default limits are refused. {YOURS}"
    fix = f'containers.conf: [containers] default_ulimits = ["nofile={nofile}:{nofile}", "nproc={nproc}:{nproc}"]'
    return Check("rlimits", "warn", found, meaning, fix)


def check_systemd(facts: PodmanFacts, *, adapted: bool = True) -> Check:
    """Without systemd there is no journal, and cgroupfs is the only cgroup manager. ``adapted``: see above."""
    if facts.systemd:
        return Check("systemd", "ok", "running")
    if adapted:
        return Check("systemd", "ok", f"not running; {OURS} uses cgroupfs and log files")
    fix = (
        'containers.conf: [engine] cgroup_manager = "cgroupfs", events_logger = "file";'
        ' [containers] log_driver = "k8s-file"'
    )
    return Check("systemd", "warn", "not running", f"Podman must not ask it for cgroups or the journal. {YOURS}", fix)


def check_network(facts: PodmanFacts, number: tuple[int, ...], network: str) -> Check:
    """Rootful sandboxes get their bridge from netavark, which sets its rules with nft or iptables."""
    meaning = "Sandboxes on the engine's default network may not start; sandbox.network none and host are unaffected."
    if "netavark" not in facts.programs:
        return lacks(facts, "netavark", "warn", ("not installed", meaning), "netavark")
    found = facts.programs["netavark"]
    if facts.rootless or network in ("none", "host", "filtered"):  # an ordinary user's default network has no bridge
        return Check("netavark", "ok", found)
    firewall = _firewall(facts, number)
    if firewall and not any(name in facts.programs for name in firewall):
        meaning = 'A sandbox on the engine\'s default network does not start; sandbox.network = "none" works.'
        found = f"{found}, and no {' or '.join(firewall)}, with which it sets a network's rules"
        return lacks(facts, "netavark", "fail", (found, meaning), firewall[0])
    return Check("netavark", "ok", found)


def _firewall(facts: PodmanFacts, number: tuple[int, ...]) -> tuple[str, ...]:
    """Programs of which netavark needs one; empty if it needs none."""
    driver = str(facts.network_conf.get("firewall_driver", ""))
    if driver in ("none", "firewalld"):  # the latter is asked over D-Bus
        return ()
    if driver in ("nftables", "iptables"):
        return ("nft",) if driver == "nftables" else ("iptables",)
    if not number:
        return ("nft", "iptables")
    if number >= (5,):
        # Debian's netavark 1.14: "nftables error: unable to execute nft". Elsewhere it may be built for either.
        return ("nft",) if family(facts) == "debian" else ("nft", "iptables")
    return ("iptables",)


def check_init(facts: PodmanFacts) -> Check:
    """A sandbox's PID 1 is an init that reaps processes; Podman looks for catatonit."""
    if facts.init:
        return Check("init", "ok", facts.init)
    meaning = "A sandbox's first process must reap what agents leave behind; without an init it does not start."
    return lacks(facts, "init", "fail", ("no catatonit, tini or dumb-init", meaning), "catatonit")


def podman_number(version: str) -> tuple[int, ...]:
    """``podman version 5.4.2`` as (5, 4, 2); empty when there is no number in it."""
    # At most four digits, because int() refuses 5,000; [0-9], because \d matches digits of other scripts.
    match = re.search(r"\b([0-9]{1,4})\.([0-9]{1,4})(?:\.([0-9]{1,4}))?", version)
    return tuple(int(part) for part in match.groups() if part) if match else ()
