"""Turns a :class:`ContainerSpec` into the engine's request: ``POST /v4.0.0/libpod/containers/create``.

Every field was tested with Podman 4.3.1 and read back from inspect or from inside the container.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from podbot.config.published import EVERYWHERE, Published
from podbot.container_spec import OWN_IDS, ContainerSpec, Limits, Mount, Security
from podbot.engine.port import Unmet

_PERIOD = 100_000  # microseconds; the kernel's default, from which inspect computes NanoCpus
_SIGTERM = 15
_STOP_SECONDS = 10
_TMPFS_SIZE = "size=512m"

# An empty directory of the image is replaced; anything else there stays. A kept container has the link already.
_LINK = '[ -L "$1" ] || { rmdir "$1"; [ -e "$1" ] || ln -s "$2" "$1"; } 2>/dev/null; shift 2'
# podbot may not have built the image, so only the container can tell whether it has python3. The system's directories
# come first: sandbox.env can put a directory of the workspace first in PATH, and what lies there is the repository's.
_GUEST = (
    "python=$(PATH=/usr/local/bin:/usr/bin:/bin:$PATH; command -v python3) && "
    'exec "$python" -I -S "$1/guest.py" {serve} "$1/channel"'
)
_SLEEP = "exec sleep infinity"


def create_body(spec: ContainerSpec) -> dict[str, Any]:
    """The libpod SpecGenerator as values for JSON. It must not contain secrets, because inspect shows all of it."""
    security = spec.security
    body: dict[str, Any] = {
        "name": spec.name,
        "image": spec.image,
        "labels": dict(spec.labels),
        "env": dict(spec.env),
        # PID 1 is the engine's init: it reaps processes, and with it a stop takes 0.11 s. Agents run as execs.
        "init": True,
        **_main(spec),
        "systemd": "false",
        # An image can set a stop signal that does not stop it: with SIGWINCH each stop waited for its whole timeout.
        "stop_signal": _SIGTERM,
        "stop_timeout": _STOP_SECONDS,
        # Otherwise an image's VOLUME creates an anonymous volume, which survived `DELETE ?force=true&v=true`.
        "image_volume_mode": "ignore",
        # An image's health check would need a systemd timer, and would run outside any session.
        "healthconfig": {"Test": ["NONE"]},
        # Any process inside can write to process 1's stdout, and so into the host's log: 50 MB in 0.2 s, unlimited.
        "log_configuration": {"driver": "none"},
        # Set explicitly, whatever the engine's default: the host's proxy variables may contain a password.
        "httpproxy": False,
        "env_host": False,
        "privileged": security.privileged,
        "no_new_privileges": security.no_new_privileges,
        "cap_add": list(security.capabilities),
        "cap_drop": list(security.dropped),
        # A bare path is mapped to itself with rwm: the devices cgroup shows `c 10:229 rwm`.
        "devices": [{"path": path} for path in security.devices],
        "selinux_opts": ["disable"] if security.selinux_disable else [],
        "mounts": [
            *(_mount(mount, security) for mount in (*spec.mounts, *spec.files)),
            *map(_tmpfs, security.tmpfs),
        ],
        "resource_limits": _resources(spec.limits),
        **_rlimits(spec.limits),
        **({"shm_size": spec.shm} if spec.shm is not None else {}),  # a tmpfs, limited also where no cgroup is
        **_network(spec.network),
    }
    if security.read_only_root:
        body["read_only_filesystem"] = True
    if security.user is not None:
        body["user"] = security.user
    body |= _user_ids(security)
    if security.seccomp is not None:
        # The engine reads it at once, and refuses to create if it cannot. Inspect does not show it (measured).
        body["seccomp_profile_path"] = security.seccomp
    if spec.auto_remove:
        body["remove"] = True  # the container's monitor starts it, so neither podbot nor the service has to live then
    if spec.workdir is not None:
        body["work_dir"] = spec.workdir
    if spec.make_workdir and not security.own_ids:  # the engine would give it to the host's root: see `workdir_archive`
        body["create_working_dir"] = True  # otherwise a container with a missing workdir does not start
    if spec.ports:
        body["portmappings"] = [_mapping(port) for port in spec.ports]
    if spec.runtime is not None:
        body["oci_runtime"] = spec.runtime  # 4.3.1 accepts any value and ignores it: see `unmet`
    return body


def _user_ids(security: Security) -> dict[str, Any]:
    if security.own_ids:
        # The service takes the namespace from `idmappings`; of `userns` alone it makes none, silently (4.3.1).
        return {
            "userns": {"nsmode": "auto"},
            "idmappings": {"AutoUserNs": True, "AutoUserNsOpts": {"Size": OWN_IDS}},
            # Without it the main process's input is the host's /dev/null, and crun 1.8 makes the sandbox's root the
            # owner of the standard streams: an agent could then close it to every program of the host (measured).
            "stdin": True,
        }
    if security.user is not None and security.keep_id:
        uid, gid = security.user.split(":")
        return {"userns": {"nsmode": "keep-id", "value": f"uid={uid},gid={gid}"}}
    return {}


def workdir_archive(spec: ContainerSpec) -> bytes | None:
    """An archive for ``/`` with the working directory, where the engine itself cannot make it."""
    if not (spec.make_workdir and spec.security.own_ids and spec.workdir):
        return None
    import tarfile  # 10 ms

    entry = tarfile.TarInfo(spec.workdir.lstrip("/"))
    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    return entry.tobuf(tarfile.GNU_FORMAT) + bytes(2 * tarfile.BLOCKSIZE)


def unmet(spec: ContainerSpec, inspected: Mapping[str, Any]) -> tuple[Unmet, ...]:
    """Compare a spec with ``GET /containers/{id}/json``, because engines drop some requests silently.

    Measured on 4.3.1: ``oci_runtime`` is ignored (even "nonesuch" is accepted, and the default runtime used); limits
    are dropped on a rootless engine with cgroup v1.
    """
    host: Mapping[str, Any] = inspected.get("HostConfig") or {}
    limits, found = spec.limits, []
    runtime = str(inspected.get("OCIRuntime") or "")
    if spec.runtime is not None and os.path.basename(runtime) != os.path.basename(spec.runtime):
        found.append(Unmet("sandbox.runtime", spec.runtime, runtime))
    if spec.security.no_new_privileges and "no-new-privileges" not in (host.get("SecurityOpt") or []):
        found.append(Unmet("sandbox.profile", "no-new-privileges", "none"))
    found += _unmet_security(spec.security, host, inspected)
    wanted, got = {_bound(port) for port in spec.ports}, set(_bindings(host))
    if wanted != got:
        found.append(Unmet("sandbox.publish", _listed(wanted), _listed(got)))
    numbers = (
        ("sandbox.memory", limits.memory, host.get("Memory")),
        ("sandbox.cpus", limits.cpus and _cores(_quota(limits.cpus)), _cores(host.get("CpuQuota"))),
        ("sandbox.pids", limits.pids or None, host.get("PidsLimit")),
        ("sandbox.nofile", limits.nofile, _nofile(host)),
        ("sandbox.shm", spec.shm, host.get("ShmSize")),
    )
    found += [Unmet(key, str(wanted), str(got)) for key, wanted, got in numbers if wanted is not None and wanted != got]
    return tuple(found)


def _unmet_security(security: Security, host: Mapping[str, Any], inspected: Mapping[str, Any]) -> Iterator[Unmet]:
    """Capabilities that were not dropped, a root file system that can be written, and another user."""
    kept = {*(inspected.get("EffectiveCaps") or ())}
    if "ALL" in security.dropped:  # of a user that is not root the bounding set shows it, the effective one does not
        kept |= {*(inspected.get("BoundingCaps") or ())}
    else:
        kept &= {f"CAP_{name}" for name in security.dropped}
    if kept:
        names = ", ".join(sorted(kept))
        yield Unmet("sandbox.profile", f"no {names}", names)
    if security.read_only_root and not host.get("ReadonlyRootfs"):
        yield Unmet("sandbox.profile", "a read-only root", "one that can be written")
    maps = (host.get("IDMappings") or {}).get("UidMap") or ()
    if security.own_ids and (not maps or any(str(entry).split(":")[1:2] == ["0"] for entry in maps)):
        yield Unmet("sandbox.own_user_ids", "true", "the host's")
    user = str((inspected.get("Config") or {}).get("User") or "")
    if security.user is not None and user != security.user:
        yield Unmet("sandbox.profile", f"user {security.user}", user)


def _mapping(port: Published) -> dict[str, Any]:
    # With "0.0.0.0", netavark 1.4 forwards only packets whose destination is that very address, so none (measured).
    address = "" if port.address == EVERYWHERE else port.address
    return {"host_ip": address, "host_port": port.host_port, "container_port": port.port, "protocol": "tcp"}


def _bound(port: Published) -> str:
    return f"{port.address}:{port.host_port}:{port.port}/tcp"


def _bindings(host: Mapping[str, Any]) -> Iterator[str]:
    """What the engine publishes. It may write no address for all of them."""
    for inside, bindings in (host.get("PortBindings") or {}).items():
        for binding in bindings or ():
            yield f"{binding.get('HostIp') or EVERYWHERE}:{binding.get('HostPort')}:{inside}"


def _listed(ports: Iterable[str]) -> str:
    return ", ".join(sorted(ports)) or "none"


def _main(spec: ContainerSpec) -> dict[str, list[str]]:
    """The main process: the guest, or one that waits.

    It also creates the link at no cost; an upload costs 85 ms (measured).
    """
    if spec.link is None and spec.guest is None:
        return {"entrypoint": ["sleep"], "command": ["infinity"]}
    # Without podbot a sandbox that is not kept serves no purpose; a kept one may be started again.
    guest = _GUEST.format(serve="serve-or-end" if spec.auto_remove else "serve")
    parts = [*([_LINK] if spec.link else []), *([guest] if spec.guest else []), _SLEEP]
    words = [*(spec.link or ()), *([spec.guest] if spec.guest else [])]
    return {"entrypoint": ["/bin/sh"], "command": ["-c", "; ".join(parts), "sh", *words]}


def _mount(mount: Mount, security: Security) -> dict[str, Any]:
    # `ro` with `rbind` leaves mounts below the source writable (measured; 4.3.1 does not support `rro`), so a read-only
    # mount excludes them. A rootless engine can mount such a tree only as a whole, hence rbind.
    access = ["bind", "ro"] if mount.read_only else ["rbind", "rw"]
    return {
        "type": "bind",
        "source": mount.source,
        "destination": mount.target,
        # With user ids of its own: the owners of files are as the host has them, on both sides.
        "options": [*access, "rprivate", "nosuid", "nodev", *(["idmap"] if security.own_ids else [])],
    }


def _tmpfs(path: str) -> dict[str, Any]:
    # Its content counts as the sandbox's memory, where that is limited. Programs are built there, so it is executable.
    return {"type": "tmpfs", "destination": path, "options": ["rw", "nosuid", "nodev", "mode=1777", _TMPFS_SIZE]}


def _resources(limits: Limits) -> dict[str, Any]:
    resources: dict[str, Any] = {}
    if limits.memory is not None:
        # `swap` is the sum of memory and swap: the same value means no additional swap.
        resources["memory"] = {"limit": limits.memory, "swap": limits.memory}
    if limits.cpus is not None:
        resources["cpu"] = {"quota": _quota(limits.cpus), "period": _PERIOD}
    if limits.pids is not None:
        resources["pids"] = {"limit": limits.pids or -1}  # without one, Podman's own is 2048
    return resources


def _rlimits(limits: Limits) -> dict[str, list[dict[str, Any]]]:
    """The soft limit equals the hard one, since programs may raise it to that anyway."""
    wanted = {"nofile": limits.nofile, "nproc": limits.nproc}
    found = [{"type": name, "soft": value, "hard": value} for name, value in wanted.items() if value is not None]
    return {"r_limits": found} if found else {}  # without any, the engine's default_ulimits apply


def _nofile(host: Mapping[str, Any]) -> int | None:
    found = (entry.get("Hard") for entry in host.get("Ulimits") or () if entry.get("Name") == "RLIMIT_NOFILE")
    return next(found, None)


def _cores(quota: int | None) -> str:
    return f"{(quota or 0) / _PERIOD:g}"


def _quota(cpus: float | None) -> int | None:
    return None if cpus is None else round(cpus * _PERIOD)


def _network(network: str) -> dict[str, Any]:
    if network == "default":
        # A bridge on a rootful engine, slirp4netns or pasta on a rootless one. A containers.conf can make slirp4netns
        # open the host's loopback; this option overrides that, and the others ignore it (measured).
        return {"network_options": {"slirp4netns": ["allow_host_loopback=false"]}}
    if network in ("none", "host"):
        return {"netns": {"nsmode": network}}
    # A value with nsmode bridge is refused; the name must be in `networks`. An unknown one causes HTTP 500.
    return {"netns": {"nsmode": "bridge"}, "networks": {network: {}}}
