"""A session keyring that one thread has, on this kernel."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from podbot.engine.podman.private.own_keyring import aside, join

SESSION = "import ctypes, os; print(ctypes.CDLL(None).syscall({number}, 0, -3, 0))"
NUMBERS = {"x86_64": 250, "aarch64": 219}


def session() -> str:
    """The number of the session keyring of what this thread starts; empty where that cannot be asked."""
    number = NUMBERS.get(os.uname().machine, 0)
    if not number:
        return ""
    words = [sys.executable, "-c", SESSION.format(number=number)]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip().replace("-1", "")


def test_the_thread_alone_has_the_new_keyring() -> None:
    before = session()
    joined, inside = aside(lambda: (join(), session()))
    assert session() == before
    assert (inside != before) == (joined and inside != "")


def test_an_error_of_the_work_is_raised() -> None:
    with pytest.raises(ValueError, match="no"):
        aside(lambda: int("no"))
