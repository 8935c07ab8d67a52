"""The disk of a fresh Debian 13 machine, and a QEMU that runs it: made once, from this machine's package sources."""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass

from e2e.vm.errors import VmError
from e2e.vm.qemu import PROGRAM, in_tree, installed
from e2e.vm.sources import debian_sources
from e2e.vm.steps import need_programs, need_room, say, step
from e2e.vm.suite import USER

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STATE = os.path.join(ROOT, ".vm")
NeedRoom = Callable[[str, float, str], None]
SUITE = "trixie"
DISK_SIZE = "24G"  # sparse: at first 1.2 GB of it are used
HERE = os.path.dirname(os.path.abspath(__file__))

# A new user's machine: a system that boots, a login, and the programs to clone a repository. podbot installs Podman.
PACKAGES = (
    "linux-image-cloud-amd64", "systemd-sysv", "systemd-resolved", "udev", "dbus", "dbus-user-session",
    "libpam-systemd", "openssh-server", "sudo", "ca-certificates", "iproute2", "procps", "kmod", "less", "git", "make",
    "python3",
)  # fmt: skip
TOOLS = {
    "mmdebstrap": "mmdebstrap",
    "mkfs.ext4": "e2fsprogs",
    "ssh": "openssh-client",
    "setpriv": "util-linux",
    "unshare": "util-linux",
}


@dataclass(frozen=True)
class Image:
    """What a machine boots from. ``qemu``: the program; ``tree``: the root file system it lies in, "" for this one.

    ``state``: the directory for what is written while it runs.
    """

    disk: str
    kernel: str
    initrd: str
    key: str
    known_hosts: str
    qemu: str
    tree: str
    state: str = STATE

    @property
    def console(self) -> str:
        return os.path.join(self.state, "console.log")

    @property
    def qemu_log(self) -> str:
        return os.path.join(self.state, "logs", "qemu.log")

    @property
    def no_kvm(self) -> str:
        """A file that says that KVM does not work here, and why."""
        return os.path.join(self.state, "no-kvm")

    def qemu_command(self, words: list[str]) -> list[str]:
        """QEMU with ``words``, wherever it is installed."""
        command = [self.qemu, *words]
        return in_tree(self.tree, self.state, command) if self.tree else command


def image(state: str = STATE, *, uid: int | None = None, need_room: NeedRoom = need_room) -> Image:
    """Made when it is missing, or was made from other files than these. Raises VmError.

    ``uid``: the user, this process's unless given.
    """
    if (os.getuid() if uid is None else uid) != 0:
        raise VmError("the machine's disk is made by root (mmdebstrap, mkfs.ext4): run this with sudo")
    need_programs(TOOLS)
    os.makedirs(os.path.join(state, "logs"), exist_ok=True)
    key = _keys(state)
    qemu = installed()
    tree = "" if qemu else _qemu_tree(state, need_room)
    place = os.path.join(state, f"debian-{_digest(key)}")
    if not os.path.exists(os.path.join(place, "made")):
        _make(place, key, state, need_room)
    return Image(
        disk=os.path.join(place, "disk.ext4"),
        kernel=os.path.join(place, "vmlinuz"),
        initrd=os.path.join(place, "initrd.img"),
        key=key,
        known_hosts=os.path.join(state, "known_hosts"),
        qemu=qemu or f"/usr/bin/{PROGRAM}",
        tree=tree,
        state=state,
    )


def _digest(key: str) -> str:
    found = hashlib.sha256(repr((SUITE, PACKAGES, DISK_SIZE)).encode())
    for path in (os.path.join(HERE, "customize.sh"), f"{key}.pub"):
        with open(path, "rb") as file:
            found.update(file.read())
    return found.hexdigest()[:12]


def _keys(state: str) -> str:
    """The key that logs in, and the key by which the machine is known; path of the former."""
    login, host = (os.path.join(state, name) for name in ("login_key", "host_key"))
    for path in (login, host):
        if not os.path.exists(f"{path}.pub"):
            words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "podbot test machine", "-f", path]
            subprocess.run(words, check=True)
    with open(f"{host}.pub", encoding="ascii") as file, open(os.path.join(state, "known_hosts"), "w") as known:
        known.write(f"podbot-vm {file.read()}")
    return login


def _qemu_tree(state: str, need_room: NeedRoom) -> str:
    """A Debian 13 tree with QEMU in it, for a machine whose own is missing or too old."""
    tree = os.path.join(state, "qemu")
    if os.path.exists(os.path.join(tree, "made")):
        return tree
    need_room(state, 2, "QEMU")
    shutil.rmtree(tree, ignore_errors=True)
    words = _mmdebstrap(tree, ["qemu-system-x86"])
    step("installing QEMU into a Debian 13 tree", words, limit=900, log=os.path.join(state, "logs", "qemu-tree.log"))
    _done(tree)
    return tree


def _make(place: str, key: str, state: str, need_room: NeedRoom) -> None:
    for old in glob.glob(os.path.join(state, "debian-*")):
        say(f"removing {old}, made from other files than these, and the disks that were kept with it")
        shutil.rmtree(old)
    need_room(state, 8, "the disk and what a run writes to it")
    tree = os.path.join(place, "tree")
    os.makedirs(place)
    hook = f'--customize-hook=sh "{HERE}/customize.sh" "$1" {USER} "{state}" "{key}.pub"'
    log = os.path.join(state, "logs", "debian.log")
    step("installing Debian 13", _mmdebstrap(tree, PACKAGES, hook), limit=1200, log=log)
    for name, pattern in (("vmlinuz", "boot/vmlinuz-*"), ("initrd.img", "boot/initrd.img-*")):
        (found,) = glob.glob(os.path.join(tree, pattern))
        shutil.copy(found, os.path.join(place, name))
    words = ["mkfs.ext4", "-q", "-F", "-L", "root", "-d", tree, os.path.join(place, "disk.ext4"), DISK_SIZE]
    path = os.pathsep.join([os.environ["PATH"], "/usr/sbin", "/sbin"])
    log = os.path.join(state, "logs", "mkfs.log")
    step("making its disk", words, limit=600, log=log, env={**os.environ, "PATH": path})
    shutil.rmtree(tree)
    _done(place)
    say(f"the machine's disk is {place}/disk.ext4")


def _mmdebstrap(tree: str, packages: tuple[str, ...] | list[str], *options: str) -> list[str]:
    include = f"--include={','.join(packages)}"
    # It mounts /proc and /sys in the tree. If it was killed, it would leave them there, and the next run could not
    # remove it.
    alone = ["unshare", "--mount", "--propagation", "private"]
    return [
        *alone,
        "mmdebstrap",
        "--mode=root",
        "--variant=minbase",
        include,
        *options,
        SUITE,
        tree,
        *debian_sources(SUITE),
    ]


def _done(place: str) -> None:
    with open(os.path.join(place, "made"), "w", encoding="ascii"):
        pass
