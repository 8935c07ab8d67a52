"""The directories that a session's guard scans, and its read-only mounts."""

from __future__ import annotations

from typing import Any

from podbot.container_spec import Mount
from podbot.launch.plan import plan_session
from podbot.launch.resources.guard import GuardPlan
from podbot.launch.types import GitFile, LaunchPlan, LinkedGit, PathFacts, RepositoryFacts
from tests.launch.build import config, directory, facts, resource, typed

WORK = "/home/ann/src/proj"
GIT = (
    GitFile(f"{WORK}/.git", is_file=False),
    GitFile(f"{WORK}/.git/config", is_file=True),
    GitFile(f"{WORK}/.git/hooks", is_file=False),
)
COMMON = "/home/ann/src/shop/.git"
LINKED = LinkedGit(f"{COMMON}/worktrees/proj", "worktree", COMMON)


def plan(values: dict[str, Any], **changes: Any) -> LaunchPlan:
    return plan_session(config(values), typed(), facts(**changes))


def test_the_workspace_and_its_git_directory_are_scanned() -> None:
    assert resource(plan({}), GuardPlan) == GuardPlan(WORK)
    assert plan({}, repository=RepositoryFacts(LINKED)).sandbox.find(GuardPlan) == GuardPlan(WORK, COMMON)


def test_nothing_is_scanned_where_nothing_can_be_left_or_it_is_switched_off() -> None:
    assert plan({"workspace.guard": "off"}).sandbox.find(GuardPlan) is None
    assert plan({"workspace.read_only": True}).sandbox.find(GuardPlan) is None


def test_gits_files_are_mounted_read_only_over_themselves() -> None:
    made = plan({"workspace.guard": "protect"}, git_files=GIT)
    assert resource(made, GuardPlan) == GuardPlan(WORK)
    assert made.sandbox.container.mounts == (
        Mount(WORK, WORK),
        Mount(f"{WORK}/.git", f"{WORK}/.git"),
        Mount(f"{WORK}/.git/config", f"{WORK}/.git/config", read_only=True, is_file=True),
        Mount(f"{WORK}/.git/hooks", f"{WORK}/.git/hooks", read_only=True),
    )
    assert any(note.startswith("inside, git's configuration and hooks are read-only") for note in made.sandbox.notes)


def test_at_each_of_the_workspaces_targets() -> None:
    spelled = PathFacts("/data/proj", WORK, "directory", "/data/proj")
    made = plan({"workspace.guard": "protect"}, git_files=GIT, workspace=spelled)
    targets = [mount.target for mount in made.sandbox.container.mounts if mount.read_only]
    assert targets == [
        "/data/proj/.git/config", "/data/proj/.git/hooks", f"{WORK}/.git/config", f"{WORK}/.git/hooks",
    ]  # fmt: skip
    elsewhere = plan({"workspace.guard": "protect", "workspace.container_path": "/code"}, git_files=GIT)
    assert [mount.target for mount in elsewhere.sandbox.container.mounts][1:] == [
        "/code/.git", "/code/.git/config", "/code/.git/hooks",
    ]  # fmt: skip


def test_for_a_worktree_the_git_file_and_the_common_directorys_files() -> None:
    found = (
        GitFile(f"{WORK}/.git", is_file=True),
        GitFile(f"{COMMON}/config", is_file=True),
        GitFile(f"{COMMON}/hooks", is_file=False),
    )
    made = plan({"workspace.guard": "protect"}, git_files=found, repository=RepositoryFacts(LINKED))
    assert [mount for mount in made.sandbox.container.mounts if mount.read_only] == [
        Mount(f"{WORK}/.git", f"{WORK}/.git", read_only=True, is_file=True),
        Mount(f"{COMMON}/config", f"{COMMON}/config", read_only=True, is_file=True),
        Mount(f"{COMMON}/hooks", f"{COMMON}/hooks", read_only=True),
    ]


def test_other_modes_mount_nothing() -> None:
    for mode in ("report", "off"):
        assert plan({"workspace.guard": mode}, git_files=GIT).sandbox.container.mounts == (Mount(WORK, WORK),)
    everything = plan({"workspace.guard": "protect", "workspace.read_only": True}, git_files=GIT)
    assert everything.sandbox.container.mounts == (Mount(WORK, WORK, read_only=True),)


def test_a_notice_when_there_is_nothing_to_protect() -> None:
    made = plan({"workspace.guard": "protect"}, workspace=directory(WORK))
    assert any("has nothing to protect" in note for note in made.sandbox.notes)
