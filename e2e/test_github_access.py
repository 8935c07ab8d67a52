"""Issue 10.4: ``--github-access``, a GitHub token for a mounted workspace: scope, renewal and askpass are a clone's."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator

import pytest

from e2e.clones import NETWORK, TOKEN, Thief, thief
from e2e.forge import Forge, forge, git
from e2e.harness import World, close_world, new_world, wait_for
from e2e.test_renewal import SHORT
from podbot.config.write import set_keys

__all__ = ["thief"]  # a fixture

SECRET = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"

# Fetches, commits and pushes; waits for another token, and pushes with that; then tries repositories that must be
# refused.
SCRIPT = f"""
git fetch -q origin
git switch -qc work origin/main
git -c user.name=A -c user.email=a@example.org commit -q --allow-empty -m made
git push -q origin HEAD:refs/heads/made
first=$(cat {TOKEN})
touch "$1/up"
until [ "$(cat {TOKEN})" != "$first" ]; do sleep 0.2; done
git push -q origin HEAD:refs/heads/renewed
! git ls-remote "$2/octo/other" || exit 21
! git push -q "$2/octo/other" HEAD:refs/heads/stolen || exit 22
! git ls-remote "http://$3/octo/shop" || exit 23
until [ -e "$1/enough" ]; do sleep 0.1; done
git config --local --get-regexp '^credential|^url|extraheader' && exit 24
exit 7
"""


@pytest.fixture(scope="module")
def site(image: str) -> Iterator[tuple[World, Forge]]:
    world = new_world(image, NETWORK)
    with forge(os.path.join(world.root, "forge"), lifetime=SHORT) as made:
        for key, value in made.config(os.path.join(world.env["HOME"], "app.pem")).items():
            set_keys(world.config, {key: value})
        made.repo("octo/shop")
        made.repo("octo/other")
        yield world, made
    close_world(world)


def test_git_in_a_mounted_workspace_can_access_only_the_one_repository(site: tuple[World, Forge], thief: str) -> None:
    world, made = site
    workspace = world.workspace()
    git("init", "-q", workspace, cwd=workspace)
    git("remote", "add", "origin", f"{made.server_url}/octo/shop", cwd=workspace)
    flags = ("--workspace", workspace, "--github-access", "octo/shop", "--name", "access", "--agent", "custom")
    words = ("sh", "-euc", SCRIPT, "sh", ".", made.server_url, thief)
    child = world.start("run", *flags, "--", *words)
    wait_for(lambda: os.path.exists(os.path.join(workspace, "up")), what="the first push", child=child)
    (row,) = json.loads(world.podbot("ps", "--json").stdout)
    assert (row["workspace"], row["path"]) == ("host_mount", workspace)
    assert row["token"]["holder"]["kind"] == "session"
    _assert_renewal_rests_while_stopped(child.pid, made)
    with open(os.path.join(workspace, "enough"), "w", encoding="utf-8"):
        pass
    _, err = child.communicate(timeout=120)
    assert child.returncode == 7, err.decode()
    assert b"the agent gets a GitHub token for octo/shop" in err
    head = git("rev-parse", "work", cwd=workspace)
    assert made.tip("octo/shop", "made") == made.tip("octo/shop", "renewed") == head
    assert made.tip("octo/other", "stolen") == ""
    assert not any(Thief.heard), "another server received something"
    assert len(made.api.tokens) >= 2
    assert {tuple(token.repositories) for token in made.api.tokens} == {("octo/shop",)}
    assert world.container("access") == {}
    assert world.sessions() == []


def _assert_renewal_rests_while_stopped(podbot: int, made: Forge) -> None:
    """As after Ctrl-Z: the renewal continues as soon as podbot does."""
    os.kill(podbot, signal.SIGSTOP)
    time.sleep(1)  # for a request in progress
    before = len(made.api.tokens)
    time.sleep(3)
    assert len(made.api.tokens) == before
    os.kill(podbot, signal.SIGCONT)
    wait_for(lambda: len(made.api.tokens) > before, what="a renewal")


@pytest.mark.parametrize(
    ("access", "why"),
    [("octo/elsewhere", "octo/elsewhere"), ("shop", "'shop' is not owner/name"), (SECRET, "looks like a GitHub token")],
)
def test_an_invalid_request_is_refused_before_anything_is_made(
    site: tuple[World, Forge], access: str, why: str
) -> None:
    world, _ = site
    done = world.agent("true", flags=("--github-access", access))
    assert done.returncode != 0
    assert why in done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert world.sessions() == []
    assert world.managed() == []


def test_it_is_refused_without_a_source_of_tokens(shared_world: World) -> None:
    done = shared_world.agent("true", flags=("--github-access", "octo/shop"))
    assert done.returncode == 2
    assert "--github-access needs a token" in done.stderr
    done = shared_world.agent("true", flags=("--github-access", "octo/shop", "--github-auth", "app"))
    assert done.returncode == 2
    assert "github.app_id, github.installation_id and github.private_key_path are required" in done.stderr
