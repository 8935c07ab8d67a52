"""The checks of ``podbot doctor`` for a machine with any engine. Pure: facts in, checks out."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from podbot.container_spec import OWN_IDS
from podbot.engine.check import Check, Repair, lacks, repaired_by
from podbot.images.base_image import can_debootstrap
from podbot.machine import SHARED, MachineFacts


def check_host(
    facts: MachineFacts, *, token_unit: bool = False, fuse: bool = False, own_ids: bool = False
) -> Iterator[Check]:
    """Every check; none except on Linux.

    ``token_unit``: whether token-daemon's user unit is installed; ``fuse``: whether sessions ask for /dev/fuse;
    ``own_ids``: whether they ask for user ids of their own.
    """
    if facts.platform != "linux":
        return
    if facts.systemd:
        yield check_linger(facts, token_unit=token_unit)
    yield check_fuse(facts, wanted=fuse)
    if own_ids:
        yield check_own_ids(facts)
    yield check_base(facts)
    if facts.shared:
        yield check_shared(facts)


def check_linger(facts: MachineFacts, *, token_unit: bool) -> Check:
    """Without lingering, a user's units end with the user's last login."""
    if facts.linger:
        return Check("linger", "ok", "on")
    if not token_unit:
        return Check("linger", "ok", "off; only an installed token-daemon needs it")
    enable = Repair(f"loginctl enable-linger {shlex.quote(facts.user or str(facts.uid))}")
    meaning = "token-daemon's unit ends when you log out; tokens of sessions that continue are then not renewed."
    return repaired_by(facts, "linger", "warn", ("off, and token-daemon's unit is installed", meaning), enable)


def check_fuse(facts: MachineFacts, *, wanted: bool) -> Check:
    """Nested containers use fuse-overlayfs where a session asks for it."""
    if facts.dev_fuse:
        return Check("fuse", "ok", "/dev/fuse")
    if not wanted:
        return Check("fuse", "ok", "/dev/fuse may not be opened; only sandbox.mount_dev_fuse = true needs it")
    meaning = "Nested containers fall back to the slow vfs storage; set sandbox.mount_dev_fuse = false."
    if facts.container:
        fix = "Start the container that podbot runs in with `--device /dev/fuse`"
        return Check("fuse", "warn", "/dev/fuse may not be opened", meaning, fix)
    repairs = (Repair("modprobe fuse"), *([Repair("chmod 0666 /dev/fuse")] if facts.rootless else []))
    return repaired_by(facts, "fuse", "warn", ("/dev/fuse may not be opened", meaning), *repairs)


def check_own_ids(facts: MachineFacts) -> Check:
    """What an engine of root needs for sessions with user ids of their own."""
    if facts.rootless:
        return Check("own-user-ids", "ok", "not used by an engine of your own: inside, root is you")
    if facts.container_ids < OWN_IDS:
        found = f"{facts.container_ids:,} user ids for `containers` in /etc/subuid and /etc/subgid"
        meaning = f"sandbox.own_user_ids is true, and each session needs {OWN_IDS:,}."
        fix = "Add the line containers:1000000000:67108864 to both files"
        return Check("own-user-ids", "fail", found, meaning, fix)
    if facts.cgroups != "v2" or "crun" not in facts.programs:
        meaning = "sandbox.own_user_ids is true. runc before 1.2 does not map the owners of files: no session starts."
        fix = "Have the engine use crun, or runc from 1.2 on, or set sandbox.own_user_ids = false"
        return Check("own-user-ids", "warn", "the engine may use runc", meaning, fix)
    return Check("own-user-ids", "ok", f"for {facts.container_ids // OWN_IDS:,} sessions")


def check_shared(facts: MachineFacts) -> Check:
    """Limits of the kernel that one session can use up for all: at least they should not be low."""
    low = {name: found for name, found in facts.shared.items() if found < SHARED[name]}
    if not low:
        return Check("kernel-limits", "ok", "none is low that sandboxes and the host share")
    named = ", ".join(f"{name} is {found}" for name, found in low.items())
    meaning = "Sandboxes and the host share these, so a few sessions can use them up for all."
    raised = Repair(f"sysctl {' '.join(f'{name}={SHARED[name]}' for name in low)}")
    return repaired_by(facts, "kernel-limits", "warn", (named, meaning), raised)


def check_base(facts: MachineFacts) -> Check:
    """The source of the sandbox's base image."""
    if can_debootstrap(facts):
        return Check("base-image", "ok", f"mmdebstrap, {facts.codename} packages")
    if {"debian", "ubuntu"} & {*facts.distribution}:
        meaning = "`podbot setup` would have to pull its base from an image registry."
        return lacks(facts, "base-image", "warn", ("no mmdebstrap", meaning), "mmdebstrap")
    return Check("base-image", "ok", "pulled through the engine (not a Debian or Ubuntu machine)")
