"""What this machine is: read from /proc, /sys, /dev and /etc, without starting a program."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

Cgroups = Literal["v2", "v1", "hybrid"]

CAP_SYS_RESOURCE = 24
CODENAMES = ("UBUNTU_CODENAME", "DEBIAN_CODENAME", "VERSION_CODENAME")
PACKAGE_TOOLS = ("mmdebstrap",)  # makes a base image from the machine's own packages, whatever the engine
DELEGATED = "sys/fs/cgroup/user.slice/user-{uid}.slice/user@{uid}.service/cgroup.controllers"
BUS_UNITS = ("usr/lib/systemd/user/dbus.socket", "lib/systemd/user/dbus.socket", "etc/systemd/user/dbus.socket")


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """One machine. ``nofile`` and ``nproc`` are the highest values that a container's rlimits can take.

    ``programs``: name -> path of those installed. ``container``: the kind of container that podbot
    itself runs in, or empty. ``distribution``: os-release's ID followed by ID_LIKE, best first.
    ``delegated``: the cgroup v2 controllers that systemd gives this user; None without a systemd of the user's.
    ``user_bus``: the user's D-Bus, over which an engine asks for cgroups, is there; ``bus_unit``: systemd would start
    it at a login. ``linger``: the user's systemd outlives the last login.
    """

    uid: int = 0
    platform: str = "linux"
    kernel: tuple[int, int] = (6, 1)
    cgroups: Cgroups = "v2"
    systemd: bool = True
    cap_sys_resource: bool = True
    nofile: int = 1048576
    nproc: int = 1048576
    dev_fuse: bool = True
    dev_net_tun: bool = True
    programs: Mapping[str, str] = field(default_factory=dict)
    subids: bool = True
    container: str = ""
    ci: bool = False
    distribution: tuple[str, ...] = ()
    codename: str = ""
    user: str = ""
    delegated: frozenset[str] | None = frozenset({"cpu", "memory", "pids"})
    user_bus: bool = True
    bus_unit: bool = True
    linger: bool = False

    @property
    def rootless(self) -> bool:
        """The engine would run as an ordinary user."""
        return self.uid != 0


@dataclass(frozen=True, slots=True)
class Disk:
    """The file system that ``path`` is on, or would be: bytes that this user may still write, and its number."""

    path: str
    free: int
    device: int


def disk(path: str) -> Disk | None:
    """The file system of ``path``, or of the nearest directory above it that exists; None when nothing tells."""
    there = os.path.abspath(path)
    while not os.path.exists(there) and there != "/":
        there = os.path.dirname(there)
    try:
        found = os.statvfs(there)
        return Disk(path, found.f_bavail * found.f_frsize, os.stat(there).st_dev)
    except OSError:
        return None


def detect(
    environ: Mapping[str, str], root: str = "/", *, programs: Iterable[str] = (), directories: Iterable[str] = ()
) -> MachineFacts:
    """The facts of this machine, in 2 ms; ``root`` is where /proc, /sys, /dev, /run, /var and /etc are looked for.

    ``programs``: those to look for beside :data:`PACKAGE_TOOLS`, on PATH and then in ``directories``.
    """
    uid = os.getuid()
    user = _user_name(uid)
    release = _os_release(root)
    delegated = _read(root, DELEGATED.format(uid=uid))
    return MachineFacts(
        uid=uid,
        platform=sys.platform,
        kernel=_kernel(os.uname().release),
        cgroups=_cgroups(root),
        systemd=os.path.isdir(os.path.join(root, "run/systemd/system")),
        cap_sys_resource=bool(_effective_capabilities(root) >> CAP_SYS_RESOURCE & 1),
        nofile=_ceiling(root, "RLIMIT_NOFILE", "proc/sys/fs/nr_open"),
        nproc=_ceiling(root, "RLIMIT_NPROC", "proc/sys/kernel/pid_max"),
        dev_fuse=os.access(os.path.join(root, "dev/fuse"), os.R_OK | os.W_OK),
        dev_net_tun=os.access(os.path.join(root, "dev/net/tun"), os.R_OK | os.W_OK),
        programs=find_programs(environ, (*programs, *PACKAGE_TOOLS), directories, root),
        subids=_has_subids(root, uid, user),
        container=_container(environ, root),
        ci=environ.get("CI", "").lower() not in ("", "0", "false"),
        distribution=(release.get("ID", ""), *release.get("ID_LIKE", "").split()) if release else (),
        # Derivatives (Mint, Devuan) name the suite of their parent, which is the one that apt knows.
        codename=next((release[n] for n in CODENAMES if release.get(n)), ""),
        user=user,
        delegated=frozenset(delegated.split()) if delegated else None,
        user_bus=_has_bus(environ, root, uid),
        bus_unit=any(os.path.exists(os.path.join(root, place)) for place in BUS_UNITS),
        linger=bool(user) and os.path.exists(os.path.join(root, "var/lib/systemd/linger", user)),
    )


def find_programs(
    environ: Mapping[str, str], names: Iterable[str], directories: Iterable[str] = (), root: str = "/"
) -> dict[str, str]:
    """Name -> path of those of ``names`` that are installed: on PATH, or else in one of ``directories``."""
    directories = [*environ.get("PATH", "").split(os.pathsep), *directories]
    # A relative entry of PATH would make the working directory, often a hostile repository, name our programs.
    places = dict.fromkeys(os.path.join(root, d.lstrip("/")) for d in directories if d.startswith("/"))
    found: dict[str, str] = {}
    for name in names:
        for place in places:
            path = os.path.join(place, name)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                found[name] = path
                break
    return found


def _read(root: str, path: str) -> str:
    try:
        with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _kernel(release: str) -> tuple[int, int]:
    """Major and minor of a kernel's release; (0, 0) when it does not say."""
    parts = release.split(".")[:2]
    return (int(parts[0]), int(parts[1])) if len(parts) == 2 and all(p.isdecimal() for p in parts) else (0, 0)


