"""What a restart, an idle time, a fork and a late call mean for what was begun before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from podbot.errors import ContainerNotFound, InvalidCommand, WorkspaceDied
from podbot.sections.host_mounts import HostMount
from podbot.suites import LazyWorkspace, LocalBackend, WorkspaceSettings, WorkspaceState
from tests.suites.fake_backend import FakeBackend
from tests.waiting import wait_until


@pytest.fixture
def backend(tmp_path: Path) -> FakeBackend:
    return FakeBackend(tmp_path)


def test_a_job_of_an_ended_container_is_no_job_of_the_next_one(backend: FakeBackend) -> None:
    with LazyWorkspace(backend, ident="a") as workspace:
        old = workspace.shell.start(["sleep", "60"])
        workspace.stop()
        new = workspace.shell.start(["sleep", "60"])
        for call in (old.poll, old.kill, lambda: workspace.shell.job(old.id)):
            with pytest.raises(InvalidCommand):
                call()
        assert new.poll().running


def test_a_stream_of_an_ended_container_says_so_and_leaves_the_next_one_alone(backend: FakeBackend) -> None:
    with LazyWorkspace(backend, ident="a") as workspace, workspace.shell.stream("echo begun; sleep 60") as stream:
        chunks = iter(stream)
        assert next(chunks).data == b"begun\n"
        workspace.stop()
        workspace.start()
        with pytest.raises(WorkspaceDied, match="it was stopped"):
            next(chunks)
        assert [container.asked for container in backend.starts] == [0, 0], "what can take seconds is not asked"
        assert (len(backend.starts), backend.starts[-1].closed) == (2, 0)


def test_the_state_is_known_during_the_first_command_and_gone_after_the_end(backend: FakeBackend) -> None:
    told: list[WorkspaceState | None] = []
    with (
        LazyWorkspace(backend, ident="a", on_change=told.append) as workspace,
        workspace.shell.stream("echo begun; sleep 60") as stream,
    ):
        next(iter(stream))
        assert told[0] is not None
        assert told[0].workdir == "/workspace"
    assert told[-1] is None


def test_a_failure_after_the_start_ends_the_container(backend: FakeBackend) -> None:
    def refuse(state: WorkspaceState | None) -> None:
        if state is not None and len(backend.starts) == 1:
            raise ZeroDivisionError

    with LazyWorkspace(backend, ident="a", on_change=refuse) as workspace:
        with pytest.raises(ZeroDivisionError):
            workspace.start()
        assert (workspace.state, backend.starts[0].closed) == (None, 1)
        workspace.start()


def test_a_late_call_starts_no_process_on_this_host(tmp_path: Path) -> None:
    with LazyWorkspace(LocalBackend(root=str(tmp_path)), ident="a") as workspace, workspace.in_use() as opened:
        workspace.stop()
        with pytest.raises(ContainerNotFound), opened.connection.use():
            pass


def test_a_workspace_is_not_idle_while_a_job_runs(backend: FakeBackend) -> None:
    with LazyWorkspace(backend, ident="a", settings=WorkspaceSettings(idle_seconds=1)) as workspace:
        workspace.shell.start(["sh", "-c", "sleep 1.6; touch ended"])
        wait_until(lambda: backend.starts[0].closed == 1)
        assert Path(workspace.directory, "ended").exists()


def test_idle_time_begins_at_the_end_of_a_job(backend: FakeBackend) -> None:
    now = 0.0
    settings = WorkspaceSettings(idle_seconds=3600)
    with LazyWorkspace(backend, ident="a", settings=settings, monotonic=lambda: now) as workspace:
        workspace.shell.start(["sh", "-c", "until [ -e over ]; do sleep 0.01; done"])
        with workspace.in_use() as opened:
            pass
        now = 10_000
        assert workspace.end_if_over(opened, 0) == 360, "a tenth of the idle time until the next look"
        Path(workspace.directory, "over").touch()
        wait_until(lambda: workspace.end_if_over(opened, 0) == 3600, "its end")
        now = 13_000
        assert workspace.end_if_over(opened, 0) == 600
        now = 13_601
        assert workspace.end_if_over(opened, 0) is None
        assert backend.starts[0].closed == 1


def test_the_exit_of_a_forked_process_removes_nothing(tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "from podbot.suites import LazyWorkspace, LocalBackend\n"
        "workspace = LazyWorkspace(LocalBackend(root=sys.argv[1]), ident='a')\n"
        "workspace.files.write(['a'], '1')\n"
        "pid = os.fork()\n"
        "if not pid:\n"
        "    sys.exit(0)\n"
        "os.waitpid(pid, 0)\n"
        "print(workspace.files.read(['a']).content)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("1\n", 0), done.stderr
    assert os.listdir(tmp_path / "podbot-workspaces") == []


def test_discard_also_removes_what_an_earlier_workspace_kept(backend: FakeBackend) -> None:
    with LazyWorkspace(backend, ident="a", keep=True) as first:
        first.files.write(["old"], "1")
    with LazyWorkspace(backend, ident="a") as second:
        second.discard()
        assert second.files.ls().entries == ()


@pytest.mark.parametrize("given", ["link/project", "real/project"])
def test_roots_and_mounts_may_be_named_through_links(backend: FakeBackend, tmp_path: Path, given: str) -> None:
    (tmp_path / "real" / "project").mkdir(parents=True)
    (tmp_path / "real" / "project" / "a").write_text("1")
    (tmp_path / "link").symlink_to("real")
    root = str(tmp_path / "link")
    settings = WorkspaceSettings(mounts=(HostMount(str(tmp_path / given), "/"),), allowed_host_roots=(root,))
    with LazyWorkspace(backend, ident="a", settings=settings) as workspace:
        assert workspace.files.read(["a"]).content == "1"
