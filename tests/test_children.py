"""The Python for a process of podbot's own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from podbot.children import interpreter


def test_a_script_is_run_by_the_python_that_runs_us(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.touch()
    assert interpreter(str(script)) == sys.executable
    with pytest.raises(OSError, match="not a Python interpreter"):
        interpreter(str(script), frozen=True)
    with pytest.raises(OSError, match="not a Python interpreter"):
        interpreter("/podbot.zip/podbot/script.py")
