"""What ``podbot doctor`` thinks of a machine for an ordinary user's engine. Pure: facts in, checks out."""

from __future__ import annotations

from collections.abc import Iterator

from podbot.engine.check import Check, Status, install_command
from podbot.engine.podman.private.podman_facts import PodmanFacts

HELPERS = ("pasta", "slirp4netns")
NEEDED_CONTROLLERS = ("cpu", "memory", "pids")  # of sandbox.cpus, memory and pids; cpuset is not asked for
AGAIN = "log out of all sessions and in again"


def check_rootless(facts: PodmanFacts, number: tuple[int, ...], network: str) -> Iterator[Check]:
    """The checks that matter to an ordinary user alone. ``number``: Podman's version; ``network``: sandbox.network."""
    yield check_user_ids(facts)
    yield check_rootless_network(facts, number, network)
    if facts.cgroups == "v2" and facts.systemd:
        yield check_delegation(facts)


def check_user_ids(facts: PodmanFacts) -> Check:
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


def user_ids_hint(facts: PodmanFacts) -> str:
    """Why this user's own Podman can unpack no image, and how to fix it; empty when it can."""
    if not facts.rootless or facts.platform != "linux" or (check := check_user_ids(facts)).status == "ok":
        return ""
    return f"Rootless Podman can build or load no image: {check.found}. `{check.fix}` fixes that."


def check_rootless_network(facts: PodmanFacts, number: tuple[int, ...], network: str) -> Check:
    """Rootless: the program that Podman uses, and the device that it needs.

    Only a warning while ``network`` is one that takes neither.
    """
    bad: Status = "warn" if network in ("none", "host") else "fail"
    meaning = 'A sandbox on the engine\'s default network does not start; sandbox.network = "none" works.'
    wanted = _helpers(facts, number)
    helper = next((name for name in wanted if name in facts.programs), "")
    if not helper:
        others = [name for name in HELPERS if name in facts.programs]
        found = f"no {' or '.join(wanted)}"
        if others and number:
            found += f" ({others[0]} is there, and Podman {number[0]} does not use it unless told to)"
        return Check("rootless-network", bad, found, meaning, install_command(facts, wanted[0]))
    if not facts.dev_net_tun:
        fix = "sudo modprobe tun && sudo chmod 0666 /dev/net/tun"
        if facts.container:
            fix = "Start the container that podbot runs in with `--device /dev/net/tun`"
        return Check("rootless-network", bad, "/dev/net/tun may not be opened", meaning, fix)
    return Check("rootless-network", "ok", f"{helper}, /dev/net/tun")


def _helpers(facts: PodmanFacts, number: tuple[int, ...]) -> tuple[str, ...]:
    """The programs of which Podman needs one: the configured one, else pasta from version 5 on."""
    configured = facts.network_conf.get("default_rootless_network_cmd", "")
    if configured in HELPERS:
        return (configured,)
    if not number:
        return HELPERS
    return ("pasta",) if number >= (5,) else ("slirp4netns",)


def check_delegation(facts: PodmanFacts) -> Check:
    """Rootless on cgroup v2: limits take controllers that systemd passes on, and a D-Bus over which to ask for them."""
    meaning = "sandbox.memory, sandbox.cpus and sandbox.pids do not hold, or no session with them starts."
    if not facts.user_bus or facts.delegated is None:
        missing = "D-Bus session" if not facts.user_bus else "systemd user manager"
        found = f"no {missing} of yours, so Podman uses no systemd cgroups"
        if not facts.user_bus and not facts.bus_unit:
            fix = f"{install_command(facts, 'user-bus')}, then {AGAIN}"
        else:
            fix = (
                "log in by ssh or at a console: `su` and `sudo -u` open no session of their own; without a login:"
                f" sudo loginctl enable-linger {facts.user or facts.uid}"
            )
        return Check("delegation", "warn", found, meaning, fix)
    lacking = [name for name in NEEDED_CONTROLLERS if name not in facts.delegated]
    if lacking:
        found = f"systemd does not pass on {', '.join(lacking)} to you"
        fix = (
            "sudo mkdir -p /etc/systemd/system/user@.service.d"
            " && printf '[Service]\\nDelegate=cpu cpuset io memory pids\\n'"
            " | sudo tee /etc/systemd/system/user@.service.d/delegate.conf"
            f" && sudo systemctl daemon-reload, then {AGAIN}"
        )
        return Check("delegation", "warn", found, meaning, fix)
    return Check("delegation", "ok", ", ".join(sorted(facts.delegated)))
