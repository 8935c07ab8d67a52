"""Sandbox profiles: ``sandbox.*`` -> :class:`Security` and :class:`Limits`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection
from typing import TypeVar

from podbot.config.checks import Refusal, cpu_limit, memory_limit, nofile_limit, parse_memory, pids_limit
from podbot.config.models import AppConfig, Profile
from podbot.errors import IllegalCombination, InvalidValue
from podbot.launch.seccomp import profile_path
from podbot.launch.types import HostFacts, Limits, Security

FUSE = "/dev/fuse"
# What a containers.conf can have added to the eleven that engines give. Those with higher numbers are left out, because
# old kernels do not know them and an engine there refuses the name. SETFCAP stays: since Linux 5.12 root cannot map
# itself into a user namespace without it, and nested Podman, which makes one, fails ("cannot write uid_map", measured).
DROPPED = (
    "AUDIT_CONTROL", "AUDIT_READ", "AUDIT_WRITE", "BLOCK_SUSPEND", "DAC_READ_SEARCH", "IPC_LOCK", "IPC_OWNER", "LEASE",
    "LINUX_IMMUTABLE", "MAC_ADMIN", "MAC_OVERRIDE", "MKNOD", "NET_ADMIN", "NET_BROADCAST", "NET_RAW", "SYSLOG",
    "SYS_ADMIN", "SYS_BOOT", "SYS_MODULE", "SYS_NICE", "SYS_PACCT", "SYS_PTRACE", "SYS_RAWIO", "SYS_RESOURCE",
    "SYS_TIME", "SYS_TTY_CONFIG", "WAKE_ALARM",
)  # fmt: skip
V = TypeVar("V")
R = TypeVar("R")


def effective_profile(config: AppConfig) -> Profile:
    """The profile that holds; ``sandbox.privileged`` is the older spelling of one of them.

    Raises IllegalCombination when it contradicts a profile that was set on purpose.
    """
    sandbox = config.sandbox
    if not sandbox.privileged or sandbox.profile == "privileged":
        return sandbox.profile
    origin = config.origin("sandbox.profile")
    if origin.kind != "default" or sandbox.profile != "hardened":
        raise IllegalCombination(
            field="sandbox.profile",
            value=sandbox.profile,
            origin=str(origin),
            reason=f"sandbox.privileged = true ({config.origin('sandbox.privileged')}) asks for profile privileged",
            hint="Remove one of the two.",
        )
    return "privileged"


def plan_security(config: AppConfig, facts: HostFacts) -> tuple[Security, tuple[str, ...]]:
    """The confinement, and lines that the operator must see about it."""
    profile, sandbox = effective_profile(config), config.sandbox
    if profile == "privileged":
        # The engine grants every device and governs labels itself, so fuse and SELinux keys are ignored.
        note = "profile privileged: the agent has root's powers over this host's devices; trust it as you trust root"
        return Security(privileged=True), (note,)
    notes: list[str] = []
    fuse = sandbox.mount_dev_fuse and facts.dev_fuse
    if sandbox.mount_dev_fuse and not fuse:
        # Podman's store inside cannot be an overlay then: native overlay is refused on top of the sandbox's own.
        notes.append(f"this host has no {FUSE} that you may open: nested containers use the slower vfs storage driver")
    selinux_disable = sandbox.selinux_label_mode == "disable_for_container"
    added = ("SYS_ADMIN",) if profile == "minimal" and fuse else ()
    if profile == "minimal":
        notes.append("profile minimal: weaker than hardened" + (", it adds SYS_ADMIN" if fuse else ""))
    security = Security(
        no_new_privileges=profile == "hardened",
        devices=(FUSE,) if fuse else (),
        capabilities=added,
        dropped=tuple(name for name in DROPPED if name not in added),
        selinux_disable=selinux_disable,
        seccomp=profile_path(facts.state_dir),
    )
    return security, tuple(notes)


def nested_env(security: Security) -> dict[str, str]:
    """Variables for the Podman inside: without /dev/fuse it must be told that it cannot use fuse-overlayfs."""
    return {} if security.privileged or FUSE in security.devices else {"STORAGE_DRIVER": "vfs"}


def plan_limits(config: AppConfig, facts: HostFacts) -> Limits:
    """The limits, in bytes, cores, tasks and files. Raises InvalidValue as loading a configuration does."""
    sandbox = config.sandbox
    nofile = _checked(config, "nofile", nofile_limit, sandbox.nofile) or None
    if nofile is not None and facts.nofile and config.origin("sandbox.nofile").kind == "default":
        nofile = min(nofile, facts.nofile)  # an engine that podbot started may give no more
    limits = Limits(
        memory=_checked(config, "memory", lambda text: memory_limit(text, facts.memory), sandbox.memory),
        cpus=_checked(config, "cpus", cpu_limit, sandbox.cpus),
        pids=_checked(config, "pids", pids_limit, sandbox.pids),
        nofile=nofile,
        nproc=facts.nproc if nofile is not None and facts.nproc else None,
    )
    defaults = {"memory": limits.memory, "pids": limits.pids, "nofile": limits.nofile}
    unasked = (name for name in defaults if config.origin(f"sandbox.{name}").kind == "default")
    return dataclasses.replace(limits, by_default=tuple(name for name in unasked if defaults[name] is not None))


def without_defaults(limits: Limits, names: Collection[str]) -> Limits:
    """The limits without those of ``names`` that nobody asked for; the engine's own hold in their place."""
    dropped = {name for name in limits.by_default if name in names}
    if "nofile" in dropped:
        dropped.add("nproc")
    left = tuple(name for name in limits.by_default if name not in dropped)
    return dataclasses.replace(limits, **dict.fromkeys(dropped), by_default=left)


def frame_limit(config: AppConfig) -> int:
    """``agent.frame_limit`` in bytes. Raises InvalidValue."""
    try:
        return parse_memory(config.agent.frame_limit)
    except ValueError as exc:
        origin = str(config.origin("agent.frame_limit"))
        raise InvalidValue(field="agent.frame_limit", origin=origin, reason=str(exc)) from None


def _checked(config: AppConfig, key: str, check: Callable[[V], R], value: V | None) -> R | None:
    if value is None:
        return None
    try:
        return check(value)
    except Refusal as exc:
        field = f"sandbox.{key}"
        origin = str(config.origin(field))
        raise InvalidValue(field=field, origin=origin, reason=exc.reason, hint=exc.hint) from None
