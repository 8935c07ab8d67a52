"""Facts about this machine, read from /proc, /sys, /dev and /etc without starting a program."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Iterable, Mapping
from typing import Literal

from podbot.frozen import Frozen, field

Cgroups = Literal["v2", "v1", "hybrid"]

CAP_SYS_RESOURCE = 24
SUBIDS = 65536  # as many as useradd gives a user
_FIRST_SUBID, _LAST_SUBID = 100000, 600100000  # useradd's SUB_UID_MIN and SUB_UID_MAX
_SUBID_FILES = ("etc/subuid", "etc/subgid")
CODENAMES = ("UBUNTU_CODENAME", "DEBIAN_CODENAME", "VERSION_CODENAME")
PACKAGE_TOOLS = ("mmdebstrap",)  # makes a base image from the machine's own packages, whatever the engine
DELEGATED = "sys/fs/cgroup/user.slice/user-{uid}.slice/user@{uid}.service/cgroup.controllers"
BUS_UNITS = ("usr/lib/systemd/user/dbus.socket", "lib/systemd/user/dbus.socket", "etc/systemd/user/dbus.socket")

UNLIMITED = 1 << 20  # files and processes: what Podman sets where nothing limits them
_MEMORY_LIMITS = ("sys/fs/cgroup/memory.max", "sys/fs/cgroup/memory/memory.limit_in_bytes")

# Limits of the kernel that sandboxes share with each other and with the host, and the kernel's own values.
SHARED: Mapping[str, int] = {
    "fs.inotify.max_user_instances": 128,
    "kernel.pty.max": 4096,
    "net.ipv4.neigh.default.gc_thresh3": 1024,
    "user.max_net_namespaces": 1024,
    "user.max_uts_namespaces": 1024,
}


class KernelKeys(Frozen):
    """What of the kernel's quota of keys this user has used: their number, and the bytes of their descriptions."""

    number: int
    most: int
    size: int
    most_size: int


class MachineFacts(Frozen):
    """One machine. ``nofile`` and ``nproc`` are the highest values that a container's rlimits can take.

    ``programs``: name -> path of those installed. ``container``: the kind of container that podbot
    itself runs in, or empty. ``distribution``: os-release's ID followed by ID_LIKE, best first.
    ``delegated``: the cgroup v2 controllers that systemd gives this user; None without a systemd of the user's.
    ``user_bus``: whether the user's D-Bus exists, which an engine needs to request cgroups; ``bus_unit``: whether
    systemd would start it at a login. ``linger``: whether the user's systemd outlives the last login.
    ``subids``: whether the user has ranges of user and group ids; ``free_subids``: the first of :data:`SUBIDS` ids of
    both kinds that no user has, None if that is not known. ``container_ids``: how many ids of both kinds an engine of
    root has for containers with user ids of their own. ``keys``: see :class:`KernelKeys`; None if not known.
    ``shared``: the values of :data:`SHARED`, those that are known.
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
    free_subids: int | None = None
    container_ids: int = 0
    container: str = ""
    ci: bool = False
    distribution: tuple[str, ...] = ()
    codename: str = ""
    user: str = ""
    delegated: frozenset[str] | None = frozenset({"cpu", "memory", "pids"})
    user_bus: bool = True
    bus_unit: bool = True
    linger: bool = False
    keys: KernelKeys | None = None
    shared: Mapping[str, int] = field(default_factory=dict)

    @property
    def rootless(self) -> bool:
        """Whether the engine would run as an ordinary user."""
        return self.uid != 0


class Disk(Frozen):
    """The file system for ``path``: free bytes for this user, the device number, and how many more files it can have.

    ``inodes`` is None where a file system has no such number, as btrfs.
    """

    path: str
    free: int
    device: int
    inodes: int | None = None


def disk(path: str) -> Disk | None:
    """The file system of ``path``, or of the nearest existing directory above it; None if unknown."""
    there = os.path.abspath(path)
    while not os.path.exists(there) and there != "/":
        there = os.path.dirname(there)
    try:
        found = os.statvfs(there)
        inodes = found.f_favail if found.f_files > 0 else None
        return Disk(path, found.f_bavail * found.f_frsize, os.stat(there).st_dev, inodes)
    except OSError:
        return None


def detect(
    environ: Mapping[str, str],
    root: str = "/",
    *,
    uid: int | None = None,
    programs: Iterable[str] = (),
    directories: Iterable[str] = (),
) -> MachineFacts:
    """The facts of this machine, in 2 ms; ``root`` is the directory of /proc, /sys, /dev, /run, /var and /etc.

    ``uid``: the user, this process's unless given. ``programs``: those to look for beside :data:`PACKAGE_TOOLS`, on
    PATH and then in ``directories``.
    """
    uid = os.getuid() if uid is None else uid
    user = _user_name(uid)
    release = _os_release(root)
    delegated = _read(root, DELEGATED.format(uid=uid))
    return MachineFacts(
        uid=uid,
        platform=sys.platform,
        kernel=kernel_release(os.uname().release),
        cgroups=_cgroups(root),
        systemd=os.path.isdir(os.path.join(root, "run/systemd/system")),
        cap_sys_resource=bool(_effective_capabilities(root) >> CAP_SYS_RESOURCE & 1),
        nofile=most_files(root),
        nproc=most_processes(root),
        dev_fuse=os.access(os.path.join(root, "dev/fuse"), os.R_OK | os.W_OK),
        dev_net_tun=_opens(os.path.join(root, "dev/net/tun")),
        programs=find_programs(environ, (*programs, *PACKAGE_TOOLS), directories, root),
        subids=_has_subids(root, uid, user),
        free_subids=_free_subids(root),
        container_ids=min(_container_ids(root, path) for path in _SUBID_FILES),
        container=_container(environ, root),
        ci=environ.get("CI", "").lower() not in ("", "0", "false"),
        distribution=(release.get("ID", ""), *release.get("ID_LIKE", "").split()) if release else (),
        # Derivatives (Mint, Devuan) name the suite of their parent distribution, which apt uses.
        codename=next((release[n] for n in CODENAMES if release.get(n)), ""),
        user=user,
        delegated=frozenset(delegated.split()) if delegated else None,
        user_bus=_has_bus(environ, root, uid),
        bus_unit=any(os.path.exists(os.path.join(root, place)) for place in BUS_UNITS),
        linger=bool(user) and os.path.exists(os.path.join(root, "var/lib/systemd/linger", user)),
        keys=_keys(root, uid),
        shared=_shared(root),
    )


def _shared(root: str) -> dict[str, int]:
    found = {name: _read(root, f"proc/sys/{name.replace('.', '/')}").strip() for name in SHARED}
    return {name: int(text) for name, text in found.items() if text.isdecimal()}


def _keys(root: str, uid: int) -> KernelKeys | None:
    """From /proc/key-users, "UID: USAGE KEYS/INSTANTIATED NUMBER/MOST SIZE/MOST"."""
    for line in _read(root, "proc/key-users").splitlines():
        words = line.split()
        if len(words) == 5 and words[0] == f"{uid}:":
            numbers = [*words[3].split("/"), *words[4].split("/")]
            return KernelKeys(*map(int, numbers)) if len(numbers) == 4 and all(map(str.isdecimal, numbers)) else None
    return None


def _opens(path: str) -> bool:
    """Whether the device opens. Its mode may allow what a container's device rules or a missing driver do not."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY))
    except OSError:
        return False
    return True


