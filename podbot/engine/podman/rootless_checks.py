"""The checks of ``podbot doctor`` for an ordinary user's engine on a machine. Pure: facts in, checks out."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from podbot.engine.check import Check, Repair, Status, install_command, lacks, repaired_by
from podbot.engine.podman.private.podman_facts import PodmanFacts
from podbot.machine import SUBIDS, KernelKeys

HELPERS = ("pasta", "slirp4netns")
NEEDED_CONTROLLERS = ("cpu", "memory", "pids")  # for sandbox.cpus, memory and pids; cpuset is not needed
_BY_HAND = (
    f"Have root add {SUBIDS} ids that no other user has:"
    " `usermod --add-subuids FIRST-LAST --add-subgids FIRST-LAST USER`"
)
KEYS_LOW = 0.9  # the part of the quota of kernel keys from which doctor warns
AGAIN = "log out of all sessions and in again"


def check_rootless(facts: PodmanFacts, number: tuple[int, ...], network: str) -> Iterator[Check]:
    """The checks for ordinary users only. ``number``: Podman's version; ``network``: sandbox.network."""
    yield check_user_ids(facts)
    yield check_rootless_network(facts, number, network)
    if facts.cgroups == "v2" and facts.systemd:
        yield check_delegation(facts)
    if facts.keys is not None:
        yield check_keys(facts, facts.keys)


def check_user_ids(facts: PodmanFacts) -> Check:
    """Rootless: a range of user ids, and the programs that map it."""
    missing = [name for name in ("newuidmap", "newgidmap") if name not in facts.programs]
    if missing:
        meaning = "Rootless Podman cannot create users inside a sandbox."
        return lacks(facts, "user-ids", "fail", (f"no {' and '.join(missing)}", meaning), "newuidmap")
    if not facts.subids:
        meaning = "Rootless Podman needs a range of user ids for the users inside a sandbox."
        texts = ("no range for you in /etc/subuid and /etc/subgid", meaning)
        if facts.free_subids is None:  # another user's range would let each change the files of the other's sandboxes
            return Check("user-ids", "fail", *texts, _BY_HAND)
        name = shlex.quote(facts.user or str(facts.uid))
        ids = f"{facts.free_subids}-{facts.free_subids + SUBIDS - 1}"
        add = Repair(f"usermod --add-subuids {ids} --add-subgids {ids} {name}")
        return repaired_by(facts, "user-ids", "fail", texts, add, Repair("podman system migrate", root=False))
    return Check("user-ids", "ok", "newuidmap, and a range in /etc/subuid and /etc/subgid")


def user_ids_hint(facts: PodmanFacts) -> str:
    """Why this user's own Podman cannot unpack images, with a fix; empty if it can."""
    if not facts.rootless or facts.platform != "linux" or (check := check_user_ids(facts)).status == "ok":
        return ""
    fix = f"`{check.fix}` fixes that." if "`" not in check.fix else f"{check.fix}."
    return f"Rootless Podman cannot build or load images: {check.found}. {fix}"


def check_rootless_network(facts: PodmanFacts, number: tuple[int, ...], network: str) -> Check:
    """Rootless: the network program that Podman uses, and the device that it needs.

    Only a warning if ``network`` needs neither.
    """
    bad: Status = "warn" if network in ("none", "host", "filtered") else "fail"
    meaning = 'A sandbox on the engine\'s default network does not start; sandbox.network = "none" works.'
    wanted = _helpers(facts, number)
    helper = next((name for name in wanted if name in facts.programs), "")
    if not helper:
        others = [name for name in HELPERS if name in facts.programs]
        found = f"no {' or '.join(wanted)}"
        if others and number:
            found += f" ({others[0]} is installed, but Podman {number[0]} does not use it by default)"
        return lacks(facts, "rootless-network", bad, (found, meaning), wanted[0])
    if not facts.dev_net_tun:
        texts = ("/dev/net/tun may not be opened", meaning)
        if facts.container:
            fix = "Start the container that podbot runs in with `--device /dev/net/tun`"
            return Check("rootless-network", bad, *texts, fix)
        open_to_all = Repair("chmod 0666 /dev/net/tun")
        return repaired_by(facts, "rootless-network", bad, texts, Repair("modprobe tun"), open_to_all)
    return Check("rootless-network", "ok", f"{helper}, /dev/net/tun")


def _helpers(facts: PodmanFacts, number: tuple[int, ...]) -> tuple[str, ...]:
    """The programs of which Podman needs one: the configured one, else pasta from version 5 on."""
    configured = facts.network_conf.get("default_rootless_network_cmd", "")
    if configured in HELPERS:
        return (configured,)
    if not number:
        return HELPERS
    return ("pasta",) if number >= (5,) else ("slirp4netns",)


def check_keys(facts: PodmanFacts, keys: KernelKeys) -> Check:
    """Rootless: each running container has a key of this user's quota, which the kernel calls a full disk."""
    found = f"{keys.number} of {keys.most} kernel keys used"
    number, size = (max(1, most) for most in (keys.most, keys.most_size))
    used = max(keys.number / number, keys.size / size)
    if used < KEYS_LOW:
        return Check("kernel-keys", "ok", found)
    if keys.size / size > keys.number / number:
        found += f", with {keys.size} of {keys.most_size} bytes"
    meaning = "Each running sandbox needs one; without, it does not start. Sessions that are stopped give theirs back."
    raised = Repair(f"sysctl -w kernel.keys.maxkeys={10 * number} kernel.keys.maxbytes={10 * size}")
    return repaired_by(facts, "kernel-keys", "fail" if used >= 1 else "warn", (found, meaning), raised)


def check_delegation(facts: PodmanFacts) -> Check:
    """Rootless on cgroup v2: limits need controllers that systemd delegates, and D-Bus to request them."""
    meaning = "sandbox.memory, sandbox.cpus and sandbox.pids have no effect, or sessions with them do not start."
    if not facts.user_bus or facts.delegated is None:
        missing = "D-Bus session" if not facts.user_bus else "systemd user manager"
        found = f"you have no {missing}, so Podman does not use systemd cgroups"
        install: tuple[str, ...] = ()
        if not facts.user_bus and not facts.bus_unit:
            fix, install = f"{install_command(facts, 'user-bus')}, then {AGAIN}", ("user-bus",)
        else:
            fix = (
                "log in by ssh or at a console, because `su` and `sudo -u` do not open a session; without a login:"
                f" sudo loginctl enable-linger {facts.user or facts.uid}"
            )
        return Check("delegation", "warn", found, meaning, fix, install=install)
    lacking = [name for name in NEEDED_CONTROLLERS if name not in facts.delegated]
    if lacking:
        found = f"systemd does not delegate {', '.join(lacking)} to you"
        fix = (
            "sudo mkdir -p /etc/systemd/system/user@.service.d"
            " && printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n'"
            " | sudo tee /etc/systemd/system/user@.service.d/podbot-delegation.conf"
            f" && sudo systemctl daemon-reload, then {AGAIN}"
        )
        return Check("delegation", "warn", found, meaning, fix)
    return Check("delegation", "ok", ", ".join(sorted(facts.delegated)))
