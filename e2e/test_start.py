"""``podbot start``: a kept session runs again with its token, logins and mounts, and without a podbot process."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator

import pytest

from e2e.clones import COMMIT, TOKEN, Site, fresh, site, whole_site
from e2e.forge import git
from e2e.harness import World

__all__ = ["site", "whole_site"]  # fixtures


def reboot(world: World, name: str) -> None:
    """What a reboot leaves of a stopped session in the runtime directory."""
    shutil.rmtree(os.path.join(world.runtime, name))


@pytest.mark.parametrize("rebooted", [False, True])
def test_a_kept_clone_is_started_pushes_and_is_removed(site: Site, rebooted: bool) -> None:
    fresh(site)
    done = site.script(COMMIT)
    assert done.returncode == 0, done.stderr
    assert f"podbot start {site.name}" in done.stderr
    assert site.state() == "exited"
    world, name = site.world, site.name
    first = len(site.forge.api.tokens)
    if rebooted:
        reboot(world, name)
    again = site.world.podbot("run", "--repo", "octo/shop", "--agent", "custom", "--name", name, "--", "true")
    assert again.returncode == 1
    assert f"`podbot start {name}` restarts it" in again.stderr
    started = world.podbot("start", name, check=True)
    assert started.stdout == f"{name}\n"
    assert "lasts until" in started.stderr
    assert len(site.forge.api.tokens) > first, "a fresh token"
    (row,) = json.loads(world.podbot("ps", "--json", check=True).stdout)
    assert (row["session"], row["state"], row["detached"], row["orphan"]) == (name, "running", True, False)
    assert "running (detached)" in world.podbot("ps", check=True).stdout
    pushed = world.podbot("exec", name, "sh", "-ec", f"test -s {TOKEN}; git push -q origin HEAD; cat", input="piped")
    assert (pushed.returncode, pushed.stdout) == (0, "piped"), pushed.stderr
    assert git("log", "-1", "--format=%s", "main", cwd=site.forge.path("octo/shop")) == "more"
    assert world.podbot("stop", name, check=True).stdout == f"{name}\n"
    assert site.state() == "gone", "everything was pushed by now"


def test_a_stopped_session_has_no_token_and_starts_again(site: Site) -> None:
    fresh(site)
    site.script(COMMIT, flags=("--keep",))
    world, name = site.world, site.name
    for _ in range(2):
        world.podbot("start", name, check=True)
        refused = world.podbot("start", name)
        assert (refused.returncode, "already running" in refused.stderr) == (1, True)
        assert world.podbot("exec", name, "git", "log", "-1", "--format=%s", check=True).stdout == "more\n"
        assert world.podbot("stop", name, check=True).stdout == f"{name}  (kept, stopped)\n"
        assert os.listdir(os.path.join(world.runtime, name, "secrets")) == []
        assert site.state() == "exited"


def test_the_guest_runs_the_commands_of_a_kept_session(world: World) -> None:
    """A command that the engine runs has no parent inside: its ``$PPID`` is 0."""
    name = f"start-{uuid.uuid4().hex[:8]}"
    parent = ("sh", "-c", "tr '\\0' ' ' </proc/$PPID/cmdline")
    try:
        kept = world.agent(*parent, flags=("--keep", "--name", name), check=True)
        assert "guest.py serve" in kept.stdout
        for _ in range(2):
            assert world.container(name)["State"] == "exited"
            world.podbot("start", name, check=True)
            assert "guest.py serve" in world.podbot("exec", name, "--", *parent, check=True).stdout
            world.podbot("stop", "--time", "0", name, check=True)
    finally:
        world.podbot("stop", "--rm", "--time", "0", name)


@contextlib.contextmanager
def kept_by(world: World, planted: str, *, read_only: bool) -> Iterator[tuple[World, str, str]]:
    """A kept session whose agent got a login and ran ``planted``, in which WS is the workspace."""
    name, workspace = f"start-{uuid.uuid4().hex[:8]}", world.workspace()
    login = os.path.join(world.env["HOME"], ".codex")
    os.makedirs(login, exist_ok=True)
    with open(os.path.join(login, "auth.json"), "w", encoding="utf-8") as file:
        file.write('{"OPENAI_API_KEY": null}')
    world.env |= {"PODBOT_CREDS_COPY_CODEX": "true", "PODBOT_WORKSPACE_READ_ONLY": str(read_only).lower()}
    try:
        words = f"test -s /root/.codex/auth.json; {planted.replace('WS', workspace)}"
        world.agent("sh", "-ec", words, workspace=workspace, flags=("--keep", "--name", name), check=True)
        yield world, name, workspace
    finally:
        for key in ("PODBOT_CREDS_COPY_CODEX", "PODBOT_WORKSPACE_READ_ONLY"):
            del world.env[key]
        shutil.rmtree(login)
        world.podbot("stop", "--rm", "--time", "0", name)


@pytest.fixture
def kept(world: World) -> Iterator[tuple[World, str, str]]:
    """A kept session on a read-only workspace, whose agent replaced its logins by a link to the workspace."""
    with kept_by(world, "rm -r /root/.codex; ln -s WS /root/.codex", read_only=True) as found:
        yield found


@pytest.mark.parametrize("link", ["WS/x", "..WS/x"])
def test_nothing_is_copied_through_a_link_in_place_of_the_home(world: World, link: str) -> None:
    """What podbot copied there was on the host, in the workspace, for good."""
    planted = f"mkdir WS/x; mv /root /root.away; ln -s {link} /root"
    with kept_by(world, planted, read_only=False) as (_, name, workspace):
        done = world.podbot("start", name)
        assert done.returncode == 1
        assert "its /root was replaced by a link to " in done.stderr
        assert os.listdir(os.path.join(workspace, "x")) == []
        assert world.container(name)["State"] == "exited"


@pytest.mark.parametrize("name", ["passwd", "group"])
def test_a_fifo_in_place_of_an_account_file_does_not_hang_the_engine(world: World, name: str) -> None:
    """It waited for ever, and so did every later look at any container."""
    with kept_by(world, f"rm /etc/{name}; mkfifo /etc/{name}", read_only=False) as (_, session, _workspace):
        done = world.podbot("start", session)
        assert done.returncode == 1
        assert f"its /etc/{name} is a FIFO" in done.stderr
        assert world.container(session)["State"] == "exited"


def test_a_login_is_not_copied_through_the_agents_link(kept: tuple[World, str, str]) -> None:
    world, name, workspace = kept
    world.podbot("start", name)
    assert os.listdir(workspace) == []


def test_a_fifo_in_place_of_a_login_does_not_hold_up_the_start(world: World) -> None:
    planted = "rm -r /root/.codex; mkdir /root/.codex; mkfifo /root/.codex/auth.json"
    with kept_by(world, planted, read_only=False) as (_, name, _workspace):
        world.podbot("start", name, check=True)
        assert world.podbot("exec", name, "cat", "/root/.codex/auth.json", check=True).stdout.startswith("{")


def test_a_link_in_place_of_the_workspace_is_refused(kept: tuple[World, str, str]) -> None:
    world, name, workspace = kept
    os.rename(workspace, f"{workspace}.away")
    os.symlink(f"{workspace}.away", workspace)
    done = world.podbot("start", name)
    assert done.returncode == 2
    assert "link" in done.stderr
    assert world.container(name)["State"] == "exited"


def test_another_container_of_that_name_is_refused(kept: tuple[World, str, str]) -> None:
    world, name, _ = kept
    labels = world.inspect(name)["Config"]["Labels"]
    world.podman("rm", name)
    words = [word for key, value in labels.items() for word in ("--label", f"{key}={value}")]
    for command in (
        ("create", "--name", name, "--network", "none", *words, world.image, "sleep", "100"),
        ("start", name),
        ("stop", "-t", "0", name),
    ):
        made = world.podman(*command)
        assert made.returncode == 0, made.stderr
    done = world.podbot("start", name)
    assert (done.returncode, "not the one of its record" in done.stderr) == (1, True), done.stderr
    assert world.container(name)["State"] == "exited"
