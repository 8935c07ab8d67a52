"""A virtual environment with podbot and one of its extras, below ``.e2e/``: harnesses are no development dependency."""

from __future__ import annotations

import glob
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[2]
INSTALL_SECONDS = 600


def interpreter(extra: str, *packages: str, python: str = sys.executable, name: str = "") -> str:
    """Its Python, which has the working tree's podbot. ``python``: what makes it; ``name``: if not the extra's."""
    return venv(f"extra-{name or extra}", ("--editable", f".[{extra}]", *packages), python=python)


def venv(name: str, packages: Sequence[str], *, python: str = sys.executable) -> str:
    """The Python of an environment with ``packages``; made again when these or pyproject.toml change."""
    place = ROOT / ".e2e" / name
    made = place / "bin" / "python"
    wanted = hashlib.sha256((ROOT / "pyproject.toml").read_bytes() + repr(packages).encode()).hexdigest()
    stamp = place / "made-for"
    if not stamp.exists() or stamp.read_text() != wanted:
        run([python, "-m", "venv", str(place)], os.environ, INSTALL_SECONDS)
        run([str(made), "-m", "pip", "install", "-q", *packages], os.environ, INSTALL_SECONDS)
        stamp.write_text(wanted)
    return str(made)


def newer_python(minor: int) -> str | None:
    """A Python 3 of at least that minor version, in PATH or made by pyenv; None if there is none."""
    names = [f"python3.{number}" for number in range(minor + 4, minor - 1, -1)]
    places = [shutil.which(name) for name in names]
    places += sorted(glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")), reverse=True)
    check = f"import ensurepip, sys, venv; sys.exit(sys.version_info < (3, {minor}))"
    for place in filter(None, [sys.executable, *places]):
        if subprocess.run([place, "-c", check], capture_output=True, check=False).returncode == 0:
            return place
    return None


def run(words: list[str], env: Mapping[str, str], seconds: float) -> str:
    """Its stdout, and stderr if it fails."""
    done = subprocess.run(
        words, env=dict(env), cwd=ROOT, capture_output=True, text=True, timeout=seconds, check=False,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode == 0, f"{words}: {done.returncode}\n{done.stdout[-8000:]}\n{done.stderr[-4000:]}"
    return done.stdout
