"""Sessions that an older podbot started, whose guest speaks another version of the protocol, or that have none."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import podbot
from e2e.harness import World
from podbot.guest.frames import VERSION

# Makes an older podbot of this one: a file, a line of it, and what it was then.
ANOTHER_VERSION = ("guest/frames.py", f"VERSION = {VERSION}\n", f"VERSION = {VERSION - 1}\n")
NO_GUEST = ("launch/resources/guest.py", "    if has_own_kernel(context.config.sandbox.runtime):\n", "    if True:\n")


def older(place: Path, change: tuple[str, str, str]) -> dict[str, str]:
    """The environment in which ``python -m podbot`` is the older podbot."""
    path, now, then = change
    shutil.copytree(os.path.dirname(podbot.__file__), place / "podbot", ignore=shutil.ignore_patterns("__pycache__"))
    text = (place / "podbot" / path).read_text(encoding="utf-8")
    assert text.count(now) == 1
    (place / "podbot" / path).write_text(text.replace(now, then), encoding="utf-8")
    return {"PYTHONPATH": str(place)}


def works(world: World, name: str, *, by_guest: bool) -> None:
    """Commands of this podbot in the session; one that the engine runs has no parent inside."""
    done = world.podbot("exec", name, "--", "sh", "-c", "cat; echo err >&2; exit 5", input="in")
    assert (done.returncode, done.stdout, done.stderr) == (5, "in", "err\n")
    parent = world.podbot("exec", "-w", "/tmp", "-e", "A=b c", name, "--", "sh", "-c", "echo $A; pwd; echo $PPID")
    assert parent.stdout.startswith("b c\n/tmp\n"), parent.stderr
    assert (parent.stdout.split()[-1] != "0") is by_guest
    opened = world.podbot("open", name, input="echo it $((6 * 7)); exit 7\n")
    assert (opened.returncode, opened.stdout) == (7, "it 42\n"), opened.stderr
    killed = world.podbot("exec", name, "--", "sh", "-c", "kill -TERM $$")
    assert (killed.returncode, killed.stdout) == (143, "")
    assert ("the command was ended by SIGTERM" in killed.stderr) is by_guest, killed.stderr


@pytest.mark.parametrize(
    ("change", "then_by_guest"), [(ANOTHER_VERSION, True), (NO_GUEST, False)], ids=["another version", "no guest"]
)
def test_a_kept_session_of_an_older_podbot_works_stops_and_starts(
    world: World, tmp_path: Path, change: tuple[str, str, str], then_by_guest: bool
) -> None:
    """With its start, a session gets the guest of the podbot that starts it, if its container was made for one."""
    with world.session(flags=("--keep",), env=older(tmp_path, change)) as name:
        works(world, name, by_guest=False)
        for _ in range(2):
            stopped = world.podbot("stop", "--time", "0", name, check=True)
            assert stopped.stdout == f"{name}  (kept, stopped)\n"
            assert world.container(name)["State"] == "exited"
            assert world.podbot("exec", name, "--", "true").returncode != 0
            assert world.podbot("start", name, check=True).stdout == f"{name}\n"
            works(world, name, by_guest=then_by_guest)
