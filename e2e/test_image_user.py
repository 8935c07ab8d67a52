"""An image with a user of its own: an agent works in it as in podbot's image."""

from __future__ import annotations

import json
import os
from pathlib import Path

from e2e.harness import World
from e2e.logins import codex_login
from e2e.shells import image_with

LINES = ("RUN useradd --create-home --uid 4321 dev", "USER dev", "ENV HOME=/home/dev")


def test_the_agent_has_its_login_and_writes_to_the_workspace(world: World) -> None:
    """Issue 29.23: the login could not be read, nor the workspace be written."""
    host, workspace = Path(world.workspace("codex"), "auth.json"), world.workspace()
    host.write_text(json.dumps(codex_login()))
    with image_with(world, "user", *LINES) as image:
        run = ("run", "--workspace", workspace, "--image", image, "--agent")
        env = {"CODEX_HOME": str(host.parent)}
        found = world.podbot(*run, "codex", "--", "login", "status", env=env, check=True)
        assert "Logged in using ChatGPT" in found.stdout + found.stderr
        assert f"where the agent's login is, and not '/home/dev', as {image} has it" in found.stderr
        words = ("sh", "-ec", "id -u; echo $HOME; touch made; id -nu dev")
        done = world.podbot(*run, "custom", "--", *words, env=env, check=True)
        without = world.podbot(*run, "custom", "--", "printenv", "HOME", check=True)
    assert done.stdout.split() == ["0", "/root", "dev"]
    assert without.stdout == "/home/dev\n", "without a login the image's own"
    assert os.stat(os.path.join(workspace, "made")).st_uid == os.getuid()
