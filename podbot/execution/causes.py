"""Why a command ended by something else than itself, in words: who sent the signal that ended it.

The kernel does not tell a parent who sent a signal to its child. The guest knows what podbot sent through it, and which
signals the kernel itself sends, and why; a process may send the same ones.
"""

from __future__ import annotations

import signal

from podbot.guest.messages import Cause

_WORDS: dict[Cause, str] = {
    "fault": "usually a fault of the program",
    "closed_pipe": "it wrote to a pipe or a connection that nothing reads any more",
    "timer": "a timer of the program's own",
    "refused_call": "the sandbox refuses its system call (seccomp), as each of a 32-bit program",
    "sandbox_end": "its guest says that the sandbox is ending",
    "sent": "a process of the sandbox or of this machine sent it; the kernel does not say which",
}
_LIMITS: dict[int, str] = {
    signal.SIGXCPU: "it has used the processor time that it may (RLIMIT_CPU)",
    signal.SIGXFSZ: "it wrote a file that is larger than it may (RLIMIT_FSIZE)",
}


def signal_name(number: int) -> str:
    """Such as "SIGSEGV"; "signal 40" for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def cause_in_words(number: int | None, cause: Cause) -> str:
    """Such as "SIGSEGV: usually a fault of the program"; empty if there is nothing to say.

    That is where no signal ended it, where memory or its time limit did, which podbot says otherwise, and where podbot
    or a key of the terminal sent the signal: the operator wanted that.
    """
    if number is None:
        return ""
    words = _LIMITS.get(number, "") if cause == "limit" else _WORDS.get(cause, "")
    return f"{signal_name(number)}: {words}" if words else ""
