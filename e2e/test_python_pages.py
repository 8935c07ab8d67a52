"""The pages about Python: every block, in the order of its page, in one program of a user."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest

from e2e.harness import World
from e2e.patience import patient

DOCS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "docs")
THEIRS = "/home/ada/src/shop"  # as the pages call the project
MARK = "--- block"
MAKEFILE = "build test lint types:\n\t@echo made $@\n"
SHOP_TEST = "import unittest\n\n\nclass Shop(unittest.TestCase):\n    def test_it(self):\n        pass\n"


@pytest.fixture
def shop(own_world: World) -> Iterator[str]:
    """The project, whose Makefile the page's commands use."""
    path = os.path.join(own_world.env["HOME"], "src", "shop")
    os.makedirs(path)
    for name, text in (("Makefile", MAKEFILE), ("test_shop.py", SHOP_TEST)):
        with open(os.path.join(path, name), "w", encoding="utf-8") as file:
            file.write(text)
    yield path
    assert [name for name in own_world.sessions() if name != "shop"] == []


def said(world: World, shop: str, page: str, *, leave_out: str = "") -> list[str]:
    """What each block of the page prints. ``leave_out``: text of the last block, where that cannot run by itself."""
    with open(os.path.join(DOCS, page), encoding="utf-8") as file:
        blocks = re.findall(r"(?ms)^```python\n(.*?)^```$", file.read())
    if leave_out:
        assert leave_out in blocks.pop()
    program = "".join(f'print("{MARK}", flush=True)\n{block}' for block in blocks).replace(THEIRS, shop)
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, env=world.env, capture_output=True, text=True, check=False, timeout=patient(400))
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr, "in a thread"
    first, *texts = done.stdout.split(f"{MARK}\n")
    assert not first
    assert len(texts) == len(blocks)
    return texts


def test_use_podbot_from_python(own_world: World, shop: str) -> None:
    first, gathered, chosen, read, caught, ended, watched = said(own_world, shop, "how-to/use-from-python.md")
    assert first.startswith("python3 -m unittest: exit code 0 after ")
    assert gathered.startswith("make test: exit code 0 after ")
    assert "made test" in gathered
    assert chosen == "0 0 made test\n\n"
    assert read == "0 made test\n\n"
    assert caught == "made test\n0\n"
    assert ended == ""
    assert watched == "made test\n"


def test_the_python_api(own_world: World, shop: str) -> None:
    world = own_world
    world.podbot("run", "--keep", "--name", "shop", "custom", shop, "--", "true", check=True)
    world.podbot("start", "shop", check=True)
    world.podbot("run", "claude", shop, "--", "--version", check=True)  # a project with conversations
    texts = said(world, shop, "reference/python-api.md", leave_out="EngineContract")
    for text, pattern in zip(
        texts,
        (
            r"custom override\n",  # load_config
            rf"podbot-shop-\w+ .*'{shop}'.*\n.*'make', 'test'.*\n",  # plan
            r"0 b'HELLO\\n'\n",  # exec_
            r"python3 --version: exit code 0 after .*",  # sandbox, the short form
            r"podbot-shop-\w+ True\n0 \['5', '0'\]\n",  # and the long one
            r"",  # jobs of an open shell
            r"42\n\n",  # PodmanShell.open
            r"42\n\n",  # Sandbox.shell
            r"b'\{.*\}\\n' Counts\(.*\)\nExecStatus\(code=0.*\n",  # host
            r".*143.*15.*\n",  # Wake
            r".*claude.*codex.*\n\[.*\]\n",  # build_image
            r".*",  # doctor, setup
            r"shop running .*\nshop stopped\n",  # ps, stop
            r".*'claude'.*\n",  # history
            r"",  # token_daemon
            r"mounting .*\n",  # emit
            r".* \d+\..* exited\n",  # open_engine
            r"ContainerNotFound .*nosuch.*\n",  # errors
        ),
        strict=True,
    ):
        assert re.fullmatch(f"(?s){pattern}", text), (pattern, text)
