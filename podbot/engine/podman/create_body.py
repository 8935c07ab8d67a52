"""A :class:`ContainerSpec` as the engine's request: ``POST /v4.0.0/libpod/containers/create``.

Every field was tried against Podman 4.3.1 and read back from inspect or from inside the container.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from podbot.engine.port import Unmet
from podbot.launch.types import ContainerSpec, Limits, Mount

_PERIOD = 100_000  # microseconds; the kernel's default, and what inspect reads NanoCpus back with
_SIGTERM = 15
_STOP_SECONDS = 10

# An empty directory of the image's gives way; whatever else is there stays. A kept container has the link already.
_LINK = '[ -L "$1" ] || { rmdir "$1"; [ -e "$1" ] || ln -s "$2" "$1"; } 2>/dev/null; exec sleep infinity'


def create_body(spec: ContainerSpec) -> dict[str, Any]:
    """The libpod SpecGenerator, JSON-able. Holds no secret: inspect shows all of it."""
    security = spec.security
    body: dict[str, Any] = {
        "name": spec.name,
        "image": spec.image,
        "labels": dict(spec.labels),
        "env": dict(spec.env),
        # PID 1 is the engine's init: it reaps, and with it a stop takes 0.11 s. Agents come as execs.
        "init": True,
        **_main(spec),
        "systemd": "false",
        # An image can ask for a stop signal that does not stop: SIGWINCH made each stop wait its timeout out.
        "stop_signal": _SIGTERM,
        "stop_timeout": _STOP_SECONDS,
        # Otherwise an image's VOLUME makes an anonymous volume, which outlived `DELETE ?force=true&v=true`.
        "image_volume_mode": "ignore",
        # An image's health check would need a systemd timer to start with, and run in nobody's session.
        "healthconfig": {"Test": ["NONE"]},
        # Any process inside can write to process 1's stdout, and with it into the host's log: 50 MB in 0.2 s, no limit.
        "log_configuration": {"driver": "none"},
        # Said, not left to an engine's default: the host's proxy variables can hold a password.
        "httpproxy": False,
        "env_host": False,
        "privileged": security.privileged,
        "no_new_privileges": security.no_new_privileges,
        "cap_add": list(security.capabilities),
        "cap_drop": list(security.dropped),
        # A bare path is mapped to itself with rwm: the devices cgroup says `c 10:229 rwm`.
        "devices": [{"path": path} for path in security.devices],
        "selinux_opts": ["disable"] if security.selinux_disable else [],
        "mounts": [_mount(mount) for mount in (*spec.mounts, *spec.files)],
        "resource_limits": _resources(spec.limits),
        **_rlimits(spec.limits),
        **_network(spec.network),
    }
    if security.seccomp is not None:
        # Read by the engine, at once: it refuses to create when it cannot. Inspect does not show it (measured).
        body["seccomp_profile_path"] = security.seccomp
    if spec.workdir is not None:
        body["work_dir"] = spec.workdir
    if spec.make_workdir:
        body["create_working_dir"] = True  # otherwise a container whose workdir is missing does not start
    if spec.runtime is not None:
        body["oci_runtime"] = spec.runtime  # 4.3.1 takes any value and ignores it: see `unmet`
    return body


def unmet(spec: ContainerSpec, inspected: Mapping[str, Any]) -> tuple[Unmet, ...]:
    """Compare a spec with ``GET /containers/{id}/json``: engines drop some requests in silence.

    Measured on 4.3.1: ``oci_runtime`` is ignored (even "nonesuch" is created and started by the
    default runtime); limits are dropped on a rootless engine with cgroup v1.
    """
    host: Mapping[str, Any] = inspected.get("HostConfig") or {}
    limits, found = spec.limits, []
    runtime = str(inspected.get("OCIRuntime") or "")
    if spec.runtime is not None and os.path.basename(runtime) != os.path.basename(spec.runtime):
        found.append(Unmet("sandbox.runtime", spec.runtime, runtime))
    if spec.security.no_new_privileges and "no-new-privileges" not in (host.get("SecurityOpt") or []):
        found.append(Unmet("sandbox.profile", "no-new-privileges", "none"))
    kept = {f"CAP_{name}" for name in spec.security.dropped} & {*(inspected.get("EffectiveCaps") or ())}
    if kept:
        names = ", ".join(sorted(kept))
        found.append(Unmet("sandbox.profile", f"no {names}", names))
    numbers = (
        ("sandbox.memory", limits.memory, host.get("Memory")),
        ("sandbox.cpus", _quota(limits.cpus), host.get("CpuQuota")),
        ("sandbox.pids", limits.pids or None, host.get("PidsLimit")),
        ("sandbox.nofile", limits.nofile, _nofile(host)),
    )
    found += [Unmet(key, str(wanted), str(got)) for key, wanted, got in numbers if wanted is not None and wanted != got]
    return tuple(found)


def _main(spec: ContainerSpec) -> dict[str, list[str]]:
    """The main process: it waits. A link is made by it, which costs nothing; an upload costs 85 ms (measured)."""
    if spec.link is None:
        return {"entrypoint": ["sleep"], "command": ["infinity"]}
    return {"entrypoint": ["/bin/sh"], "command": ["-c", _LINK, "sh", *spec.link]}


def _mount(mount: Mount) -> dict[str, Any]:
    # `ro` with `rbind` leaves what is mounted below the source writable (measured; `rro` is not known to 4.3.1),
    # so a read-only mount does not take it along. A rootless engine can only mount such a tree whole: rbind.
    access = ["bind", "ro"] if mount.read_only else ["rbind", "rw"]
    return {
        "type": "bind",
        "source": mount.source,
        "destination": mount.target,
        "options": [*access, "rprivate", "nosuid", "nodev"],
    }


def _resources(limits: Limits) -> dict[str, Any]:
    resources: dict[str, Any] = {}
    if limits.memory is not None:
        # `swap` is memory and swap together: the same figure means no swap on top.
        resources["memory"] = {"limit": limits.memory, "swap": limits.memory}
    if limits.cpus is not None:
        resources["cpu"] = {"quota": _quota(limits.cpus), "period": _PERIOD}
    if limits.pids is not None:
        resources["pids"] = {"limit": limits.pids or -1}  # without one, Podman's own is 2048
    return resources


def _rlimits(limits: Limits) -> dict[str, list[dict[str, Any]]]:
    """Soft as hard: programs that raise the one to the other would have it anyway."""
    wanted = {"nofile": limits.nofile, "nproc": limits.nproc}
    found = [{"type": name, "soft": value, "hard": value} for name, value in wanted.items() if value is not None]
    return {"r_limits": found} if found else {}  # without any the engine's own default_ulimits hold


def _nofile(host: Mapping[str, Any]) -> int | None:
    found = (entry.get("Hard") for entry in host.get("Ulimits") or () if entry.get("Name") == "RLIMIT_NOFILE")
    return next(found, None)


def _quota(cpus: float | None) -> int | None:
    return None if cpus is None else round(cpus * _PERIOD)


def _network(network: str) -> dict[str, Any]:
    if network == "default":
        # bridge on a rootful engine, slirp4netns or pasta on a rootless one. A containers.conf can let slirp4netns open
        # the host's loopback; what stands here is read behind it, and by nobody else (measured).
        return {"network_options": {"slirp4netns": ["allow_host_loopback=false"]}}
    if network in ("none", "host"):
        return {"netns": {"nsmode": network}}
    # A value beside nsmode bridge is refused; the name goes into `networks`. An unknown one is HTTP 500.
    return {"netns": {"nsmode": "bridge"}, "networks": {network: {}}}
