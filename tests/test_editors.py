"""The settings files of the how-tos are valid for the editor, and start podbot as described."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parent.parent / "docs" / "how-to"
WORKSPACE = "/home/ada/src"


def _servers(page: str) -> dict[str, dict[str, Any]]:
    """The entries of the page's settings file."""
    text = (DOCS / page).read_text(encoding="utf-8")
    (block,) = (found for found in re.findall(r"```json\n(.*?)```", text, re.DOTALL) if '"agent_servers"' in found)
    servers: dict[str, dict[str, Any]] = json.loads(textwrap.dedent(block))["agent_servers"]
    return servers


@pytest.mark.parametrize(
    ("page", "name", "kind"),
    [
        ("zed.md", "Claude (podbot)", "claude"),
        ("zed.md", "Codex (podbot)", "codex"),
        ("jetbrains.md", "Claude (podbot)", "claude"),
    ],
)
def test_an_entry_starts_that_agent_on_that_workspace(page: str, name: str, kind: str, tmp_path: Path) -> None:
    entry = _servers(page)[name]
    assert os.path.isabs(entry["command"])
    assert os.path.basename(entry["command"]) == "podbot"
    assert entry["args"].count(WORKSPACE) == 1
    words = [str(tmp_path) if word == WORKSPACE else word for word in entry["args"]]
    env = {"PATH": os.environ["PATH"], "HOME": "/home/ada", "PODBOT_IMAGE": "localhost/x", **entry["env"]}
    argv = [sys.executable, "-m", "podbot", *words, "--dry-run", "--json"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert (plan["subcommand"], plan["kind"], plan["mode"]) == ("host", kind, "acp")
    mount = plan["container"]["mounts"][0]
    assert (mount["source"], mount["target"]) == (str(tmp_path), str(tmp_path))


def test_every_entry_is_checked() -> None:
    assert [len(_servers(page)) for page in ("zed.md", "jetbrains.md")] == [2, 1]
