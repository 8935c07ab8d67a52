"""Random SIGKILLs of sessions that are kept, cloned, on a terminal, not root inside, or an MCP server's."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator

import pytest

from e2e.forge import forge
from e2e.harness import World, wait_for
from e2e.host.pipe import config_file
from e2e.kill_kinds import FURTHER, REPO
from e2e.kills import Target, files_named_after_sessions, make_template, marked, mounted, opened, until
from e2e.kills_run import CLEAN, RandomKills
from e2e.patience import patient
from e2e.shells import image_with
from podbot.config.write import set_keys

KILLS = int(os.environ.get("PODBOT_E2E_KILLS", "12"))
LIMIT = CLEAN if "PODBOT_E2E_KILLS" in os.environ else 2 * CLEAN  # see test_kills.py
WANTED = tuple(filter(None, os.environ.get("PODBOT_E2E_KILL_KINDS", "").split(","))) or FURTHER


@pytest.fixture
def images(own_world: World) -> Iterator[dict[str, str]]:
    """By the kinds that have one of their own."""
    sealed = own_world.sealed_env.get("PODBOT_IMAGE", own_world.image)
    with image_with(own_world, "kills", "USER 1000") as user:
        yield {"user": user, "sealed": sealed, "mcp": sealed, "mcp http": sealed}


@pytest.fixture
def forged(own_world: World) -> Iterator[World]:
    """An operator with an App's access to a repository."""
    with forge(os.path.join(own_world.root, "forge")) as made:
        for key, value in made.config(os.path.join(own_world.env["HOME"], "app.pem")).items():
            set_keys(own_world.config, {key: value})
        made.repo(REPO)
        yield own_world


def test_random_kills(forged: World, images: dict[str, str]) -> None:
    world = forged
    seed = int(os.environ.get("PODBOT_E2E_KILL_SEED", "0")) or random.randrange(1, 10**9)
    sys.stderr.write(f"PODBOT_E2E_KILL_SEED={seed}\n")
    with config_file(world) as config:
        kills = RandomKills(world, config, seed=seed, wanted=KILLS, limit=LIMIT, kinds=WANTED, images=images)
        kills.run()
    sys.stderr.write(f"{kills.table()}\n")
    assert not kills.problems(), "\n".join(kills.problems())
    # What a hosted session has to say is kept until it is read.
    files = [path for path in files_named_after_sessions(world) if "/podbot/reports/" not in path]
    left = [path for path in files if not path.endswith(".log")]
    left += world.podman("ps", "--all", "--external", "--quiet").stdout.split()
    assert not left, left
    mounts = [line for line in mounted(world) if not line.endswith("/store/overlay")]
    assert not mounts, mounts
    listed = world.podbot("ps", "-a", "--json", check=True)
    assert listed.stdout == "[]\n"


@pytest.mark.parametrize("kind", FURTHER)
def test_all_of_a_running_session_is_seen(forged: World, images: dict[str, str], kind: str) -> None:
    """Otherwise the test here would find nothing because it does not see it."""
    world = forged
    template = os.path.join(world.root, "template")
    make_template(template)
    with (
        config_file(world) as config,
        opened(lambda: Target(world, kind, template, config, random.Random(), images=images)) as made,
    ):
        wait_for(lambda: len(marked(made.marks[:2])) == 2, what="the agent", seconds=60, child=made.owner)
        seen = made.left()
        for word in ("process", "container running", "directory"):
            assert [line for line in seen if line.startswith(word)], (word, seen)
        assert len([line for line in seen if any(line.endswith(mark) for mark in made.marks[:2])]) == 2, seen
        for victim in ("owner", "guest", "init", "monitor", "service", "command"):
            assert made.victim(victim), victim
        world.podbot("stop", "--rm", "--time", "0", made.name)
        made.close()
        assert until(lambda: not made.left(), patient(LIMIT)) is not None, made.left()
