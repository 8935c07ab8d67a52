"""The life of a workspace: when it starts, when it ends, and what of it stays."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from podbot.errors import (
    ChannelLost,
    CreateFailed,
    ToolValidationError,
    WorkspaceClosed,
    WorkspaceDied,
    WorkspaceInUse,
)
from podbot.sections.host_mounts import HostMount
from podbot.suites import LazyWorkspace, WorkspaceSettings, WorkspaceState
from podbot.tools import as_json
from tests.suites.fake_backend import FakeBackend
from tests.waiting import pause, wait_until


@pytest.fixture
def backend(tmp_path: Path) -> FakeBackend:
    return FakeBackend(tmp_path)


@pytest.fixture
def workspace(backend: FakeBackend) -> Iterator[LazyWorkspace]:
    with LazyWorkspace(backend, ident="a") as made:
        yield made


def said(workspace: LazyWorkspace, *command: str) -> str:
    return workspace.shell.execute(command).stdout


def test_nothing_is_made_before_it_is_used(backend: FakeBackend, workspace: LazyWorkspace) -> None:
    assert workspace.shell.root == workspace.directory
    assert workspace.suite().tools
    assert workspace.state is None
    assert backend.starts == []
    assert not os.path.exists(workspace.directory)


def test_files_and_commands_share_one_start(backend: FakeBackend, workspace: LazyWorkspace) -> None:
    workspace.files.write(["a"], "text\n")
    assert said(workspace, "cat", "a") == "text\n"
    assert said(workspace, "pwd") == f"{workspace.directory}\n"
    assert len(backend.starts) == 1


def test_many_first_uses_at_once_are_one_start(backend: FakeBackend, workspace: LazyWorkspace) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(said(workspace, "echo", "x"))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["x\n"] * 8
    assert len(backend.starts) == 1


def test_a_call_whose_container_has_ended_says_so_and_the_next_one_starts_another(
    backend: FakeBackend, workspace: LazyWorkspace
) -> None:
    workspace.files.write(["kept"], "1")
    backend.starts[0].dead = True
    with pytest.raises(WorkspaceDied, match=r"box-a ended: .*exited\. The next call starts it again"):
        said(workspace, "true")
    assert (workspace.state, backend.starts[0].closed) == (None, 1)
    assert workspace.files.read(["kept"]).content == "1"
    assert len(backend.starts) == 2


@pytest.mark.parametrize("ends", [True, False])
def test_a_lost_guest_is_the_end_of_the_container_if_that_ends(
    backend: FakeBackend, workspace: LazyWorkspace, ends: bool
) -> None:
    workspace.files.write(["kept"], "1")
    container = backend.starts[0]
    container.lost, container.ends = True, ends
    with pytest.raises(WorkspaceDied if ends else ChannelLost, match="it ended"):
        said(workspace, "true")
    container.lost = False
    assert workspace.files.read(["kept"]).content == "1"
    assert len(backend.starts) == (2 if ends else 1)


def test_a_tool_says_it_in_its_result(backend: FakeBackend, workspace: LazyWorkspace) -> None:
    suite = workspace.suite()
    assert suite.tool("ls").invoke({}).success
    backend.starts[0].dead = True
    for name, arguments in (("ls", {}), ("shell_execute", {"command": ["true"]})):
        backend.starts[-1].dead = True
        result = suite.tool(name).invoke(arguments)
        assert not result.success
        assert "box-a ended" in result.message
        assert suite.tool(name).invoke(arguments).success


def test_a_failed_start_is_tried_again_by_the_next_call(backend: FakeBackend, workspace: LazyWorkspace) -> None:
    backend.failures.append(CreateFailed(container="box-a", image="i", reason="no"))
    with pytest.raises(CreateFailed):
        workspace.start()
    assert workspace.start().workdir == "/workspace"


def test_the_state_is_told_after_each_start_and_use_and_at_the_end(backend: FakeBackend) -> None:
    times = iter(datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC) for second in range(60))
    told: list[WorkspaceState | None] = []
    settings = WorkspaceSettings(environment={"A": "b"})
    with LazyWorkspace(
        backend, ident="a", settings=settings, on_change=told.append, clock=lambda: next(times)
    ) as workspace:
        assert said(workspace, "sh", "-c", "echo $A") == "b\n"
        assert said(workspace, "true") == ""
    assert told[-1] is None
    states = [state for state in told if state is not None]
    assert [state.last_used_at.second for state in states] == sorted({state.last_used_at.second for state in states})
    assert {(state.started_at.second, state.env) for state in states} == {(0, (("A", "b"),))}


def test_commands_get_no_secret_of_this_process(tmp_path: Path) -> None:
    from podbot.suites import LocalBackend

    environ = {"PATH": os.environ["PATH"], "A_MODEL_KEY": "canary", "LANG": "C.UTF-8"}
    with LazyWorkspace(LocalBackend(environ, root=str(tmp_path)), ident="a") as workspace:
        shown = said(workspace, "env")
    assert "PATH=" in shown
    assert "canary" not in shown


def test_a_module_that_is_edited_and_run_at_once_is_the_new_one(workspace: LazyWorkspace) -> None:
    """Old bytecode would be taken for a file of the same size and second."""
    suite = workspace.suite()
    suite.tool("write_file").invoke({"file_path": "m.py", "content": "x = 1\n"})
    for value in (1, 2, 3):
        ran: Any = suite.tool("evaluate_python").invoke({"code": "import m; print(m.x)"})
        assert ran.value.stdout == f"{value}\n"
        edit = {"file_path": "m.py", "old_string": f"x = {value}", "new_string": f"x = {value + 1}"}
        assert suite.tool("edit_file").invoke(edit).success


# --- mounts ----------------------------------------------------------------------------------------


def mounted(source: Path) -> WorkspaceSettings:
    return WorkspaceSettings(mounts=(HostMount(source.name, "/"),), allowed_host_roots=(str(source.parent),))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.mkdir()
    (path / "a").write_text("1")
    return path


def test_mounts_are_previewed_before_and_copied_at_the_first_use(backend: FakeBackend, source: Path) -> None:
    with LazyWorkspace(backend, ident="a", settings=mounted(source)) as workspace:
        previewed = [workspace.plan.previews[0].entries]
        (source / "b").write_text("2")
        assert [entry.path for entry in workspace.files.ls().entries] == ["a", "b"]
        previewed.append(workspace.plan.previews[0].entries)
        assert previewed == [("a",), ("a", "b")]


def test_a_restart_keeps_what_the_agent_changed(backend: FakeBackend, source: Path) -> None:
    with LazyWorkspace(backend, ident="a", settings=mounted(source)) as workspace:
        workspace.files.edit(["a"], "1", "changed")
        workspace.stop()
        assert workspace.files.read(["a"]).content == "changed"
    assert (source / "a").read_text() == "1"


def test_what_changed_on_the_host_before_the_first_use_is_planned_again(backend: FakeBackend, source: Path) -> None:
    with LazyWorkspace(backend, ident="a", settings=mounted(source)) as workspace:
        (source / "a").unlink()
        (source / "a").mkdir()
        os.mkfifo(source / "pipe")
        for number in range(3):
            (source / f"f{number}").write_text("x")
        os.symlink("/etc/passwd", source / "out")
        assert [entry.path for entry in workspace.files.ls().entries] == ["a", "f0", "f1", "f2"]


def test_a_missing_mount_is_refused_at_once(backend: FakeBackend, tmp_path: Path) -> None:
    with pytest.raises(ToolValidationError, match="does not exist"):
        LazyWorkspace(backend, ident="a", settings=mounted(tmp_path / "none"))


def test_a_mount_that_vanished_fails_each_call_and_leaves_no_half_of_it(backend: FakeBackend, source: Path) -> None:
    with LazyWorkspace(backend, ident="a", settings=mounted(source)) as workspace:
        source.rename(source.parent / "moved")
        for _ in range(2):
            with pytest.raises(ToolValidationError):
                workspace.files.ls()
            assert not os.path.exists(workspace.directory)
        (source.parent / "moved").rename(source)
        assert workspace.files.read(["a"]).content == "1"


# --- the end ---------------------------------------------------------------------------------------


def test_closing_removes_the_files_and_the_container_once(backend: FakeBackend) -> None:
    workspace = LazyWorkspace(backend, ident="a")
    workspace.files.write(["a"], "1")
    workspace.close()
    workspace.close()
    assert os.listdir(backend.overlays()) == []
    assert backend.starts[0].closed == 1
    with pytest.raises(WorkspaceClosed):
        workspace.files.ls()


def test_closing_what_was_never_used_is_nothing(backend: FakeBackend) -> None:
    LazyWorkspace(backend, ident="a").close()
    assert not os.path.exists(backend.overlays())


def test_what_is_kept_is_continued_by_the_next_one_of_that_name(backend: FakeBackend, source: Path) -> None:
    with LazyWorkspace(backend, ident="a", settings=mounted(source), keep=True) as workspace:
        workspace.files.edit(["a"], "1", "2")
    with LazyWorkspace(backend, ident="a", settings=mounted(source)) as workspace:
        assert workspace.files.read(["a"]).content == "2"
    assert os.listdir(backend.overlays()) == []


def test_what_is_to_be_kept_is_marked_before_its_first_call_ends(backend: FakeBackend) -> None:
    with LazyWorkspace(backend, ident="a", keep=True) as workspace:
        workspace.files.write(["a"], "1")
        assert "keep" in os.listdir(os.path.dirname(workspace.directory))


def test_a_workspace_in_use_cannot_be_opened_again(backend: FakeBackend, workspace: LazyWorkspace) -> None:
    workspace.start()
    with LazyWorkspace(backend, ident="a") as second, pytest.raises(WorkspaceInUse):
        second.start()
    assert workspace.files.ls().entries == ()


def test_closing_during_a_command_ends_it(backend: FakeBackend) -> None:
    workspace = LazyWorkspace(backend, ident="a")
    workspace.start()
    raised: list[Exception] = []

    def run() -> None:
        try:
            workspace.shell.execute(["sh", "-c", "touch begun; exec sleep 600"], timeout_seconds=120)
        except WorkspaceDied as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(Path(workspace.directory, "begun").exists)
    workspace.close()
    thread.join(60)
    assert not thread.is_alive()
    assert "it was closed" in str(raised[0])


# --- limits ----------------------------------------------------------------------------------------


def test_after_its_time_limit_the_container_is_ended_even_during_a_command(backend: FakeBackend) -> None:
    settings = WorkspaceSettings(uptime_seconds=0.3)
    with LazyWorkspace(backend, ident="a", settings=settings) as workspace:
        with pytest.raises(WorkspaceDied, match=r"its time limit of 0\.3 s"):
            workspace.shell.execute(["sleep", "60"], timeout_seconds=60)
        assert (workspace.state, backend.starts[0].closed) == (None, 1)


def test_an_idle_one_is_ended_and_starts_again_with_its_files(backend: FakeBackend) -> None:
    with LazyWorkspace(backend, ident="a", settings=WorkspaceSettings(idle_seconds=0.2)) as workspace:
        workspace.files.write(["a"], "1")
        wait_until(lambda: backend.starts[0].closed == 1)
        assert workspace.state is None
        assert workspace.files.read(["a"]).content == "1"


def test_neither_a_call_nor_a_job_is_idle(backend: FakeBackend) -> None:
    with LazyWorkspace(backend, ident="a", settings=WorkspaceSettings(idle_seconds=0.2)) as workspace:
        workspace.shell.execute(["sleep", "1"])
        assert len(backend.starts) == 1
        job = workspace.shell.start(["sleep", "60"])
        container = backend.starts[-1]
        pause(1)
        assert container.closed == 0
        job.kill()
        wait_until(lambda: container.closed == 1)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 10**9])
@pytest.mark.parametrize("field", ["idle_seconds", "uptime_seconds"])
def test_time_limits_are_checked(field: str, seconds: float) -> None:
    with pytest.raises(ToolValidationError, match=field):
        WorkspaceSettings(**{field: seconds})  # type: ignore[arg-type]


@pytest.mark.parametrize("ident", ["", "-a", "A", "a/b", "..", "a" * 49, "a\n", "ü"])
def test_names_are_checked(backend: FakeBackend, ident: str) -> None:
    with pytest.raises(ToolValidationError, match="ident"):
        LazyWorkspace(backend, ident=ident)


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A=B", "A\0"])
def test_variables_are_checked(name: str) -> None:
    with pytest.raises(ToolValidationError, match="environment"):
        WorkspaceSettings(environment={name: "x"})


def test_results_of_its_tools_are_json(workspace: LazyWorkspace) -> None:
    value = workspace.suite().tool("write_file").invoke({"file_path": "a", "content": "1"}).value
    assert as_json(value)["path"] == "a"
