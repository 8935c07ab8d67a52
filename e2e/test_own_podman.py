"""The user's own podman, on the store that podbot's service made."""

from __future__ import annotations

import os
import re
import subprocess

from e2e.harness import ROOTLESS, World
from e2e.patience import patient


def podman(world: World, *args: str) -> subprocess.CompletedProcess[str]:
    words = ["podman", *args]
    return subprocess.run(words, env=world.env, capture_output=True, text=True, timeout=patient(60), check=False)


def test_it_prints_no_error_after_podbot_made_the_store(own_world: World) -> None:
    if ROOTLESS:  # as on a new account of Debian 12; root's store is the machine's, and its driver the default
        os.unlink(own_world.storage_conf)
    first = own_world.podbot("ps", check=True)
    assert (own_world.storage_conf in first.stderr) is ROOTLESS
    for words in (["ps", "--all"], ["images"], ["info", "--format", "{{.Store.GraphDriverName}}"]):
        done = podman(own_world, *words)
        assert done.returncode == 0, words
        assert not re.search("graph driver|level=error", done.stderr), words
    assert done.stdout == "overlay\n"
    assert not own_world.podbot("ps", check=True).stderr
