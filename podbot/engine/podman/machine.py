"""This machine as Podman sees it: an :class:`podbot.engine.driver.EngineMachine`."""

from __future__ import annotations

import os
from collections.abc import Iterator

from podbot.engine.check import Check
from podbot.engine.podman.machine_checks import (
    check_cgroups,
    check_init,
    check_machine,
    check_network,
    check_runtime,
    podman_number,
)
from podbot.engine.podman.private.podman_facts import HELPER_DIRECTORIES, PodmanFacts
from podbot.engine.podman.rootless_checks import check_rootless_network, check_user_ids, user_ids_hint


class PodmanMachine:
    """``version``: what ``podman --version`` said; None: the program is asked when it matters."""

    def __init__(self, facts: PodmanFacts, version: str | None = None) -> None:
        self.facts = facts
        self._version = version

    @property
    def image_hint(self) -> str:
        return user_ids_hint(self.facts)

    def checks(self, network: str) -> Iterator[Check]:
        return check_machine(self.facts, self._said(), network=network)

    def problems(self, network: str, *, version: str = "", rootless: bool | None = None) -> list[Check]:
        as_user = self.facts.rootless if rootless is None else rootless
        found = self._needed(version or self._said(), network, rootless=as_user)
        return [check for check in found if check.status == "fail"]

    def _needed(self, version: str, network: str, *, rootless: bool) -> Iterator[Check]:
        facts = self.facts
        # Without a podman here the engine is another machine's, or a container's host's: it is not checked here.
        if facts.platform != "linux" or "podman" not in facts.programs:
            return
        # One that lies elsewhere (Nix, Guix, Homebrew) brings its helpers in places that its own wrapper knows.
        if os.path.dirname(facts.programs["podman"]) not in HELPER_DIRECTORIES:
            return
        number = podman_number(version)
        yield check_cgroups(facts)
        yield check_runtime(facts)
        yield check_init(facts)
        if rootless != facts.rootless:
            return  # another user's engine, such as root's by its socket
        yield check_network(facts, number, network)
        if rootless:
            yield check_user_ids(facts)
            yield check_rootless_network(facts, number, network)

    def _said(self) -> str:
        if self._version is None:
            self._version = podman_version(self.facts.programs.get("podman", ""))
        return self._version


def podman_version(podman: str) -> str:
    """What the program at this path says of its version; empty without one, and when it says nothing."""
    import subprocess

    if not podman:
        return ""
    try:
        done = subprocess.run([podman, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()