def find_programs(
    environ: Mapping[str, str], names: Iterable[str], directories: Iterable[str] = (), root: str = "/"
) -> dict[str, str]:
    """Name -> path of the installed ones of ``names``: on PATH, or else in one of ``directories``."""
    directories = [*environ.get("PATH", "").split(os.pathsep), *directories]
    # With a relative entry of PATH, the working directory, often a hostile repository, could provide our programs.
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


def kernel_release(release: str) -> tuple[int, int]:
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


def machine_memory(root: str = "/") -> int:
    """In bytes; 0 when unknown. If podbot runs in a container with a memory limit, the limit is returned."""
    found = [int(text) for name in _MEMORY_LIMITS if (text := _read(root, name).strip()).isdigit()]
    for line in _read(root, "proc/meminfo").splitlines():
        words = line.split()
        if words[:1] == ["MemTotal:"] and len(words) == 3 and words[1].isdigit():
            found.append(int(words[1]) << 10)
    return min((size for size in found if size > 0), default=0)


def most_files(root: str = "/") -> int:
    """How many files a process started here may have open."""
    return _ceiling(resource.RLIMIT_NOFILE, root, "proc/sys/fs/nr_open")


def most_processes(root: str = "/") -> int:
    """How many processes the user of a process started here may have."""
    return _ceiling(resource.RLIMIT_NPROC, root, "proc/sys/kernel/pid_max")


def _ceiling(kind: int, root: str, kernel: str) -> int:
    """The lower of the hard limit and the kernel's, to which Podman lowers its own; Podman's default if unlimited."""
    text = _read(root, kernel).strip()
    values = [resource.getrlimit(kind)[1], int(text) if text.isdigit() else resource.RLIM_INFINITY]
    return min((value for value in values if value != resource.RLIM_INFINITY), default=UNLIMITED)


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
            return True  # a directory service provides the ranges, and the files do not matter
    names = {str(uid), user or str(uid)}
    return all(
        any(line.split(":")[0] in names for line in _read(root, path).splitlines() if line.strip())
        for path in _SUBID_FILES
    )


def _free_subids(root: str) -> int | None:
    """The first id above all ranges of all users; None if a file cannot be read, or has a line that is no range.

    Ranges above those that `useradd` assigns, such as one for containers, cannot overlap with a new user's range.
    """
    first = _FIRST_SUBID
    for path in _SUBID_FILES:
        try:
            with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
                lines = [line.strip() for line in file]
        except OSError:
            return None
        for line in lines:
            if not line or line.startswith("#"):
                continue
            _, *numbers = line.split(":")
            if len(numbers) != 2 or not all(n.isascii() and n.isdigit() and len(n) <= 10 for n in numbers):
                return None
            if int(numbers[0]) <= _LAST_SUBID:
                first = max(first, int(numbers[0]) + int(numbers[1]))
    return first if first + SUBIDS - 1 <= _LAST_SUBID else None


def _container_ids(root: str, path: str) -> int:
    """How many ids a file gives the name `containers`, for which Podman and Buildah look."""
    ranges = (line.strip().split(":") for line in _read(root, path).splitlines())
    counts = (found[2] for found in ranges if len(found) == 3 and found[0] == "containers")
    return sum(int(count) for count in counts if count.isascii() and count.isdigit() and len(count) <= 10)


def _has_bus(environ: Mapping[str, str], root: str, uid: int) -> bool:
    """Whether the user's D-Bus exists, by Podman's rule: the address in the environment, else the usual socket."""
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
