"""podbot's seccomp profile: the engine's default one with fewer calls. Pure except for its data file, read once.

``default.json`` is that of containers-common 0.50.1 (Apache-2.0, see README.md). It is shipped, so that confinement
does not depend on the host. REMOVED and CONDITIONS list the differences. A call that is not allowed returns ENOSYS, as
in the default profile; REFUSALS has other error numbers for callers that expect them. See ADR 0021.
"""

from __future__ import annotations

import errno
import functools
import hashlib
import json
import os
from collections.abc import Mapping
from typing import Any

from podbot.frozen import Frozen

_INT = 0xFFFF_FFFF  # seccomp sees 64 bits of an argument; of an int the kernel uses only 32, so the rest is arbitrary
_NEWCGROUP = 0x0200_0000
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK, _AF_PACKET, _AF_ALG, _AF_VSOCK = 1, 2, 10, 16, 17, 38, 40
_NETLINK_AUDIT = 9
_NETLINK_PROTOCOLS = (  # 0 to 31 except the audit log's, as (mask, value)
    (_INT & ~0x7, 0), (_INT, 8), (_INT & ~0x5, 0xA), (_INT & ~0x3, 0xC), (_INT & ~0xF, 0x10),
)  # fmt: skip
_F_SETLEASE = 1024
_FCNTL = ("fcntl", "fcntl64")
_S390 = {"arches": ["s390", "s390x"]}

# keyctl, add_key, request_key: keyrings belong to the host user (root on a rootful engine), and no namespace separates
# them. clone3 has its flags in memory, which a filter cannot read; the C library falls back to clone. socketcall is
# socket for 32-bit programs, and hides its arguments too. io_setup takes from a number that all programs of the host
# share (fs.aio-max-nr, 65,536); node, npm, git and nested Podman never call it, databases do without (ADR 0054).
REMOVED = frozenset({"keyctl", "add_key", "request_key", "clone3", "socketcall", "io_setup"})


class Bits(Frozen):
    """Argument ``number`` has ``value`` in the bits of ``mask``."""

    number: int
    mask: int
    value: int


class Condition(Frozen):
    """Matches the calls ``names`` when every one of ``tests`` is true, on the architectures that ``on`` selects."""

    names: tuple[str, ...]
    tests: tuple[Bits, ...]
    on: Mapping[str, Any] = {}


CONDITIONS = (
    # In a cgroup namespace of its own, a user namespace's root can mount cgroup v1 and remove the sandbox's limits.
    Condition(("unshare",), (Bits(0, _NEWCGROUP, 0),)),
    Condition(("clone",), (Bits(0, _NEWCGROUP, 0),), {"excludes": _S390}),
    Condition(("clone",), (Bits(1, _NEWCGROUP, 0),), {"includes": _S390}),  # on s390 the stack is the first argument
    # A lease blocks any process that opens the file on the host, for /proc/sys/fs/lease-break-time (45 s). Commands up
    # to 1023 and 1025 to 1039 are allowed, so not F_SETLEASE, nor F_SETDELEG and above (1040, Linux 6.19).
    Condition(_FCNTL, (Bits(1, _INT & ~0x3FF, 0),)),
    *(Condition(_FCNTL, (Bits(1, (_INT & ~0xF) | bit, _F_SETLEASE | bit),)) for bit in (1, 2, 4, 8)),
    # Neither AF_VSOCK, which reaches the hypervisor, nor kernel interfaces that no agent needs.
    *(Condition(("socket",), (Bits(0, _INT, family),)) for family in (_AF_UNIX, _AF_INET, _AF_INET6)),
    *(Condition(("socket",), (Bits(0, _INT, _AF_NETLINK), Bits(2, *protocol))) for protocol in _NETLINK_PROTOCOLS),
)
# None of these overlaps a condition above: libseccomp would decide which of two rules for one call applies.
REFUSALS = (
    (Condition(("unshare",), (Bits(0, _NEWCGROUP, _NEWCGROUP),)), errno.EPERM),
    (Condition(("clone",), (Bits(0, _NEWCGROUP, _NEWCGROUP),), {"excludes": _S390}), errno.EPERM),
    (Condition(("clone",), (Bits(1, _NEWCGROUP, _NEWCGROUP),), {"includes": _S390}), errno.EPERM),
    (Condition(_FCNTL, (Bits(1, _INT, _F_SETLEASE),)), errno.EINVAL),  # as on a file system without leases
    *((Condition(("socket",), (Bits(0, _INT, f),)), errno.EAFNOSUPPORT) for f in (_AF_PACKET, _AF_ALG, _AF_VSOCK)),
    # With this error useradd and sudo continue without the audit log; with ENOSYS they fail.
    (Condition(("socket",), (Bits(0, _INT, _AF_NETLINK), Bits(2, _INT, _NETLINK_AUDIT))), errno.EINVAL),
)


@functools.cache
def profile() -> str:
    """The profile's text, as an engine reads it: JSON in the form of containers-common."""
    with open(os.path.join(os.path.dirname(__file__), "default.json"), encoding="utf-8") as file:
        return json.dumps(derived(json.load(file)), separators=(",", ":"))


def derived(default: Mapping[str, Any]) -> dict[str, Any]:
    """``default`` with podbot's differences.

    Programs for an architecture other than the kernel's own are terminated, because libseccomp makes a rule for a
    32-bit program's socketcall that ignores the family.
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
    """The path of the profile on the host, from which the engine reads it; named by its hash."""
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
