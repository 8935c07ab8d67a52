"""Every Python block of the page about shells, in its order, as programs of a user."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap

from e2e.harness import World
from e2e.patience import patient
from e2e.shells import image_with

PAGE = os.path.join(os.path.dirname(os.path.dirname(__file__)), "docs", "how-to", "use-a-shell.md")
# Programs that the page names and podbot's image does not have; each prints its name and its arguments.
PROGRAMS = ("make", "pytest", "vim")
SCRIPT = r"printf '#!/bin/sh\necho ${0##*/} $*\n'"
# The page's blocks behind the second one use the shell of an open sandbox, and one a session with the name shop.
AROUND = """
import asyncio
import podbot

settings = podbot.load_config(podbot.LoadOptions(
    environ=os.environ,
    overrides={{"workspace.source": "host_mount", "workspace.host_path": os.path.expanduser("~/src/shop")}},
))
request = podbot.LaunchRequest(name="shop", trusted_workspace=True)
with podbot.sandbox(settings, request) as box:
    shell = box.shell
{blocks}
"""


def output(world: World, program: str) -> str:
    """What it prints."""
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, env=world.env, capture_output=True, text=True, check=False, timeout=patient(120))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_block_of_the_page_runs(own_world: World) -> None:
    world = own_world
    shop = os.path.join(world.env["HOME"], "src", "shop")
    os.makedirs(os.path.join(shop, "src"))
    subprocess.run(["git", "init", "-q", shop], check=True)
    with open(os.path.join(shop, "shop.py"), "w", encoding="utf-8") as file:
        file.write("print('shop')\n")
    with open(PAGE, encoding="utf-8") as file:
        first, second, *others = re.findall(r"(?ms)^```python\n(.*?)^```$", file.read())
    lines = [f"RUN {SCRIPT} > /usr/bin/{name} && chmod 755 /usr/bin/{name}" for name in PROGRAMS]
    with image_with(world, "page", *lines) as world.env["PODBOT_IMAGE"]:
        said = output(world, first + "print(listed.stdout, script.stdout)\n")
        assert said == "0 pytest -q\n False False\n1\n make clean\nmake build\n\n"
        assert "make test" in output(world, second)
        # Called where it stands, because a block behind it gives the name `shell` to one of this machine.
        called = [f"{block}asyncio.run(build())\n" if "async def build" in block else block for block in others]
        said = output(world, "import os\n" + AROUND.format(blocks=textwrap.indent("".join(called), "    ")))
    for line in (
        r"timeout_seconds cannot be 900: it goes from 0\.1 to 600 seconds\. .*",
        r"stdout b'make test\\n'",
        r"\d+ True",  # a job
        "143",  # and its end by TERM
        r"\d+ False b''",  # as another program finds it
        r"b'(:q\\r\\n|vim notes\.txt\\r\\n)+'",  # the echo of what was typed may come first
        r"b'make test\\n'",  # asyncio's stream
        "True",  # and its job
    ):
        assert re.search(f"(?m)^{line}$", said), (line, said)
