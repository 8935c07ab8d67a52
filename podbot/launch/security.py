"""Sandbox profiles: ``sandbox.*`` -> :class:`Security` and :class:`Limits`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

from podbot.config.checks import Refusal, cpu_limit, memory_limit, nofile_limit, parse_memory, pids_limit, shm_size
from podbot.config.models import AppConfig, Profile
from podbot.container_spec import Limits, Security
from podbot.errors import IllegalCombination, InvalidValue
from podbot.frozen import replace
from podbot.launch.seccomp import profile_path
from podbot.launch.types import HostFacts

FUSE = "/dev/fuse"
# Capabilities that a containers.conf may add to an engine's eleven default ones. Higher-numbered ones are not listed,
# because old kernels do not know them and an engine there refuses the name. SETFCAP stays: since Linux 5.12 root cannot
# map itself into a user namespace without it, and nested Podman, which does so, fails ("cannot write uid_map",
# measured).
DROPPED = (
    "AUDIT_CONTROL", "AUDIT_READ", "AUDIT_WRITE", "BLOCK_SUSPEND", "DAC_READ_SEARCH", "IPC_LOCK", "IPC_OWNER", "LEASE",
    "LINUX_IMMUTABLE", "MAC_ADMIN", "MAC_OVERRIDE", "MKNOD", "NET_ADMIN", "NET_BROADCAST", "NET_RAW", "SYSLOG",
    "SYS_ADMIN", "SYS_BOOT", "SYS_MODULE", "SYS_NICE", "SYS_PACCT", "SYS_PTRACE", "SYS_RAWIO", "SYS_RESOURCE",
    "SYS_TIME", "SYS_TTY_CONFIG", "WAKE_ALARM",
)  # fmt: skip
# The profile `sealed`: an unprivileged user without a capability, who can write to the workspace and to this directory.
SEALED_USER = "65534:65534"
SEALED_TMPFS = ("/tmp",)  # noqa: S108 - inside the sandbox, which has one of its own
SEALED_MEMORY, SEALED_CPUS = "1g", 1.0  # its limits, where the operator and the program that opens it set none
# Since then a user's processes are counted for each user namespace. So RLIMIT_NPROC limits a rootless sandbox with one
# user, also on cgroup v1, where nothing else does: its operator's other processes do not count.
_COUNTS_BY_NAMESPACE = (5, 14)
_DEFAULTS = ("memory", "cpus", "pids", "nofile")  # keys of which podbot has a default, at least in one profile
V = TypeVar("V")
R = TypeVar("R")


def effective_profile(config: AppConfig) -> Profile:
    """The profile in effect; ``sandbox.privileged`` is the older spelling of one of them.

    Raises IllegalCombination when it contradicts a profile that was set explicitly.
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


def asks_for_fuse(config: AppConfig) -> bool:
    """Whether sessions ask for /dev/fuse: by its key, or by the profile that consists of it.

    Not by default: a process that waits for a FUSE server of its own cannot be ended from inside (ADR 0053).
    """
    is_unset = config.origin("sandbox.mount_dev_fuse").kind == "default"
    return config.sandbox.mount_dev_fuse or (is_unset and effective_profile(config) == "minimal")


def plan_security(config: AppConfig, facts: HostFacts) -> tuple[Security, tuple[str, ...]]:
    """The confinement, and lines that the operator must see about it."""
    profile, sandbox = effective_profile(config), config.sandbox
    if profile == "privileged":
        # The engine grants every device and controls labels itself, so fuse and SELinux keys are ignored.
        note = "profile privileged: the agent has root's powers over this host's devices; trust it as you trust root"
        return Security(privileged=True), (note,)
    selinux_disable = sandbox.selinux_label_mode == "disable_for_container"
    if profile == "sealed":
        sealed = Security(
            no_new_privileges=True,
            dropped=("ALL",),
            selinux_disable=selinux_disable,
            seccomp=profile_path(facts.state_dir),
            read_only_root=True,
            tmpfs=SEALED_TMPFS,
            user=SEALED_USER,
            keep_id=facts.uid != 0,
            own_ids=sandbox.own_user_ids,
        )
        return sealed, ()
    notes: list[str] = []
    asked = asks_for_fuse(config)
    fuse = asked and facts.dev_fuse
    if asked and not fuse:
        # Podman inside cannot use overlay storage then: native overlay is refused on top of the sandbox's own.
        notes.append(f"this host has no {FUSE} that you may open: nested containers use the slower vfs storage driver")
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
        own_ids=sandbox.own_user_ids,
    )
    return security, tuple(notes)


def nested_env(security: Security) -> dict[str, str]:
    """Variables for Podman inside the sandbox: without /dev/fuse it must not use fuse-overlayfs.

    None in a sealed one, where no Podman runs.
    """
    usable = security.privileged or FUSE in security.devices or security.read_only_root
    return {} if usable else {"STORAGE_DRIVER": "vfs"}


def plan_limits(config: AppConfig, facts: HostFacts) -> Limits:
    """The limits, in bytes, cores, tasks and files. Raises InvalidValue, like loading a configuration."""
    sandbox, sealed = config.sandbox, effective_profile(config) == "sealed"
    unset = [name for name in _DEFAULTS if config.origin(f"sandbox.{name}").kind == "default"]
    nofile = _checked(config, "nofile", nofile_limit, sandbox.nofile) or None
    if nofile is not None and facts.nofile and "nofile" in unset:
        nofile = min(nofile, facts.nofile)  # an engine that podbot starts cannot set a higher limit
    memory = SEALED_MEMORY if sealed and "memory" in unset else sandbox.memory
    limits = Limits(
        memory=_checked(config, "memory", lambda text: memory_limit(text, facts.memory), memory),
        cpus=SEALED_CPUS if sealed and "cpus" in unset else _checked(config, "cpus", cpu_limit, sandbox.cpus),
        pids=_checked(config, "pids", pids_limit, sandbox.pids),
        nofile=nofile,
        nproc=facts.nproc if nofile is not None and facts.nproc else None,
    )
    counted = facts.uid != 0 and facts.kernel >= _COUNTS_BY_NAMESPACE
    if counted and sealed and limits.pids and nofile is not None:
        limits = replace(limits, nproc=min(limits.pids, facts.nproc or limits.pids))
    return replace(limits, by_default=tuple(name for name in unset if getattr(limits, name) is not None))


def plan_shm(config: AppConfig) -> int | None:
    """The size of /dev/shm in bytes. Raises InvalidValue.

    Browsers keep pages there and crash in the engine's 64 MB. What lies there counts as the sandbox's memory.
    """
    return _checked(config, "shm", shm_size, config.sandbox.shm)


def without_defaults(limits: Limits, names: Collection[str]) -> Limits:
    """The limits without those of ``names`` that are podbot's defaults; the engine's own apply instead."""
    dropped = {name for name in limits.by_default if name in names}
    if "nofile" in dropped:
        dropped.add("nproc")
    left = tuple(name for name in limits.by_default if name not in dropped)
    return replace(limits, **dict.fromkeys(dropped), by_default=left)


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
