"""A workspace that was opened through a link is inside at both its names, and nowhere else.

As on a system where /home leads to /var/home: the editor sends paths as the operator types them.
"""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from dataclasses import dataclass

import pytest

from e2e.harness import World
from e2e.host.pipe import pipe


@dataclass(frozen=True)
class Project:
    """``real`` is the directory that ``spelled`` leads to, through a link above it."""

    real: str
    spelled: str


@pytest.fixture
def project(world: World) -> Project:
    real = world.workspace("linked")
    link = os.path.join(world.root, f"l-{uuid.uuid4().hex[:6]}")
    os.symlink("work", link)
    return Project(real, os.path.join(link, os.path.basename(real)))


@pytest.mark.parametrize("form", ["absolute", "here"])
def test_an_editor_that_opened_the_project_through_a_link(world: World, project: Project, form: str) -> None:
    real, spelled = project.real, project.spelled
    subprocess.run(["git", "init", "-q", real], check=True)
    world.give_away(os.path.join(real, ".git"))
    given = {"spelled": spelled} if form == "absolute" else {"spelled": ".", "cwd": spelled, "env": {"PWD": spelled}}
    with pipe(world, "puppet", workspace=real, **given) as host:
        for cwd in (spelled, real, f"{spelled}/src", f"{real}/src"):
            assert host.ask("session/new", {"cwd": cwd, "mcpServers": []})["result"] == {"method": "session/new"}
        beside = os.path.dirname(spelled)
        for cwd in (beside, os.path.dirname(real), world.root, f"{spelled}/..", f"{spelled}-not", "/"):
            error = host.ask("session/new", {"cwd": cwd, "mcpServers": []})["error"]
            assert error["data"]["reason"] == "podbot_outside_mount"
        assert host.make_run("pwd") == [0, f"{real}\n"]
        assert host.make_run(f"mkdir {spelled}/src && echo agent > {spelled}/src/new && cat {real}/src/new") == [
            0,
            "agent\n",
        ]
        assert host.make_run(f"ls {beside}") == [0, os.path.basename(real) + "\n"]
        # Its owner is not the agent's user: git trusts both paths, otherwise it would refuse one.
        for place in (real, spelled):
            assert host.make_run(f"cd {place} && git rev-parse --show-toplevel") == [0, f"{place}\n"]
        mounts = {mount["Destination"]: mount["Source"] for mount in world.inspect(host.name)["Mounts"]}
        assert {place: mounts.get(place) for place in (real, spelled)} == {real: real, spelled: real}
        (row,) = [row for row in json.loads(world.podbot("ps", "--json").stdout) if row["session"] == host.name]
        assert row["path"] == real
        assert host.finish() == 0
        assert [json.loads(seen)["params"].get("cwd") for seen in host.seen()[:4]] == [
            spelled, real, f"{spelled}/src", f"{real}/src",
        ]  # fmt: skip
        (note,) = host.said("mounting", real)
        assert f"mounting {real} at " in note
        for place in (real, spelled):
            assert f"at {place} " in note
        with open(os.path.join(real, "src", "new"), encoding="ascii") as file:
            assert file.read() == "agent\n"
        assert os.stat(os.path.join(real, "src", "new")).st_uid == os.getuid()


def test_a_link_that_an_agent_left_does_not_choose_the_next_workspace(world: World) -> None:
    """Issue 12.7. The first session makes the link, as root inside; then the same path is typed again."""
    mono, secret = world.workspace("mono"), world.workspace("secret")
    subprocess.run(["git", "init", "-q", mono], check=True)
    done = world.agent("sh", "-c", f"ln -s ../{os.path.basename(secret)} api && ln -s . same", workspace=mono)
    assert done.returncode == 0, done.stderr
    link = os.path.join(mono, "api")
    for words in ({"workspace": "api", "cwd": mono}, {"workspace": ".", "cwd": link, "env": {"PWD": link}}):
        done = world.agent("touch", "seen", **words)
        assert done.returncode == 2
        assert f"the link {link} leads out of {mono}, to {secret}" in done.stderr
        assert f"write {secret}, or add `--follow-links`" in done.stderr
    assert os.listdir(secret) == []
    world.agent("touch", "meant", workspace=link, flags=("--follow-links",), check=True)
    world.agent("touch", "named", workspace=secret, check=True)
    world.agent("touch", "within", workspace=os.path.join(mono, "same"), check=True)
    assert sorted(os.listdir(secret)) == ["meant", "named"]
    assert os.path.exists(os.path.join(mono, "within"))


def test_a_read_only_workspace_is_read_only_under_both_names(world: World, project: Project) -> None:
    script = 'for p; do touch "$p/x"; mount -o remount,rw "$p"; touch "$p/x"; ls "$p"; done'
    with open(os.path.join(project.real, "there"), "wb"):
        pass
    done = world.agent(
        "sh", "-c", script, "-", project.real, project.spelled,
        workspace=project.spelled, env={"PODBOT_WORKSPACE_READ_ONLY": "true"},
    )  # fmt: skip
    assert done.stdout.split() == ["there", "there"], done.stderr
    assert os.listdir(project.real) == ["there"]


def test_a_covered_part_is_not_visible_under_the_other_name(world: World, project: Project) -> None:
    empty = world.workspace("empty")
    os.mkdir(os.path.join(project.real, "secrets"))
    with open(os.path.join(project.real, "secrets", "key"), "wb"):
        pass
    done = world.agent(
        "sh", "-c", f"ls -A {project.real}/secrets; ls -A {project.spelled}/secrets", workspace=project.spelled,
        env={
            "PODBOT_SANDBOX_EXTRA_MOUNTS": f"{empty}:{project.real}/secrets:ro",
            "PODBOT_WORKSPACE_ALLOWED_ROOTS": empty,
        },
    )  # fmt: skip
    assert done.stdout == ""
    assert done.returncode == 2, "no such directory"
    assert (
        f"inside, the workspace is not also mounted at {project.spelled}: the mount at {project.real}/secrets"
        in done.stderr
    )


def test_a_kept_session_restarts_with_both_names(world: World, project: Project) -> None:
    name = f"e2e-{uuid.uuid4().hex[:8]}"
    try:
        world.agent("true", workspace=project.spelled, flags=("--keep", "--name", name), check=True)
        assert world.podman("start", name).returncode == 0
        world.podbot("exec", name, "--", "sh", "-c", f"echo again > {project.spelled}/new", check=True)
        assert world.podbot("exec", name, "--", "cat", f"{project.real}/new", check=True).stdout == "again\n"
        with open(os.path.join(project.real, "new"), encoding="ascii") as file:
            assert file.read() == "again\n"
    finally:
        world.podbot("stop", "--rm", "--time", "0", name)
