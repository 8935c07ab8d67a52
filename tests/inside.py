"""The Python that runs what belongs into a sandbox, the guest and the files worker, in tests without one.

It is this process's, unless the variable names another one. ``python -m tests.inside`` (``make test-inside``) runs the
tests of both with each Python that it finds.
"""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import sys

VARIABLE = "PODBOT_TEST_INSIDE_PYTHON"
PROGRAM = os.environ.get(VARIABLE) or sys.executable
MINORS = range(8, 15)  # of Python 3; both promise to run from 3.8 on
TESTS = ("tests/test_inside.py", "tests/guest", "tests/tools", "tests/shell/test_interrupted.py")


def version(program: str = PROGRAM) -> str | None:
    """Such as "3.8.18"; None if it is no Python that can be started."""
    words = [program, "-c", "import platform; print(platform.python_version())"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def interpreters() -> dict[str, str]:
    """The Pythons in PATH and those that pyenv made, one for each minor version, and this one: paths by version."""
    found = {}
    for minor in MINORS:
        made = sorted(glob.glob(os.path.expanduser(f"~/.pyenv/versions/3.{minor}.*/bin/python3")))
        for place in filter(None, (sys.executable, *made, shutil.which(f"python3.{minor}"))):
            known = version(place)
            if known is not None and known.startswith(f"3.{minor}."):
                found[known] = place
                break
    return found


def junit(number: str) -> list[str]:
    """pytest's option for a report of its own of each Python, where scripts/recorded asks for reports."""
    place = os.environ.get("PODBOT_E2E_RESULTS")
    return [f"--junitxml={place}/python-{number}.xml"] if place else []


def main(tests: tuple[str, ...]) -> int:
    """Run the tests with each; the status is 1 if some failed."""
    failed = []
    found = interpreters()
    for number, program in found.items():
        sys.stdout.write(f"== Python {number}\n")
        sys.stdout.flush()
        words = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", *junit(number), *tests]
        if subprocess.run(words, env={**os.environ, VARIABLE: program}, check=False).returncode:
            failed.append(number)
    missing = [f"3.{minor}" for minor in MINORS if not any(known.startswith(f"3.{minor}.") for known in found)]
    sys.stdout.write(f"ran: {', '.join(found)}; failed: {', '.join(failed) or 'none'}\n")
    sys.stdout.write(f"not found: {', '.join(missing) or 'none'}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main(tuple(sys.argv[1:]) or TESTS))
