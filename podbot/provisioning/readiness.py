"""What a session needs of a machine, asked before an image is built for it. Pure: facts in, an error or nothing out."""

from __future__ import annotations

import os
from collections.abc import Iterator

from podbot.diagnosis.check import Check, podman_number
from podbot.diagnosis.disk_checks import Disks, Room, check_disk
from podbot.diagnosis.machine_checks import check_cgroups, check_init, check_network, check_runtime
from podbot.diagnosis.rootless_checks import check_rootless_network, check_user_ids
from podbot.engine.podman.private.machine import HELPER_DIRECTORIES, MachineFacts
from podbot.errors import MachineNotReady


def require_ready(
    facts: MachineFacts,
    podman_version: str,
    *,
    network: str,
    rootless: bool,
    disks: Disks,
    needed: Room | None,
    said: str = "",
) -> None:
    """Raise MachineNotReady, in doctor's words, when no session could start here, or none with ``network``.

    ``rootless``: the engine is an ordinary user's. ``needed``: what the build that is to come takes, if one is.
    ``said``: why Podman did not start, in its words, where it did not: the checks may have found something else.
    """
    failed = machine_problems(facts, podman_version, network, rootless=rootless)
    if needed is not None and (room := check_disk(disks, needed)).status == "fail":
        failed.append(room)
    if failed:
        problems = [f"{check.name}: {check.found}. {check.meaning.rstrip('.')}" for check in failed]
        if said:
            problems.append(f"Podman did not start: {said.rstrip('.')}")
        raise MachineNotReady(
            problems="; ".join(problems),
            fixes=" ".join(f"To fix {check.name}: {_quoted(check.fix)}." for check in failed),
        )


def machine_problems(facts: MachineFacts, podman_version: str, network: str, *, rootless: bool) -> list[Check]:
    """Each check of the machine that means that no session can start, or none with ``network``."""
    checks = _checks(facts, podman_version, network, rootless=rootless)
    return [check for check in checks if check.status == "fail"]


def _checks(facts: MachineFacts, version: str, network: str, *, rootless: bool) -> Iterator[Check]:
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


def _quoted(fix: str) -> str:
    """A command with its ends marked; a sentence, which marks those in it, as it is."""
    return fix if "`" in fix else f"`{fix}`"
