"""Causes in words."""

from __future__ import annotations

import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.execution.causes import cause_in_words
from podbot.guest.messages import CAUSES, Cause

SILENT: tuple[Cause, ...] = ("", "deadline", "out_of_memory", "podbot", "terminal")


@pytest.mark.parametrize(
    ("number", "cause", "said"),
    [
        (signal.SIGSEGV, "fault", "SIGSEGV: usually a fault of the program"),
        (signal.SIGPIPE, "closed_pipe", "SIGPIPE: it wrote to a pipe or a connection that nothing reads any more"),
        (signal.SIGALRM, "timer", "SIGALRM: a timer of the program's own"),
        (
            signal.SIGSYS,
            "refused_call",
            "SIGSYS: the sandbox refuses its system call (seccomp), as each of a 32-bit program",
        ),
        (signal.SIGXCPU, "limit", "SIGXCPU: it has used the processor time that it may (RLIMIT_CPU)"),
        (signal.SIGXFSZ, "limit", "SIGXFSZ: it wrote a file that is larger than it may (RLIMIT_FSIZE)"),
        (signal.SIGTERM, "sandbox_end", "SIGTERM: its guest says that the sandbox is ending"),
        (40, "sent", "signal 40: a process of the sandbox or of this machine sent it; the kernel does not say which"),
    ],
)
def test_a_cause_is_a_signal_s_name_and_why(number: int, cause: Cause, said: str) -> None:
    assert cause_in_words(number, cause) == said


@pytest.mark.parametrize("cause", SILENT)
def test_of_what_the_operator_wanted_or_is_told_otherwise_nothing_is_said(cause: Cause) -> None:
    assert cause_in_words(signal.SIGTERM, cause) == ""


@pytest.mark.parametrize("cause", CAUSES)
def test_without_a_signal_nothing_is_said(cause: Cause) -> None:
    assert cause_in_words(None, cause) == ""


@given(st.integers(1, 64), st.sampled_from(CAUSES))
def test_whatever_a_guest_claims_is_one_short_printable_line(number: int, cause: Cause) -> None:
    said = cause_in_words(number, cause)
    assert said.isprintable()
    assert len(said) < 100
    assert bool(said) <= (cause not in SILENT)
