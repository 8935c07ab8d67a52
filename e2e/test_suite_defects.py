"""The measured defects of the upstream implementation, each as a test on real Podman.

In this file, unless another one is named:

| defect | test |
|---|---|
| a time limit that ends only the client | test_a_time_limit_ends_the_command_in_the_sandbox |
| ``b'partial'`` as text | test_output_before_a_time_limit_is_text |
| UnicodeDecodeError for binary output | test_binary_output_is_a_result |
| 200 MB of output buffered | test_a_flood_of_output_is_not_held_in_memory |
| ``capture_output=False`` inherits stdout | test_output_that_is_not_captured_goes_nowhere |
| E2BIG for 200 KB of code | test_200_kb_of_code_run |
| 1 MB of stdin accepted | test_a_megabyte_of_stdin_is_refused |
| names of variables in upper case | test_names_of_variables_keep_their_case |
| never cleaned up | test_suite_life: test_closing_removes_everything, test_what_a_killed_process_left_is_removed |
| no recovery after a container's death | test_suite_life: test_a_container_that_ends_between_calls, …_during_a_call |
| image pulled at every create | test_the_image_is_never_pulled |
| 8 parallel edits, of which 1 survived | test_tool_files: test_eight_edits_by_eight_workers_all_survive |
| links copied from outside of the root | test_a_mounted_link_that_leads_out_is_not_copied |
| a FIFO aborts hydration | test_a_fifo_does_not_abort_hydration |
| a budget overflow leaves a partial overlay | test_a_mount_over_its_budget_leaves_nothing_for_the_next_call |
| grep follows a link out | test_tool_files: test_grep_and_glob_do_not_follow_a_link_out |
| reading a FIFO hangs | test_tool_files: test_reading_a_fifo_does_not_hang |
| ``rm`` of a link removes the target | test_tool_files: test_removing_a_link_keeps_its_target |
| an exponential expression freezes | test_tool_files: test_an_exponential_expression_is_ended_and_leaves_no_process |
| permission denied for uid 65534 | test_the_sandboxs_user_may_use_what_was_mounted |
| ``$`` in a mounted name breaks the template | test_any_mounted_name_is_previewed_and_read |
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from e2e.harness import TAG, World
from e2e.shells import greatest_size
from e2e.suites import Tools, ident, opened
from podbot.errors import ToolValidationError
from podbot.sections.host_mounts import HostMount
from podbot.sections.mount_preview import rendered_mounts, with_mounts
from podbot.suites import LazyWorkspace, PodmanBackend, WorkspaceSettings


@pytest.fixture(scope="module")
def tools(shared_world: World) -> Iterator[Tools]:
    with opened(shared_world) as found:
        yield found


@pytest.fixture
def source(shared_world: World) -> Path:
    """A directory to mount, which only this user may enter."""
    path = Path(shared_world.workspace("source"))
    path.chmod(0o700)
    (path / "file").write_text("text\n")
    (path / "file").chmod(0o600)
    return path


def mounting(source: Path, **options: Any) -> dict[str, Any]:
    mount = HostMount(source.name, "/", **options)
    return {"mounts": (mount,), "allowed_host_roots": (str(source.parent),)}


# --- commands --------------------------------------------------------------------------------------


def test_a_time_limit_ends_the_command_in_the_sandbox(tools: Tools) -> None:
    sleeps = [f"sleep 4731{number}.{TAG}" for number in range(1, 5)]
    own_session, in_group, own_session_deeper, itself = sleeps
    line = f"setsid {own_session} & {in_group} & setsid sh -c '{own_session_deeper}; true' & exec {itself}"
    late = tools.value("shell_execute", command=["sh", "-c", line], timeout_seconds=1)
    assert (late.timed_out, late.exit_code) == (True, 124)
    listed = tools.run("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '")
    assert [sleep for sleep in sleeps if sleep in listed] == []  # also those that changed their session


def test_output_before_a_time_limit_is_text(tools: Tools) -> None:
    late = tools.value("shell_execute", command=["sh", "-c", "printf 'p\\303\\244rtial'; sleep 60"], timeout_seconds=1)
    assert late.stdout == "pärtial"


def test_binary_output_is_a_result(tools: Tools) -> None:
    found = tools.value("shell_execute", command=["printf", "a\\377\\376\\000b"])
    assert (found.exit_code, found.stdout) == (0, "a\ufffd\ufffd\0b")
    program = tools.value("evaluate_python", code="import os\nos.write(1, bytes(range(128, 256)))")
    assert program.stdout == "\ufffd" * 128


def test_a_flood_of_output_is_not_held_in_memory(tools: Tools) -> None:
    tools.run("true")
    before = greatest_size()
    flood = tools.value("shell_execute", command=["head", "-c", "200000000", "/dev/zero"], timeout_seconds=120)
    assert (flood.exit_code, flood.truncated, len(flood.stdout) <= 32 << 10) == (0, True, True)
    assert greatest_size() - before < 20 << 10


def test_output_that_is_not_captured_goes_nowhere(tools: Tools, capfd: pytest.CaptureFixture[str]) -> None:
    found = tools.value("shell_execute", command=["sh", "-c", "echo out; echo err >&2; exit 3"], capture_output=False)
    assert (found.exit_code, found.stdout, found.stderr) == (3, "capture disabled", "capture disabled")
    assert tuple(capfd.readouterr()) == ("", "")


def test_200_kb_of_code_run(tools: Tools) -> None:
    code = "".join(f"x{number} = {number}\n" for number in range(16_000)) + "print(x15999)"
    assert len(code) > 200_000
    assert tools.value("evaluate_python", code=code).stdout == "15999\n"


def test_a_megabyte_of_stdin_is_refused(tools: Tools) -> None:
    said = tools.problem("shell_execute", command=["touch", "ran"], stdin="x" * 1_000_000)
    assert said == "stdin cannot be 1000000 characters: the limit is 48000"
    assert "ran" not in tools.paths("ls")


def test_names_of_variables_keep_their_case(tools: Tools) -> None:
    shown = tools.value("shell_execute", command=["env"], env={"lower": "1", "Mixed_Case": "2"}).stdout.splitlines()
    assert {"lower=1", "Mixed_Case=2"} <= set(shown)
    assert not {"LOWER=1", "MIXED_CASE=2"} & set(shown)


def test_the_image_is_never_pulled(shared_world: World, tmp_path: Path) -> None:
    """It has a name of its own, because the engines of all tests that run at the same time share their events."""
    image, began = f"localhost/podbot-unpulled-{ident()}:1", str(int(time.time()))
    base = shared_world.sealed_env.get("PODBOT_IMAGE", shared_world.image)
    (tmp_path / "Containerfile").write_text(f"FROM {base}\nLABEL unpulled=yes\n")
    built = shared_world.podman("build", "-q", "-t", image, str(tmp_path))
    assert built.returncode == 0, built.stderr
    try:
        with opened(shared_world, image=image) as tools:
            for _ in range(2):
                tools.run("true")
                tools.workspace.stop()
        listed = shared_world.podman(
            "events", "--stream=false", "--since", began, "--format", "{{.Status}} {{.Name}} {{.Image}}"
        ).stdout.splitlines()
    finally:
        shared_world.podman("rmi", image)
    events = [line.split()[0] for line in listed if image in line.split()]
    assert events.count("create") == 2, listed
    assert "pull" not in events


# --- mounts ----------------------------------------------------------------------------------------


def test_a_mounted_link_that_leads_out_is_not_copied(shared_world: World, source: Path) -> None:
    secret = Path(shared_world.root) / "secret"
    secret.mkdir()
    (secret / "key").write_text("SECRET")
    for name, target in (("file-out", secret / "key"), ("dir-out", secret), ("up", Path("..")), ("in", Path("file"))):
        (source / name).symlink_to(target)
    with opened(shared_world, **mounting(source)) as tools:
        assert tools.paths("ls") == ["file"]
        assert "SECRET" not in tools.run("cat -- * 2>&1; ls -laR")
        notes = rendered_mounts(tools.workspace.plan.previews)
        assert "file-out: a symbolic link that leads out of the allowed root" in notes
    with opened(shared_world, **mounting(source, follow_symlinks=True)) as tools:
        assert tools.paths("ls") == ["file", "in"]
        assert tools.value("read_file", file_path="in").content == "text"


def test_a_fifo_does_not_abort_hydration(shared_world: World, source: Path) -> None:
    os.mkfifo(source / "fifo")
    with opened(shared_world, **mounting(source)) as tools:
        assert tools.paths("ls") == ["file"]


def test_a_mount_over_its_budget_leaves_nothing_for_the_next_call(shared_world: World, source: Path) -> None:
    (source / "small").write_bytes(b"x" * 10)
    limits = mounting(source, max_bytes=14)
    with pytest.raises(ToolValidationError, match="max_bytes"):
        LazyWorkspace(PodmanBackend(shared_world.sealed_env), ident=ident(), settings=WorkspaceSettings(**limits))
    with opened(shared_world, **mounting(source, max_bytes=15)) as tools:
        (source / "small").write_bytes(b"x" * 11)  # after it was planned, and before it is copied
        for _ in range(2):
            assert "max_bytes" in tools.problem("ls")
            assert not os.path.exists(tools.workspace.directory)
        assert not shared_world.container(tools.workspace.name)
        (source / "small").write_bytes(b"x" * 9)
        assert tools.run("cat *") == "text\n" + "x" * 9


def test_mounts_that_overlap_are_merged_or_refused_before_anything_is_made(shared_world: World, source: Path) -> None:
    other = Path(shared_world.workspace("other"))
    (other / "guide.md").write_text("guide\n")
    roots = (str(source.parent),)

    def settings(mount_path: str) -> dict[str, Any]:
        mounts = (HostMount(source.name, "/"), HostMount(other.name, mount_path))
        return {"mounts": mounts, "allowed_host_roots": roots}

    with opened(shared_world, **settings("docs/deep")) as tools:
        assert tools.run("find . -type f | sort; cat docs/deep/*") == "./docs/deep/guide.md\n./file\nguide\n"
    with opened(shared_world, **settings("/")) as tools:
        assert tools.paths("ls") == ["file", "guide.md"]
    before = shared_world.managed()
    for mount_path, limit in (("file", "is a file of the mount"), ("file/below", "is a file of the mount")):
        refused_before_it_is_made(shared_world, settings(mount_path), limit)
    (other / "file").mkdir()
    refused_before_it_is_made(shared_world, settings("/"), "file")
    assert shared_world.managed() == before


def test_mounts_that_are_missing_are_refused_or_leave_nothing(shared_world: World, source: Path) -> None:
    given = mounting(source)
    missing = {**given, "mounts": (*given["mounts"], HostMount("none-of-that-name", "docs"))}
    refused_before_it_is_made(shared_world, missing, "none-of-that-name")
    outside = {**given, "mounts": (HostMount("/etc"),)}
    refused_before_it_is_made(shared_world, outside, "/etc")
    with opened(shared_world, **given) as tools:
        kept = source.rename(source.with_name(f"{source.name}-elsewhere"))  # after it was planned
        for _ in range(2):
            assert source.name in tools.problem("ls")
            assert not os.path.exists(tools.workspace.directory)
        assert not shared_world.container(tools.workspace.name)
        kept.rename(source)
        assert tools.run("cat file") == "text\n"


def refused_before_it_is_made(world: World, settings: dict[str, Any], said: str) -> None:
    """Settings that a workspace does not take; ``said``: is in the error."""
    backend = PodmanBackend(world.sealed_env)
    with pytest.raises(ToolValidationError) as caught:
        LazyWorkspace(backend, ident=ident(), settings=WorkspaceSettings(**settings))
    assert said in str(caught.value)


def test_the_sandboxs_user_may_use_what_was_mounted(shared_world: World, source: Path) -> None:
    (source / "d").mkdir(mode=0o700)
    (source / "d" / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (source / "d" / "run.sh").chmod(0o700)
    with opened(shared_world, **mounting(source)) as tools:
        assert tools.run("d/run.sh; echo more >> file; mkdir d/new; stat -c %u:%g file d d/new") == "ran\n" + (
            "65534:65534\n" * 3
        )
        assert tools.value("edit_file", file_path="file", old_string="text", new_string="edited").replacements == 1
        assert tools.value("rm", path="d").entries == 3
    assert (source / "file").read_text() == "text\n"


def test_any_mounted_name_is_previewed_and_read(shared_world: World, source: Path) -> None:
    names = ["$HOME", "${x}", "$", "$(id)", "%s", "{0}", "a\\b", "-rf"]
    for name in names:
        (source / name).write_text(name)
    with opened(shared_world, **mounting(source)) as tools:
        shown = with_mounts("A $template with ${names}.", tools.workspace.plan.previews)
        assert shown.startswith("A $template with ${names}.\n")
        for name in names:
            assert name in shown
            assert tools.value("read_file", file_path=name).content == name
        assert tools.paths("ls") == sorted([*names, "file"])
