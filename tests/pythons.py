"""Runs the fast tests with each Python that podbot supports and that is found here (``make test-pythons``).

Each Python gets a virtual environment of its own with podbot and its development tools, in ``.pythons/VERSION``, which
later runs use again. ``python -m tests.pythons tests/test_api.py`` runs some of the tests.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.inside import interpreters, junit

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = ROOT / ".pythons"
MINORS = range(11, 15)  # of Python 3: from `requires-python` to the newest that exists


def supported(found: dict[str, str]) -> dict[str, str]:
    """Those that podbot itself runs on: paths by version."""
    return {number: path for number, path in found.items() if _minor(number) in MINORS}


def missing(found: dict[str, str]) -> list[str]:
    """The minor versions that podbot supports and that were not found."""
    return [f"3.{minor}" for minor in MINORS if minor not in map(_minor, found)]


def _minor(number: str) -> int:
    return int(number.split(".")[1])


def environment(number: str, program: str) -> str:
    """The Python of the environment for this one, made or completed when pyproject.toml is newer."""
    place = ENVIRONMENTS / number
    python, ready = str(place / "bin" / "python"), place / ".ready"
    if not ready.exists() or ready.stat().st_mtime < (ROOT / "pyproject.toml").stat().st_mtime:
        subprocess.run([program, "-m", "venv", str(place)], check=True)
        install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--editable", ".[dev]"]
        subprocess.run(install, cwd=ROOT, check=True)
        ready.touch()
    return python


def main(tests: tuple[str, ...]) -> int:
    """Run the tests with each; the status is 1 if some failed."""
    found = supported(interpreters())
    failed = []
    for number, program in found.items():
        sys.stdout.write(f"== Python {number}\n")
        sys.stdout.flush()
        words = [
            environment(number, program),
            "-m",
            "pytest",
            "-q",
            "-n",
            "2",
            "--dist",
            "loadfile",
            *junit(number),
            *tests,
        ]
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        if subprocess.run(words, cwd=ROOT, env=environ, check=False).returncode:
            failed.append(number)
    sys.stdout.write(f"ran: {', '.join(found)}; failed: {', '.join(failed) or 'none'}\n")
    sys.stdout.write(f"not found: {', '.join(missing(found)) or 'none'}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(tuple(sys.argv[1:]) or ("tests",)))
