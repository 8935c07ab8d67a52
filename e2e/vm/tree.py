"""Copies the working tree into the machine, and results out of it."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess

from e2e.vm.errors import VmError
from e2e.vm.image import ROOT, STATE
from e2e.vm.machine import Machine

TREE = "podbot"  # below the home directory
CLONE = "clone.bundle"
RESULTS = "results"  # below the home directory; files in it are copied back
COPY_SECONDS = 300.0
_MADE = " ".join(f"! -name {name}" for name in (".git", ".venv", ".e2e"))  # by the tree's own targets
_EMPTIED = f"mkdir -p ~/{TREE} ~/{RESULTS} && find ~/{TREE} -mindepth 1 -maxdepth 1 {_MADE} -exec rm -rf {{}} +"


def copy_in(machine: Machine, user: str) -> None:
    """Every file of this tree that git knows, or would add, replacing the earlier ones. Raises VmError."""
    words = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(words, cwd=ROOT, capture_output=True, check=True).stdout
    there = [name for name in listed.split(b"\0") if name and os.path.lexists(os.path.join(ROOT, os.fsdecode(name)))]
    words = ["tar", "-c", "--null", "--files-from=-", "--owner=0", "--group=0"]
    _piped(machine, user, words, f"{_EMPTIED} && tar -x --no-same-owner -C ~/{TREE}", b"\0".join(there))


def bundle_in(machine: Machine, user: str) -> None:
    """The commits here, of all branches, as a repository to clone: ~/clone.bundle."""
    words = ["git", "bundle", "create", "-q", "-", "HEAD"]
    _piped(machine, user, words, f"cat > ~/{CLONE}", b"")


def bring_back(machine: Machine, user: str) -> str:
    """Copy the machine's ~/results to .vm/results here. Raises VmError."""
    place = os.path.join(STATE, RESULTS)
    shutil.rmtree(place, ignore_errors=True)
    os.makedirs(place)
    # The machine's data is not trusted: no owners, and tar stays within the directory.
    unpack = subprocess.Popen(
        ["tar", "-x", "--no-same-owner", "--no-same-permissions", "-C", place], stdin=subprocess.PIPE
    )
    assert unpack.stdin is not None
    with unpack.stdin as stdin:
        code = machine.run(
            f"mkdir -p ~/{RESULTS}; tar -c -C ~/{RESULTS} .", user=user, limit=COPY_SECONDS, stdout=stdin
        )
    if unpack.wait() != 0 or code != 0:
        raise VmError("the results could not be brought back")
    return place


def _piped(machine: Machine, user: str, words: list[str], command: str, given: bytes) -> None:
    source = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert source.stdin is not None
    assert source.stdout is not None
    with source.stdin as stdin:
        stdin.write(given)
    with source.stdout as data:
        code = machine.run(command, user=user, limit=COPY_SECONDS, stdin=data)
    if source.wait() != 0 or code != 0:
        raise VmError(f"`{shlex.join(words)}` into the machine failed")
