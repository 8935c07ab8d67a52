"""``podbot exec`` in the tests that Podman 4.3.1 has for ``podman exec`` and for terminals, run by bats."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from e2e.bats import Result, results, unexpected
from e2e.harness import ROOTLESS, World
from e2e.integrations.extra import ROOT
from e2e.integrations.podman_source import DIGESTS, their_tests
from e2e.patience import patient

HELPERS = ROOT / "e2e" / "integrations" / "podman_tests.bash"
SECONDS = 500

KEEP_ID = "podman exec - with keep-id"
SIZE, NO_TTY = "podman detects correct tty size", "podman run --tty -i failure with no tty"
NAMES = (
    "podman exec - basic test", "podman exec - leak check", "podman exec - cat from stdin", KEEP_ID,
    "podman exec/run - missing output", SIZE, "podman load - will not read from tty", NO_TTY,
)  # fmt: skip
# The tests that do not pass. The reasons are on docs/reference/conformance.md.
BY_ROOT = {} if ROOTLESS else {KEEP_ID: Result("skipped", "--userns=keep-id only works in rootless mode")}
NO_TERMINAL = r"podbot: the command gets no terminal \(-t\): podbot's stdin and stdout are not both terminals"
IN_SESSIONS = {
    KEEP_ID: Result("failed", r"podbot's sessions have no --userns"),
    SIZE: Result("failed", rf"# {NO_TERMINAL}\n# stty: 'standard input': Inappropriate ioctl for device"),
    NO_TTY: Result("failed", rf"expected: '\.\*The input device is not a TTY\.\*'.*\n#.* actual: '{NO_TERMINAL}'"),
    **BY_ROOT,
}


def run_bats(world: World, place: Path, *, sessions: bool) -> tuple[dict[str, Result], set[str]]:
    """(The results, the containers of ``exec``). ``sessions``: whether these are sessions of podbot's."""
    theirs, state, shim = their_tests(), place / "state", place / "podman"
    state.mkdir()
    for name in DIGESTS:
        shutil.copy(theirs / name, place / name.replace("helpers.", "helpers.theirs."))
    shutil.copy(HELPERS, place / "helpers.bash")
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m e2e.integrations.podman_shim "$@"\n')
    shim.chmod(0o755)
    env = {
        **world.sealed_env,
        "PYTHONPATH": str(ROOT),
        "PODMAN": str(shim),
        "PODMAN_TIMEOUT": str(int(patient(120))),
        "CHECK_IMAGE": world.sealed_env.get("PODBOT_IMAGE", world.image),
        "CHECK_SECONDS": str(int(patient(60))),
        "CHECK_STATE": str(state),
        "CHECK_SESSIONS": "yes" if sessions else "no",
        "CHECK_CONTAINERS_CONF": world.podman_env()["CONTAINERS_CONF"],
    }
    words = ["bats", "--tap", *(str(place / name) for name in DIGESTS if name.endswith(".bats"))]
    done = subprocess.run(
        words, cwd=place, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=patient(SECONDS),
        check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    return results(done.stdout), set((state / "execs").read_text().split())


def by_the_engine(world: World, began: str, containers: set[str]) -> set[str]:
    """Those in which the engine has started a command."""
    words = ["events", "--stream=false", "--since", began, "--filter", "event=exec", "--format", "{{.ID}} {{.Name}}"]
    listed = world.podman(*words)
    assert listed.returncode == 0, listed.stderr
    return containers & set(listed.stdout.split())


@pytest.mark.parametrize("sessions", [False, True], ids=["containers", "sessions"])
def test_podmans_own_tests(own_world: World, tmp_path: Path, sessions: bool) -> None:
    assert own_world.podbot("ps").returncode == 0  # starts the service, which writes its configuration
    began = str(int(time.time()))
    found, containers = run_bats(own_world, tmp_path, sessions=sessions)
    wrong = unexpected(found, NAMES, IN_SESSIONS if sessions else BY_ROOT)
    assert not wrong, "\n".join(wrong)
    assert by_the_engine(own_world, began, containers) == (set() if sessions else containers)
