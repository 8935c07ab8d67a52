"""The QEMU command line, and whether this machine can run it faster than by emulation."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

PROGRAM = "qemu-system-x86_64"
OLDEST = 10  # with 7.2 (Debian 12) the kernel of Debian 13 panicked three times under load
MEMORY, CPUS = 6144, 2  # MiB
KVM, EMULATION = "kvm", "tcg,thread=multi"
_KVM_CREATE_VM, _KVM_CREATE_VCPU = 0xAE01, 0xAE41


@dataclass(frozen=True)
class Boot:
    """The parameters of the machine: paths as QEMU sees them. ``fresh``: writes to the disk are discarded at the
    end.
    """

    disk: str
    kernel: str
    initrd: str
    console: str
    port: int
    accel: str
    fresh: bool = True
    memory: int = MEMORY
    cpus: int = CPUS


def arguments(boot: Boot) -> list[str]:
    """QEMU's arguments. Its only port is on loopback; a panic ends it."""
    snapshot = "on" if boot.fresh else "off"
    return [
        "-nodefaults", "-display", "none", "-no-reboot",
        "-accel", boot.accel, "-cpu", "host" if boot.accel == KVM else "max",
        "-smp", str(boot.cpus), "-m", str(boot.memory),
        "-kernel", boot.kernel, "-initrd", boot.initrd,
        "-append", "root=/dev/vda rw console=ttyS0 panic=-1 systemd.show_status=0",
        "-drive", f"file={boot.disk},format=raw,if=virtio,cache=unsafe,discard=unmap,snapshot={snapshot}",
        "-netdev", f"user,id=net,hostfwd=tcp:127.0.0.1:{boot.port}-:22",
        "-device", "virtio-net-pci,netdev=net",
        "-device", "virtio-rng-pci",
        "-serial", f"file:{boot.console}",
    ]  # fmt: skip


def in_tree(tree: str, state: str, words: Sequence[str]) -> list[str]:
    """``words`` with ``tree`` as root, and ``state`` at its own path there; the mounts end with the process."""
    mounts = [f'mount --rbind /{name} "$1/{name}"' for name in ("dev", "proc", "sys")]
    script = "; ".join(
        ["set -e", *mounts, 'mkdir -p "$1$2"', 'mount --bind "$2" "$1$2"', 'tree=$1; shift 2; exec chroot "$tree" "$@"']
    )
    return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", tree, state, *words]


def ends_with_parent(words: Sequence[str]) -> list[str]:
    """``words``, terminated by the kernel when the thread that starts them ends, however it ends."""
    return ["setpriv", "--pdeathsig", "KILL", *words]


def major(version: str) -> int:
    """The version in the output of ``qemu-system-x86_64 --version``; 0 for anything else."""
    found = re.search(r"version ([0-9]{1,4})\.", version)
    return int(found.group(1)) if found else 0


def installed() -> str | None:
    """This machine's own QEMU, when it is new enough."""
    program = shutil.which(PROGRAM)
    if program is None:
        return None
    done = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=30, check=False)
    return program if major(done.stdout) >= OLDEST else None


def can_kvm() -> bool:
    """Whether /dev/kvm can make a machine with a processor. Some machines have the device, but refuse that."""
    with contextlib.ExitStack() as stack:
        try:
            device = os.open("/dev/kvm", os.O_RDWR | os.O_CLOEXEC)
            stack.callback(os.close, device)
            machine = fcntl.ioctl(device, _KVM_CREATE_VM, 0)
            stack.callback(os.close, machine)
            stack.callback(os.close, fcntl.ioctl(machine, _KVM_CREATE_VCPU, 0))
        except OSError:
            return False
    return True
