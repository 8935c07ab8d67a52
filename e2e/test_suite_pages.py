"""Every Python block of the page about tools for models, in its order, as programs of a user."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from e2e.harness import World
from e2e.patience import patient

PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "tools-for-models.md"
PLACES = ("/home/you/src", "/app")  # that the page names


def test_every_block_of_the_page_runs(world: World) -> None:
    blocks = re.findall(r"(?ms)^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"))
    assert len(blocks) == 3
    text = "".join(blocks)
    for place in PLACES:
        assert place in text
        text = text.replace(place, world.root + place)
    for project in ("home/you/src/shop", "app/src"):
        made = Path(world.root, project)
        made.mkdir(parents=True)
        (made / "shop.py").write_text(f"x = 1  # TODO: {project}\n")
    # Of the second block's section, and of the third one's session.
    text += """
with section:
    print(section.files.grep("TODO").matches[0].line)
with PodmanSandboxSection(session=session, config=PodmanSandboxConfig(keep=True)) as kept:
    print(kept.shell.execute("id -u; echo kept > file").stdout)
again = PodmanSandboxSection(session=Session(session_id=session.session_id), config=PodmanSandboxConfig())
with again:
    print(again.files.read(("file",)).content)
"""
    words = [sys.executable, "-c", text]
    done = subprocess.run(
        words, env=world.sealed_env, capture_output=True, text=True, check=False, timeout=patient(120), cwd=world.root
    )
    assert done.returncode == 0, done.stderr
    told, _, printed = done.stdout.partition("[{")
    assert "isolated Linux container" in told
    assert "shop.py" in told
    lines = printed.splitlines()
    assert lines[1].startswith("True ")
    assert "shop.py:1: x = 1  # TODO: home/you/src/shop" in lines
    assert lines[-4:] == ["x = 1  # TODO: app/src", "65534", "", "kept"]