def _cgroups(root: str) -> Cgroups:
    base = os.path.join(root, "sys/fs/cgroup")
    if os.path.exists(os.path.join(base, "cgroup.controllers")):
        return "v2"
    return "hybrid" if os.path.exists(os.path.join(base, "unified", "cgroup.controllers")) else "v1"


def _effective_capabilities(root: str) -> int:
    for line in _read(root, "proc/self/status").splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16)
    return 0


def _ceiling(root: str, limit: str, kernel: str) -> int:
    """The hard limit, or the kernel's own where that is lower (Podman lowers itself to it at start)."""
    hard = resource.getrlimit(getattr(resource, limit))[1]
    text = _read(root, kernel).strip()
    ours = [value for value in (hard, int(text) if text.isdigit() else -1) if value not in (-1, resource.RLIM_INFINITY)]
    return min(ours, default=1048576)


def _user_name(uid: int) -> str:
    """Name of the user, empty for a uid without an entry, as in many containers."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return ""


def _has_subids(root: str, uid: int, user: str) -> bool:
    for line in _read(root, "etc/nsswitch.conf").splitlines():
        name, _, services = line.partition("#")[0].partition(":")
        if name.strip() == "subid" and services.split()[:1] not in ([], ["files"]):
            return True  # a directory service gives the ranges; the files say nothing
    names = {str(uid), user or str(uid)}
    return all(
        any(line.split(":")[0] in names for line in _read(root, path).splitlines() if line.strip())
        for path in ("etc/subuid", "etc/subgid")
    )


def _has_bus(environ: Mapping[str, str], root: str, uid: int) -> bool:
    """Podman's own rule: the address in the environment, else the socket in the runtime directory."""
    address = environ.get("DBUS_SESSION_BUS_ADDRESS", "")
    if address and not address.startswith("unix:path="):
        return True
    path = address.removeprefix("unix:path=").partition(",")[0].partition(";")[0]
    path = path or os.path.join(environ.get("XDG_RUNTIME_DIR") or f"/run/user/{uid}", "bus")
    return os.path.exists(os.path.join(root, path.lstrip("/")))


def _container(environ: Mapping[str, str], root: str) -> str:
    if os.path.exists(os.path.join(root, "run/.containerenv")):
        return "podman"
    if os.path.exists(os.path.join(root, ".dockerenv")):
        return "docker"
    return _read(root, "run/systemd/container").strip() or environ.get("container", "")


def _os_release(root: str) -> dict[str, str]:
    text = _read(root, "etc/os-release") or _read(root, "usr/lib/os-release")
    pairs = (line.partition("=") for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {name.strip(): value.strip().strip("\"'") for name, _, value in pairs}
