"""Exported patches, applied by the real git to the host's directory."""

from __future__ import annotations

import functools
import marshal
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podbot.errors import PathError, ToolValidationError
from podbot.sections.host_mounts import HostMount, MountPlan
from podbot.sections.host_tree import look_at
from podbot.sections.mount_plan import plan_mounts
from podbot.suites import LazyWorkspace, LocalBackend, WorkspaceSettings
from podbot.suites.patch_export import LeftOut, export_patch
from podbot.suites.patch_job import Job
from podbot.suites.patch_process import run_helper
from podbot.suites.workspace_changes import Comparison
from tests.examples import examples
from tests.faults import ordinary_user
from tests.suites.workspaces import ENV, Workspace, changes, git_apply, reasons, tree, write

NAMES = st.sampled_from([b"a", b"b", b"c d", b"e\n", b'"f', b"\xc3\xa9", b"-g", b"h\\", b"\xff", b"@@ i", b"\t"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map(b"/".join)
CONTENTS = (
    st.lists(st.sampled_from([b"x", b"y", b"z", b"\r", b"+"]), max_size=30).map(b"\n".join)
    | st.binary(max_size=40)
    | st.integers(0, 60).map(lambda count: b"".join(b"line %d\n" % number for number in range(count)))
)
FILES = st.tuples(CONTENTS, st.booleans())
TREES = st.dictionaries(PATHS, FILES, max_size=8)


def consistent(files: dict[bytes, tuple[bytes, bool]]) -> dict[bytes, tuple[bytes, bool]]:
    """Without what lies below another file."""
    return {path: file for path, file in files.items() if not any(above(path, other) for other in files)}


def above(path: bytes, other: bytes) -> bool:
    return path.startswith(other + b"/")


def fill(workspace: Workspace, files: dict[bytes, tuple[bytes, bool]]) -> None:
    """Make the workspace consist of these files."""
    subprocess.run(["find", str(workspace.path), "-mindepth", "1", "-delete"], check=True)
    for name, (data, executable) in files.items():
        write(workspace.path, name, data, executable=executable)


@settings(max_examples=examples(120))
@given(before=TREES, other=TREES, data=st.data())
def test_the_patch_makes_the_workspaces_tree_of_the_hosts(
    before: dict[bytes, tuple[bytes, bool]],
    other: dict[bytes, tuple[bytes, bool]],
    data: st.DataObject,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    before = consistent(before)
    workspace = Workspace(tmp_path_factory.mktemp("export"), before)
    plain = {path for path in before if b"\xff" not in path}  # other names are not copied
    kept = {path: before[path] for path in plain if data.draw(st.booleans())}
    # A file does not take the place of a directory: see test_a_file_in_the_place_of_a_directory.
    other = {path: file for path, file in other.items() if not any(above(one, path) for one in (*before, *kept))}
    # Nor is anything made where the host has what was not copied.
    other = {path: file for path, file in other.items() if path in plain or path not in before}
    other = {
        path: file for path, file in other.items() if not any(above(path, one) for one in before if one not in plain)
    }
    after = consistent({**kept, **other})
    fill(workspace, after)
    patch = workspace.export()
    assert patch.left_out == ()
    assert git_apply(patch.text, workspace.host) == ""
    left = {path: file for path, file in before.items() if path not in plain}
    assert tree(workspace.host) == {**left, **after}
    again = workspace.export()
    assert (again.text, again.left_out) == ("", ())


def test_a_workspace_without_changes_has_no_patch(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, {b"a": (b"x", False), b"d/b": (b"\0", True)})
    patch = workspace.export()
    assert (patch.text, patch.files, patch.left_out, patch.more) == ("", (), (), 0)


def test_every_kind_of_change_is_named(tmp_path: Path) -> None:
    files = dict.fromkeys((b"edited", b"gone", b"mode", b"same", b"binary", b"emptied"), (b"1\n2\n", False))
    workspace = Workspace(tmp_path, files)
    write(workspace.path, b"edited", b"1\n3\n")
    write(workspace.path, b"mode", b"1\n2\n", executable=True)
    write(workspace.path, b"binary", b"\0\xff")
    write(workspace.path, b"emptied", b"")
    write(workspace.path, b"new/one", b"x")
    write(workspace.path, b"new/empty", b"")
    (workspace.path / "gone").unlink()
    patch = workspace.export()
    assert changes(patch) == {
        "binary": "modified", "edited": "modified", "emptied": "modified", "gone": "deleted", "mode": "modified",
        "new/empty": "added", "new/one": "added",
    }  # fmt: skip
    assert [file.path for file in patch.files] == sorted(changes(patch))
    assert git_apply(patch.text, workspace.host) == ""
    assert tree(workspace.host) == tree(workspace.path)


def test_the_helper_process_exports_the_same(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, {b"a": (b"x\n", False), b"\xc3\xa9": (b"\0", True)})
    write(workspace.path, b"a", b"y\n")
    write(workspace.path, b"\xff", b"new")
    (workspace.path / "é").unlink()
    (workspace.path / "link").symlink_to("/")
    patch = export_patch(workspace.plan, str(workspace.path))
    assert patch == workspace.export()
    assert changes(patch) == {"a": "modified", "é": "deleted", "\\xff": "added"}
    assert reasons(patch) == {"link": "it is a symbolic link"}


def test_the_changes_of_a_workspace_made_by_its_tools(tmp_path: Path) -> None:
    write(tmp_path, b"host/src/a.py", b"x = 1\ny = 2\n")
    write(tmp_path, b"host/src/run.sh", b"#!/bin/sh\n", executable=True)
    write(tmp_path, b"host/src/old", b"\0")
    settings = WorkspaceSettings(mounts=(HostMount("src"),), allowed_host_roots=(str(tmp_path / "host"),))
    backend = LocalBackend(root=str(tmp_path / "overlays"))
    with LazyWorkspace(backend, ident="a", settings=settings) as workspace:
        workspace.start()
        assert workspace.plan is not None
        assert export_patch(workspace.plan, workspace.directory).files == ()
        workspace.files.edit(["src", "a.py"], "y = 2", "y = 3")
        workspace.files.write(["src", "new.py"], "z = 3\n")
        workspace.shell.execute(["rm", "src/old"])
        patch = export_patch(workspace.plan, workspace.directory, mount="src")
    assert patch.left_out == ()
    assert git_apply(patch.text, tmp_path / "host" / "src") == ""
    assert tree(tmp_path / "host" / "src") == {
        b"a.py": (b"x = 1\ny = 3\n", False), b"new.py": (b"z = 3\n", False), b"run.sh": (b"#!/bin/sh\n", True)
    }  # fmt: skip


def test_a_helper_that_does_not_answer_in_time_leaves_a_note(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, {b"a": (b"x\n", False)})
    patch = export_patch(workspace.plan, str(workspace.path), helper=lambda job, _: run_helper(job, 0.0))
    assert patch.text == ""
    ((left,), more) = patch.left_out, patch.more
    assert (left.path, more) == ("", 0)
    assert "did not answer in time" in left.reason


def test_what_a_helper_said_before_it_was_killed_is_kept(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, {b"a": (b"x\n", False), b"b": (b"x\n", False)})
    fill(workspace, {})
    whole = workspace.export().text
    for end in (-1, -5, -40):
        answer = functools.partial(lambda end, job, seconds: run_helper(job, seconds)[:end], end)
        patch = export_patch(workspace.plan, str(workspace.path), helper=answer)
        assert whole.startswith(patch.text)
        assert [left.path for left in patch.left_out] == [""]
    assert patch.text


def test_an_export_that_is_ended_after_any_of_its_files_applies(tmp_path: Path) -> None:
    """Also where a directory is in the place of a deleted file."""
    workspace = Workspace(tmp_path, dict.fromkeys((b"a", b"b", b"c"), (b"x\n", False)))
    fill(workspace, {b"a/b/c": (b"y\n", False), b"b": (b"y\n", False), b"new": (b"y\n", False)})
    said: list[tuple[Any, ...]] = []

    def helper(end: int, job: Job, seconds: float) -> bytes:
        said.clear()
        Comparison(job, said.append).run()
        return b"".join(marshal.dumps(record) for record in said[:end])

    for end in range(6):
        patch = export_patch(workspace.plan, str(workspace.path), helper=functools.partial(helper, end))
        assert len(patch.files) == min(end, 5)
        assert git_apply(patch.text, workspace.host, "--check") == ""
    assert [record[1] for record in said] == [b"b", b"new", b"a", b"c", b"a/b/c", 0]


def test_a_workspace_that_cannot_be_read(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    (tmp_path / "link").symlink_to(workspace.path)
    for name in ("missing", "link"):
        with pytest.raises(PathError, match="cannot export the changes in") as caught:
            export_patch(workspace.plan, str(tmp_path / name))
        assert caught.value.path == str(tmp_path / name)


def test_a_helper_that_cannot_be_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = Workspace(tmp_path)
    monkeypatch.setattr(sys, "executable", "/usr/bin/embedding-program")
    with pytest.raises(PathError, match="the helper process cannot be started"):
        export_patch(workspace.plan, str(workspace.path))


def remove_whole(path: Path) -> None:
    shutil.rmtree(path)


def move(path: Path) -> None:
    path.rename(path.with_name("moved"))


def move_with_its_parent(path: Path) -> None:
    path.parent.rename(path.parent.with_name("moved"))


def move_and_empty(path: Path) -> None:
    """As podbot removes a workspace."""
    moved = path.rename(path.with_name("moved"))
    for name in ("a", "b"):
        (moved / name).unlink()


def exchange(path: Path) -> None:
    shutil.copytree(path, path.with_name("copy"))
    remove_whole(path)
    path.with_name("copy").rename(path)


def link_to_itself(path: Path) -> None:
    path.symlink_to(path.rename(path.with_name("moved")))


@pytest.mark.parametrize("change", [remove_whole, move, move_with_its_parent, move_and_empty, exchange, link_to_itself])
@pytest.mark.parametrize("step", [1, 2, 3, 4])
def test_a_workspace_that_is_removed_or_exchanged_during_an_export_is_no_change(
    change: Callable[[Path], None], step: int, tmp_path: Path
) -> None:
    (tmp_path / "place").mkdir()
    workspace = Workspace(tmp_path / "place", {b"a": (b"x\n", False), b"b": (b"x\n", False)})
    write(workspace.path, b"new", b"x\n")
    root = workspace.root.rename(tmp_path / "root")  # not moved with the workspace's parent
    workspace.plan = plan_mounts([HostMount("src", mount_path="/")], [str(root)], look_at)
    said: list[tuple[Any, ...]] = []
    ticks = iter(range(1000))

    def clock() -> float:
        if next(ticks) == step:
            change(workspace.path)
        return 0.0

    def helper(job: Job, seconds: float) -> bytes:
        Comparison(job, said.append, clock).run()
        return b"".join(marshal.dumps(record) for record in said)

    with pytest.raises(PathError, match="it was removed, renamed or replaced meanwhile") as caught:
        export_patch(workspace.plan, str(workspace.path), helper=helper)
    assert caught.value.path == str(workspace.path)
    assert next(ticks) > step  # the change was made
    assert [record[0] for record in said if "deleted" in record] == []  # so none is known if it is killed before


# --- the host has changed ----------------------------------------------------------------------


def edit(workspace: Workspace) -> None:
    write(workspace.host, b"a", b"host\n")


def touch(workspace: Workspace) -> None:
    os.utime(workspace.host / "a", ns=(1, 1))


def make_executable(workspace: Workspace) -> None:
    (workspace.host / "a").chmod(0o755)


def remove(workspace: Workspace) -> None:
    (workspace.host / "a").unlink()


def link(workspace: Workspace) -> None:
    (workspace.host / "a").unlink()
    (workspace.host / "a").symlink_to("b")


def edit_unnoticed(workspace: Workspace) -> None:
    """As an editor that keeps the size and sets the time back."""
    path = workspace.host / "a"
    before = path.stat()
    while path.stat().st_ctime_ns == before.st_ctime_ns:  # the kernel's clock may move in steps of 4 ms
        path.write_bytes(b"OLD\n")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_mtime_ns == before.st_mtime_ns


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (edit, "the host has changed it"), (edit_unnoticed, "the host has changed it"),
        (touch, "the host has changed it"),
        (make_executable, "the host has changed it"), (remove, "the host has removed"), (link, "a symbolic link"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("deleted", [False, True])
def test_files_that_the_host_has_changed_are_left_out(
    change: Callable[[Workspace], None], reason: str, tmp_path: Path, *, deleted: bool
) -> None:
    workspace = Workspace(tmp_path, {b"a": (b"old\n", False), b"b": (b"old\n", False)})
    write(workspace.path, b"b", b"new\n")
    if deleted:
        (workspace.path / "a").unlink()
    else:
        write(workspace.path, b"a", b"new\n")
    change(workspace)
    patch = workspace.export()
    assert changes(patch) == {"b": "modified"}
    if change is remove and deleted:
        assert patch.left_out == ()  # both have removed it
    else:
        assert reason in reasons(patch)["a"]
    assert git_apply(patch.text, workspace.host) == ""


def test_the_hosts_own_change_of_a_file_that_the_sandbox_has_not_touched_is_not_undone(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, {b"a": (b"old\n", False)})
    edit_unnoticed(workspace)
    patch = workspace.export()
    assert patch.text == ""
    assert reasons(patch) == {"a": "the host has changed it since it was copied"}


def test_a_change_that_the_host_has_made_too_is_none(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, {b"a": (b"old\n", False)})
    for side in (workspace.host, workspace.path):
        write(side, b"a", b"new\n", executable=True)
    assert workspace.export() == Workspace(tmp_path / "other").export()


def test_new_files_where_the_host_has_something_else_are_left_out(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, {b"skipped": (b"host", False), b"a": (b"x", False)}, exclude_glob=("skipped",))
    write(workspace.path, b"skipped", b"mine")
    (workspace.host / "link").symlink_to("/etc")
    write(workspace.path, b"link/passwd", b"mine")
    write(workspace.host, b"later", b"host")
    write(workspace.path, b"later/x", b"mine")
    write(workspace.path, b"new", b"mine")
    patch = workspace.export()
    assert changes(patch) == {"new": "added"}
    assert sorted(reasons(patch)) == ["later/x", "link/passwd", "skipped"]
    assert all("the host has" in reason for reason in reasons(patch).values())
    assert git_apply(patch.text, workspace.host) == ""


def test_new_files_where_the_host_cannot_be_looked_at_are_left_out(open_directory: str) -> None:
    """Otherwise the patch could create what exists, and git would apply nothing of it."""
    workspace = Workspace(Path(open_directory), {b"a": (b"x", False), b"d/b": (b"x", False)}, include_glob=("a",))
    write(workspace.path, b"d/b", b"mine")
    write(workspace.path, b"gone/c", b"mine")
    (workspace.host / "d").chmod(0)
    with ordinary_user():
        patch = workspace.export()
    (workspace.host / "d").chmod(0o755)
    assert changes(patch) == {"gone/c": "added"}
    assert reasons(patch) == {"d/b": "what the host has in its place cannot be looked at: Permission denied"}


@pytest.mark.parametrize("replaces", [True, False])
def test_new_files_of_a_mount_that_is_no_directory_any_more(tmp_path: Path, *, replaces: bool) -> None:
    workspace = Workspace(tmp_path)
    write(workspace.path, b"new", b"mine")
    workspace.host.rmdir()
    if replaces:
        workspace.host.write_bytes(b"")
    patch = workspace.export()
    reason = "what the host has in its place cannot be looked at: Not a directory"
    assert changes(patch) == ({} if replaces else {"new": "added"})
    assert reasons(patch) == ({"new": reason} if replaces else {})


def test_a_link_that_the_host_has_in_the_place_of_a_new_file_is_named_as_the_hosts(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    write(workspace.path, b"new", b"mine")
    (workspace.host / "new").symlink_to("x")
    assert reasons(workspace.export()) == {"new": "of the host's own file: it is a symbolic link"}


def test_a_new_file_that_the_host_has_too_is_no_change(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    for side in (workspace.host, workspace.path):
        write(side, b"d/same", b"x")
        write(side, b"mode", b"x", executable=side == workspace.host)
    patch = workspace.export()
    assert patch.files == ()
    assert list(reasons(patch)) == ["mode"]


def test_a_directory_in_the_place_of_a_file(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, {b"a": (b"x", False), b"z": (b"x", False)})
    fill(workspace, {b"a/b/c": (b"y", False), b"z": (b"x", False)})
    patch = workspace.export()
    assert changes(patch) == {"a": "deleted", "a/b/c": "added"}
    assert git_apply(patch.text, workspace.host) == ""
    assert tree(workspace.host) == tree(workspace.path)


def test_a_file_in_the_place_of_a_directory(tmp_path: Path) -> None:
    """The host may have more in it than was copied, and then git would fail half-way."""
    workspace = Workspace(tmp_path, {b"a/b": (b"x", False), b"a/c": (b"x", False)})
    fill(workspace, {b"a": (b"y", False)})
    patch = workspace.export()
    assert changes(patch) == {"a/b": "deleted", "a/c": "deleted"}
    assert "the host has something of this name" in reasons(patch)["a"]
    assert git_apply(patch.text, workspace.host) == ""


# --- mounts ------------------------------------------------------------------------------------


def two_mounts(tmp_path: Path) -> Workspace:
    workspace = Workspace(tmp_path, {b"a": (b"x\n", False)})
    write(workspace.root, b"lib/b", b"x\n")
    write(workspace.root, b"one.txt", b"x\n")
    workspace.copy(
        HostMount("src", mount_path="/"), HostMount("lib", mount_path="deps/lib"), HostMount("one.txt", mount_path="t")
    )
    for name in (b"a", b"deps/lib/b", b"t"):
        write(workspace.path, name, b"y\n")
    for name in (b"new", b"deps/lib/new", b"deps/new"):
        write(workspace.path, name, b"z\n")
    return workspace


def test_all_mounts_have_the_workspaces_paths(tmp_path: Path) -> None:
    patch = two_mounts(tmp_path).export()
    assert list(changes(patch)) == ["a", "deps/lib/b", "deps/lib/new", "deps/new", "new", "t"]
    assert patch.left_out == ()


@pytest.mark.parametrize(
    ("mount", "where", "paths"),
    [
        ("/", "src", ["a", "deps/new", "new"]), ("", "src", ["a", "deps/new", "new"]),
        ("deps/lib", "lib", ["b", "new"]), ("/workspace/deps/lib", "lib", ["b", "new"]), ("t", ".", ["one.txt"]),
    ],
)  # fmt: skip
def test_the_patch_of_a_mount_applies_in_its_directory(
    mount: str, where: str, paths: list[str], tmp_path: Path
) -> None:
    workspace = two_mounts(tmp_path)
    patch = workspace.export(mount=mount)
    assert list(changes(patch)) == paths
    assert git_apply(patch.text, workspace.root / where) == ""
    assert all((workspace.root / where / path).read_text() in ("y\n", "z\n") for path in paths)
    assert workspace.export(mount=mount).files == ()


def test_a_mount_of_that_path_does_not_exist_or_is_not_the_only_one(tmp_path: Path) -> None:
    workspace = two_mounts(tmp_path)
    with pytest.raises(ToolValidationError, match="no mount has this path") as caught:
        workspace.export(mount="deps")
    assert "/, deps/lib, t" in str(caught.value)
    with pytest.raises(ToolValidationError, match="there are none"):
        export_patch(MountPlan(), str(workspace.path), mount="/")
    workspace.copy(HostMount("src", mount_path="/"), HostMount("lib", mount_path="/"))
    with pytest.raises(ToolValidationError, match="several mounts"):
        workspace.export(mount="/")
    write(workspace.root, b"lib/new", b"host")
    write(workspace.path, b"new", b"mine")
    write(workspace.path, b"b", b"mine")
    patch = workspace.export()
    assert changes(patch) == {"b": "modified"}
    assert list(reasons(patch)) == ["new"]


def test_without_mounts_everything_is_new(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    write(workspace.path, b"d/new", b"x")
    patch = export_patch(MountPlan(), str(workspace.path))
    assert changes(patch) == {"d/new": "added"}


def test_files_that_the_host_has_behind_a_link_are_left_out(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, {b"a": (b"x\n", False)})
    write(workspace.root, b"other/b", b"x\n")
    (workspace.host / "dir").symlink_to("../other")
    workspace.copy(HostMount("src", mount_path="/", follow_symlinks=True))
    assert workspace.export().left_out == ()
    for name in (b"a", b"dir/b", b"dir/new"):
        write(workspace.path, name, b"y\n")
    patch = workspace.export()
    assert changes(patch) == {"a": "modified"}
    assert list(reasons(patch)) == ["dir/b", "dir/new"]
    assert git_apply(patch.text, workspace.host) == ""


def test_in_a_directory_of_a_repository_git_needs_the_prefix(tmp_path: Path) -> None:
    """As docs/reference/patch-export.md says: without it, git skips every file there and reports success."""
    workspace = Workspace(tmp_path, {b"a": (b"x\n", False)})
    subprocess.run(["git", "init", "-q", str(workspace.root)], check=True, env=ENV)
    write(workspace.path, b"a", b"y\n")
    patch = workspace.export()
    command = 'git apply --directory="$(git rev-parse --show-prefix)"'
    page = Path(__file__).parents[2] / "docs" / "reference" / "patch-export.md"
    assert command in page.read_text(encoding="utf-8")
    subprocess.run(["sh", "-c", command], cwd=workspace.host, input=patch.text.encode(), check=True, env=ENV)
    assert tree(workspace.host) == tree(workspace.path)


def test_what_is_left_out_can_be_written_as_utf_8(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    os.symlink(b"x", os.path.join(os.fsencode(workspace.path), b"\xff\n"))
    assert workspace.export().left_out == (LeftOut("\\xff\n", "it is a symbolic link"),)
