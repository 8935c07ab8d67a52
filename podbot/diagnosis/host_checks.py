"""What ``podbot doctor`` thinks of a machine, whatever the engine. Pure: facts in, checks out."""

from __future__ import annotations

from collections.abc import Iterator

from podbot.engine.check import Check, install_command, sudo
from podbot.images.base_image import can_debootstrap
from podbot.machine import MachineFacts


def check_host(facts: MachineFacts, *, token_unit: bool = False) -> Iterator[Check]:
    """``token_unit``: token-daemon's user unit is installed. Nothing on other systems than Linux."""
    if facts.platform != "linux":
        return
    if facts.systemd:
        yield check_linger(facts, token_unit=token_unit)
    yield check_fuse(facts)
    yield check_base(facts)


def check_linger(facts: MachineFacts, *, token_unit: bool) -> Check:
    """A user's units end with the user's last login, unless the user lingers."""
    if facts.linger:
        return Check("linger", "ok", "on")
    if not token_unit:
        return Check("linger", "ok", "off; only an installed token-daemon wants it")
    fix = f"{sudo(facts)}loginctl enable-linger {facts.user or facts.uid}"
    meaning = "token-daemon's unit ends when you log out, and the tokens of sessions that go on are not renewed."
    return Check("linger", "warn", "off, and token-daemon's unit is installed", meaning, fix)


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
