"""podbot's seccomp profile: the engine's default one with fewer calls. Pure but for its own data file, read once.

``default.json`` is that of containers-common 0.50.1 (Apache-2.0, see README.md), and shipped, so that a sandbox is
confined alike whatever the host has. What a session loses against it is in REMOVED and CONDITIONS. A call that nothing
allows answers ENOSYS, as in the default profile; REFUSALS has other answers for callers that expect them. ADR 0021.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

_INT = 0xFFFF_FFFF  # seccomp sees 64 bits of an argument, and the kernel uses 32 of an int: the others are free to lie
_NEWCGROUP = 0x0200_0000
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK, _AF_PACKET, _AF_ALG, _AF_VSOCK = 1, 2, 10, 16, 17, 38, 40
_NETLINK_AUDIT = 9
_NETLINK_PROTOCOLS = (  # 0 to 31 without that of the audit log, as (mask, value)
    (_INT & ~0x7, 0), (_INT, 8), (_INT & ~0x5, 0xA), (_INT & ~0x3, 0xC), (_INT & ~0xF, 0x10),
)  # fmt: skip
_F_SETLEASE = 1024
_FCNTL = ("fcntl", "fcntl64")
_S390 = {"arches": ["s390", "s390x"]}

# keyctl, add_key, request_key: keyrings are the host user's, root's on a rootful engine, and no namespace keeps them
# apart. clone3 has its flags in memory, where no filter looks; the C library then uses clone. socketcall is socket for
# 32-bit programs, and hides its arguments as well.
REMOVED = frozenset({"keyctl", "add_key", "request_key", "clone3", "socketcall"})


class Bits(NamedTuple):
    """Argument ``number`` has ``value`` in the bits of ``mask``."""

    number: int
    mask: int
    value: int


class Condition(NamedTuple):
    """The calls ``names`` when every test of ``tests`` holds, on the machines that ``on`` selects."""

    names: tuple[str, ...]
    tests: tuple[Bits, ...]
    on: Mapping[str, Any] = {}


CONDITIONS = (
    # A cgroup namespace of its own lets a user namespace's root mount cgroup v1, and lift the sandbox's limits there.
    Condition(("unshare",), (Bits(0, _NEWCGROUP, 0),)),
    Condition(("clone",), (Bits(0, _NEWCGROUP, 0),), {"excludes": _S390}),
    Condition(("clone",), (Bits(1, _NEWCGROUP, 0),), {"includes": _S390}),  # there the stack comes first
    # A lease stalls whoever opens the file on the host, for /proc/sys/fs/lease-break-time (45 s). Commands up to 1023
    # and 1025 to 1039 are allowed: not F_SETLEASE, nor what begins with F_SETDELEG (1040, Linux 6.19).
    Condition(_FCNTL, (Bits(1, _INT & ~0x3FF, 0),)),
    *(Condition(_FCNTL, (Bits(1, (_INT & ~0xF) | bit, _F_SETLEASE | bit),)) for bit in (1, 2, 4, 8)),
    # Not AF_VSOCK, which reaches the hypervisor, nor interfaces of the kernel's that no agent needs.
    *(Condition(("socket",), (Bits(0, _INT, family),)) for family in (_AF_UNIX, _AF_INET, _AF_INET6)),
    *(Condition(("socket",), (Bits(0, _INT, _AF_NETLINK), Bits(2, *protocol))) for protocol in _NETLINK_PROTOCOLS),
)
# None of these meets a condition above: which of two rules for one call is stronger would be libseccomp's to say.
REFUSALS = (
    (Condition(("unshare",), (Bits(0, _NEWCGROUP, _NEWCGROUP),)), errno.EPERM),
    (Condition(("clone",), (Bits(0, _NEWCGROUP, _NEWCGROUP),), {"excludes": _S390}), errno.EPERM),
    (Condition(("clone",), (Bits(1, _NEWCGROUP, _NEWCGROUP),), {"includes": _S390}), errno.EPERM),
    (Condition(_FCNTL, (Bits(1, _INT, _F_SETLEASE),)), errno.EINVAL),  # as on a file system without leases
    *((Condition(("socket",), (Bits(0, _INT, f),)), errno.EAFNOSUPPORT) for f in (_AF_PACKET, _AF_ALG, _AF_VSOCK)),
    # useradd and sudo go on without the audit log for this answer, and end for ENOSYS.
    (Condition(("socket",), (Bits(0, _INT, _AF_NETLINK), Bits(2, _INT, _NETLINK_AUDIT))), errno.EINVAL),
)


@functools.cache
def profile() -> str:
    """The profile's text, as an engine reads it: JSON in the form of containers-common."""
    with open(os.path.join(os.path.dirname(__file__), "default.json"), encoding="utf-8") as file:
        return json.dumps(derived(json.load(file)), separators=(",", ":"))


def derived(default: Mapping[str, Any]) -> dict[str, Any]:
    """``default`` with podbot's differences. Programs of other architectures than the kernel's own are terminated:
    libseccomp makes a rule for a 32-bit program's socketcall that ignores the family.
    """
    replaced = REMOVED | {name for condition in CONDITIONS for name in condition.names}
    kept = [
        {**entry, "names": [name for name in entry["names"] if name not in replaced]} for entry in default["syscalls"]
    ]
    return {
        **default,
        "archMap": [{**entry, "subArchitectures": []} for entry in default["archMap"]],
        "syscalls": [
            *(entry for entry in kept if entry["names"]),
            *(_entry(condition) for condition in CONDITIONS),
            *({**_entry(condition), "action": "SCMP_ACT_ERRNO", "errnoRet": code} for condition, code in REFUSALS),
        ],
    }


def profile_path(state_dir: str) -> str:
    """Where the profile lies on the host for the engine to read, named by its content."""
    name = hashlib.sha256(profile().encode()).hexdigest()[:32]
    return os.path.join(state_dir, "seccomp", f"{name}.json")


def _entry(condition: Condition) -> dict[str, Any]:
    return {
        "names": list(condition.names),
        "action": "SCMP_ACT_ALLOW",
        "args": [
            {"index": test.number, "value": test.mask, "valueTwo": test.value, "op": "SCMP_CMP_MASKED_EQ"}
            for test in condition.tests
        ],
        "comment": "",
        "includes": {},
        "excludes": {},
        **condition.on,
    }
