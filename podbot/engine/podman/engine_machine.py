"""This machine as Podman sees it, an :class:`podbot.engine.driver.EngineMachine`, and the programs that Podman needs.

:func:`podbot.engine.check.installation` turns those into packages and commands.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from podbot.engine.check import Check, family
from podbot.engine.podman.machine_checks import (
    OLDEST_PODMAN,
    check_cgroups,
    check_init,
    check_machine,
    check_network,
    check_runtime,
    podman_number,
)
from podbot.engine.podman.private.podman_facts import HELPER_DIRECTORIES, PodmanFacts
from podbot.engine.podman.rootless_checks import check_rootless_network, check_user_ids, user_ids_hint
from podbot.machine import Disk, disk

# Podman's package recommends most of these, and recommended packages are not installed.
HELPERS = ("podman", "fuse-overlayfs", "newuidmap", "netavark", "aardvark-dns")
# Networks of an ordinary user, and the rules of networks.
OF_PODMAN_4, OF_PODMAN_5 = ("slirp4netns", "iptables"), ("pasta", "nft")
OF_DEBIAN = ("mmdebstrap", "git")  # with which podbot makes its base image without a registry


class PodmanMachine:
    """``version``: the output of ``podman --version``; None: the program is run when it is needed.

    ``look``: finds the file system of a path. ``candidate``: the version that the package manager would install.
    """

    def __init__(
        self,
        facts: PodmanFacts,
        version: str | None = None,
        *,
        look: Callable[[str], Disk | None] = disk,
        candidate: Callable[[], str] | None = None,
    ) -> None:
        self.facts = facts
        self._version = version
        self._look = look
        self._candidate = candidate or (lambda: candidate_version(facts))

    def disk(self, path: str) -> Disk | None:
        return self._look(path)

    @property
    def image_hint(self) -> str:
        return user_ids_hint(self.facts)

    def checks(self, network: str, *, private: bool) -> Iterator[Check]:
        return check_machine(self.facts, self._program_version(), network=network, private=private)

    def problems(self, network: str, *, version: str = "", rootless: bool | None = None) -> list[Check]:
        as_user = self.facts.rootless if rootless is None else rootless
        found = self._needed(version or self._program_version(), network, rootless=as_user)
        return [check for check in found if check.status == "fail"]

    def missing(self) -> tuple[str, ...]:
        return missing_programs(self.facts, self._number(), debian=family(self.facts) == "debian")

    def undecided(self) -> tuple[tuple[str, ...], ...]:
        if self._number():
            return ()
        sets = (
            tuple(name for name in found if name not in self.facts.programs) for found in (OF_PODMAN_4, OF_PODMAN_5)
        )
        return tuple(found for found in sets if found)

    def unusable(self) -> str:
        number = () if "podman" in self.facts.programs else podman_number(self._candidate())
        if not number or number >= OLDEST_PODMAN:
            return ""
        return f"the distribution's Podman is {'.'.join(map(str, number))}, and podbot needs Podman 4 or later"

    def _number(self) -> tuple[int, ...]:
        """The version of the Podman that is here, or that packages would bring; empty if it is not known."""
        return podman_number(self._program_version() or self._candidate())

    def _needed(self, version: str, network: str, *, rootless: bool) -> Iterator[Check]:
        facts = self.facts
        # Without podman here, the engine is on another machine, or on the host of our container: it is not checked.
        if facts.platform != "linux" or "podman" not in facts.programs:
            return
        # A podman elsewhere (Nix, Guix, Homebrew) has its helpers in directories that only its wrapper knows.
        if os.path.dirname(facts.programs["podman"]) not in HELPER_DIRECTORIES:
            return
        number = podman_number(version)
        yield check_cgroups(facts)
        yield check_runtime(facts)
        yield check_init(facts)
        if rootless != facts.rootless:
            return  # another user's engine, such as root's through its socket
        yield check_network(facts, number, network)
        if rootless:
            yield check_user_ids(facts)
            yield check_rootless_network(facts, number, network)

    def _program_version(self) -> str:
        if self._version is None:
            self._version = podman_version(self.facts.programs.get("podman", ""))
        return self._version


def candidate_version(facts: PodmanFacts) -> str:
    """The version of Podman that apt would install; empty if that is not known."""
    import re
    import subprocess

    if family(facts) != "debian" or "apt-cache" not in facts.programs:
        return ""
    try:
        # Its path, not its name: PATH may contain the working directory, which may be a hostile repository.
        done = subprocess.run(
            [facts.programs["apt-cache"], "policy", "podman"], cwd="/",
            env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r"^ *Candidate: *([0-9]\S*)", done.stdout, re.MULTILINE)
    return found[1] if found else ""


def podman_version(podman: str) -> str:
    """The version output of the program at this path; empty if there is no program or it fails."""
    import subprocess

    if not podman:
        return ""
    try:
        done = subprocess.run([podman, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


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
