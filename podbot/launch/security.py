"""Sandbox profiles: ``sandbox.*`` -> :class:`Security` and :class:`Limits`."""

from __future__ import annotations

import math

from podbot.config.checks import parse_memory
from podbot.config.models import AppConfig, Profile
from podbot.errors import IllegalCombination, InvalidValue
from podbot.launch.types import HostFacts, Limits, Security

FUSE = "/dev/fuse"
_LEAST_CPUS = 0.01  # the kernel's smallest quota is 1 ms in a period of 100 ms
_LEAST_MEMORY = 6 * 1024 * 1024  # measured with runc: 2 MiB does not start, 4 MiB runs a shell
_LEAST_PIDS = 8  # measured with runc: below that a container starts, and no command in it does


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
        # The engine grants every device and governs labels itself, so fuse and SELinux keys have no say.
        note = "profile privileged: the agent has root's powers over this host's devices; trust it as you trust root"
        return Security(privileged=True), (note,)
    notes: list[str] = []
    fuse = sandbox.mount_dev_fuse and facts.dev_fuse
    if sandbox.mount_dev_fuse and not fuse:
        # Podman's store inside cannot be an overlay then: native overlay is refused on top of the sandbox's own.
        notes.append(f"this host has no {FUSE} that you may open: nested containers use the slower vfs storage driver")
    selinux_disable = sandbox.selinux_label_mode == "disable_for_container"
    devices = (FUSE,) if fuse else ()
    if profile == "minimal":
        capabilities = ("SYS_ADMIN",) if fuse else ()
        notes.append("profile minimal: weaker than hardened" + (", it adds SYS_ADMIN" if fuse else ""))
        return Security(devices=devices, capabilities=capabilities, selinux_disable=selinux_disable), tuple(notes)
    return Security(no_new_privileges=True, devices=devices, selinux_disable=selinux_disable), tuple(notes)


def nested_env(security: Security) -> dict[str, str]:
    """Variables for the Podman inside: without /dev/fuse it must be told that it cannot use fuse-overlayfs."""
    return {} if security.privileged or FUSE in security.devices else {"STORAGE_DRIVER": "vfs"}


def plan_limits(config: AppConfig) -> Limits:
    """The configured limits, in bytes, cores and tasks.

    Raises InvalidValue for what the engine would take as "no limit" (0, -1) or could not start with.
    """
    sandbox = config.sandbox
    memory = None
    if sandbox.memory is not None:
        try:
            memory = parse_memory(sandbox.memory)
        except ValueError as exc:
            raise _invalid(config, "memory", str(exc)) from None
        if memory < _LEAST_MEMORY:
            raise _invalid(config, "memory", f"{sandbox.memory} is too little to start a container: at least 6m")
    cpus, pids = sandbox.cpus, sandbox.pids
    if cpus is not None and not (math.isfinite(cpus) and cpus >= _LEAST_CPUS):
        raise _invalid(config, "cpus", f"{cpus} is not a number of cores: at least {_LEAST_CPUS}")
    if pids is not None and pids < _LEAST_PIDS:
        raise _invalid(config, "pids", f"{pids} is too few processes to run a command: at least {_LEAST_PIDS}")
    return Limits(memory=memory, cpus=cpus, pids=pids)


def frame_limit(config: AppConfig) -> int:
    """``agent.frame_limit`` in bytes. Raises InvalidValue."""
    try:
        return parse_memory(config.agent.frame_limit)
    except ValueError as exc:
        origin = str(config.origin("agent.frame_limit"))
        raise InvalidValue(field="agent.frame_limit", origin=origin, reason=str(exc)) from None


def _invalid(config: AppConfig, key: str, reason: str) -> InvalidValue:
    dotted = f"sandbox.{key}"
    return InvalidValue(field=dotted, origin=str(config.origin(dotted)), reason=reason)
