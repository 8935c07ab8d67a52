"""The programs that podbot's own Podman needs on a machine. Pure: facts in, names of programs out.

:func:`podbot.engine.check.installation` turns them into packages and commands.
"""

from __future__ import annotations

from podbot.engine.podman.private.podman_facts import PodmanFacts

# Podman's package recommends most of these, and recommended packages are not installed.
HELPERS = ("podman", "fuse-overlayfs", "newuidmap", "netavark", "aardvark-dns")
# Networks of an ordinary user, and the rules of networks.
OF_PODMAN_4, OF_PODMAN_5 = ("slirp4netns", "iptables"), ("pasta", "nft")
OF_DEBIAN = ("mmdebstrap", "git")  # with which podbot makes its base image without a registry


def missing_programs(facts: PodmanFacts, number: tuple[int, ...], *, debian: bool) -> tuple[str, ...]:
    """What is missing for a complete engine, in the names of :mod:`podbot.engine.check`.

    ``number``: the version of the Podman that is installed or would be; if it is not known, the programs that depend
    on it are left out. ``debian``: the machine's packages are Debian's or Ubuntu's.
    """
    wanted = list(HELPERS)
    wanted += [] if facts.init else ["catatonit"]
    # crun refuses hybrid cgroups ("cgroups in hybrid mode not supported") and is leaving v1; runc runs there.
    wanted += ["crun"] if facts.cgroups == "v2" else ["runc"]
    if number:
        wanted += OF_PODMAN_5 if number >= (5,) else OF_PODMAN_4
    wanted += OF_DEBIAN if debian else ()
    missing = [name for name in wanted if name not in facts.programs]
    # Limits of an ordinary user's containers: Podman asks the user's systemd for cgroups, over the user's own D-Bus.
    if facts.rootless and facts.systemd and facts.cgroups == "v2" and not facts.bus_unit and not facts.user_bus:
        missing.append("user-bus")
    return tuple(missing)
