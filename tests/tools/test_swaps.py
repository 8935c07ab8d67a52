"""Directories and files are swapped with links that lead outside, while the tools use them.

PODBOT_SWAP_ROUNDS: of swaps, at least; 10,000 by default, and 100,000 in ``e2e/test_tool_files.py``.
"""

from __future__ import annotations

import itertools
import os
import select
import subprocess
import sys
from pathlib import Path

from podbot.tools.files import Files
from tests.tools.swapping import SWAPPER, Attempts

ROUNDS = int(os.environ.get("PODBOT_SWAP_ROUNDS", "10000"))
CALLS = 400


def test_nothing_outside_is_read_written_or_removed(files: Files, root: Path) -> None:
    outside = root.parent / "outside"
    (outside / "e").mkdir(parents=True)
    before = {"file": "OUTSIDE\n", "e/file": "OUTSIDE\n", "kept": "OUTSIDE\n"}
    for name, text in before.items():
        (outside / name).write_text(text)
    words = [sys.executable, "-c", SWAPPER, str(root), str(outside), str(ROUNDS)]
    swapper = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
    attempts = Attempts(files)
    try:
        assert swapper.stdout is not None
        assert swapper.stdout.readline() == b"ready\n"
        for number in itertools.count():
            attempts.make(number)
            enough = number >= CALLS and select.select([swapper.stdout], [], [], 0)[0]
            if enough and ((attempts.done and attempts.refused["link"]) or number >= 100 * CALLS):
                break
    finally:
        said, _ = swapper.communicate()
    assert said == b"enough\n"
    assert attempts.outside == []
    assert {str(path.relative_to(outside)): path.read_text() for path in outside.rglob("*") if path.is_file()} == before
    # Both outcomes must occur: else nothing was swapped, or nothing was done.
    assert attempts.done
    assert attempts.refused["link"]
