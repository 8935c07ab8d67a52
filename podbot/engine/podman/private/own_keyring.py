"""An empty session keyring for podbot's engine service, and whatever it starts.

Otherwise each container needs a keyring of its own, of which a user may have few, or shares the operator's: see ADR
0055.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

# The number of keyctl(2), for which the C library has no function, on the machines with 64 bits that Podman runs on.
_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219, "loongarch64": 219, "ppc64le": 271, "s390x": 280}
_JOIN_SESSION_KEYRING = 1
_T = TypeVar("_T")


def join() -> bool:
    """Give this thread, and what it starts, a new session keyring. Returns whether it has one."""
    number = _KEYCTL.get(os.uname().machine, 0)
    if not number or sys.maxsize < 1 << 32:
        return False
    import ctypes

    call = ctypes.CDLL(None).syscall
    call.restype = ctypes.c_long
    return int(call(ctypes.c_long(number), ctypes.c_long(_JOIN_SESSION_KEYRING), ctypes.c_void_p(None))) >= 0


def aside(work: Callable[[], _T]) -> _T:
    """The result of ``work``, or its error, from a thread of its own, which alone has the keyring that it joins.

    An exception that a signal raises meanwhile comes when the work is done.
    """
    results: list[_T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(work())
        except BaseException as exc:  # noqa: BLE001 - it is raised below
            errors.append(exc)

    thread = threading.Thread(target=run, name="podbot-service")
    thread.start()
    interrupted: BaseException | None = None
    while thread.is_alive():
        try:
            thread.join()
        except BaseException as exc:  # noqa: BLE001 - a signal's, which must not leave the work to itself
            interrupted = exc
    if interrupted is not None:
        raise interrupted
    if errors:
        raise errors[0]
    return results[0]
