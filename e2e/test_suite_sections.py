"""The sections on a real engine, and the examples of docs/how-to that use them."""

from __future__ import annotations

import datetime as dt
import importlib.util
import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from e2e.harness import World, wait_for
from podbot.sections import HostMount, Prompt, Session
from podbot.suites import (
    PodmanSandboxConfig,
    PodmanSandboxSection,
    PodmanShellSection,
    PodmanWorkspace,
    VirtualFileSystem,
)

EXAMPLES = os.path.join(os.path.dirname(os.path.dirname(__file__)), "docs", "examples")


@pytest.fixture
def session() -> Session:
    return Session()


@pytest.fixture
def shell(world: World, session: Session) -> Iterator[PodmanShellSection]:
    environment = {"GREETING": "hello"}
    with PodmanShellSection(session=session, environment=environment, environ=world.sealed_env) as made:
        yield made
        name = made.container_name
    assert not world.container(name)


def used(section: PodmanShellSection, **arguments: Any) -> Any:
    prompt = Prompt(ns="e2e", key="shell", sections=[section])
    return prompt.invoke("podman_shell", arguments, session=section.session)


def test_podman_shell_starts_runs_and_stops_one_container(
    world: World, session: Session, shell: PodmanShellSection
) -> None:
    name = shell.container_name
    assert used(shell, action="stop").success, "stopping what does not run is nothing"
    assert session[PodmanWorkspace].latest() is None
    assert used(shell, action="start").success
    started = world.container(name)["Id"]
    assert used(shell, action="start").success
    assert world.container(name)["Id"] == started, "starting twice is one container"
    ran = used(shell, action="exec", command="echo $GREETING; id -u; pwd; echo kept > file")
    assert (ran.success, ran.value.stdout) == (True, "hello\n65534\n/workspace\n")
    assert used(shell, action="exec", command="cat file").value.stdout == "kept\n"
    failed = used(shell, action="exec", command="echo why >&2; exit 3")
    assert (failed.success, failed.value.exit_code, failed.value.stderr) == (False, 3, "why\n")
    late = used(shell, action="exec", command="echo begun; sleep 60", timeout_seconds=1)
    assert (late.success, late.value.exit_code, late.value.stdout) == (False, 124, "begun\n")
    assert session[PodmanWorkspace].latest().container_name == name  # type: ignore[union-attr]
    assert used(shell, action="stop").success
    assert not world.container(name)
    assert used(shell, action="exec", command="ls").value.stdout == "", "a new one has no files of the old one"


def test_podman_shell_removes_the_container_at_its_time_limit(world: World, session: Session) -> None:
    limit = dt.timedelta(seconds=3)
    with PodmanShellSection(session=session, timeout=limit, workdir="/tmp", environ=world.sealed_env) as section:
        late = used(section, action="exec", command="pwd; sleep 60", timeout_seconds=60)
        assert not late.success
        assert "its time limit of 3 s" in late.message
        wait_for(lambda: not world.container(section.container_name), what="the container to be removed")
        assert used(section, action="exec", command="pwd").value.stdout == "/tmp\n"


def test_the_session_knows_the_workspace_and_its_files(world: World, session: Session) -> None:
    project = world.workspace()
    with open(os.path.join(project, "a.py"), "w", encoding="utf-8") as file:
        file.write("print(1)\n")
    config = PodmanSandboxConfig(
        mounts=(HostMount("a.py"),),
        allowed_host_roots=(project,),
        environ=world.sealed_env,
    )
    with PodmanSandboxSection(session=session, config=config) as section:
        prompt = Prompt(ns="e2e", key="sandbox", sections=[section])
        assert "- /workspace/a.py, from a.py (1 file, 9 bytes)" in prompt.render().text
        ran: Any = prompt.invoke("shell_execute", {"command": ["python3", "a.py"]}, session=session)
        assert ran.value.stdout == "1\n"
        assert prompt.invoke("write_file", {"file_path": "b", "content": "2"}, session=session).success
        state = session[PodmanWorkspace].latest()
        assert state is not None
        assert (world.container(state.container_name) != {}, state.workdir) == (True, "/workspace")
        assert state.last_used_at > state.started_at
        assert [file.path for file in session[VirtualFileSystem].latest().files] == ["a.py", "b"]  # type: ignore[union-attr]
        clone_session = session.clone()
        with section.clone(session=clone_session) as clone:
            assert [entry.path for entry in clone.files.ls().entries] == ["a.py"]
            other = clone_session[PodmanWorkspace].latest()
            assert other is not None
            assert other.container_name != state.container_name
            assert other.overlay_path != state.overlay_path
    assert not os.path.exists(state.overlay_path)
    assert session[PodmanWorkspace].latest() is None


ENDS_ITS_CONTAINER = """
import os, signal
for pid in filter(str.isdigit, os.listdir("/proc")):
    if int(pid) != os.getpid():
        os.kill(int(pid), signal.SIGKILL)
"""


# --- examples --------------------------------------------------------------------------------------


@pytest.fixture
def examples(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Examples use the engine and the configuration of the process."""
    for name in set(os.environ) - set(world.env):
        monkeypatch.delenv(name)
    for name, value in world.sealed_env.items():
        monkeypatch.setenv(name, value)


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, os.path.join(EXAMPLES, f"{name}.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # a dataclass looks there
    spec.loader.exec_module(module)
    return module


@pytest.mark.usefixtures("examples")
def test_the_code_review_example(world: World, session: Session) -> None:
    project = world.workspace()
    with open(os.path.join(project, "add.py"), "w", encoding="utf-8") as file:
        file.write("def add(a, b):\n    return a - b\n")
    code_review = example("code_review")
    seen: list[str] = []

    def model(prompt: Any, conversation: list[str]) -> Any:
        seen[:] = conversation
        calls: list[list[tuple[str, dict[str, object]]]] = [
            [("grep", {"pattern": "return"}), ("evaluate_python", {"code": "from add import add; print(add(2, 3))"})],
            [("edit_file", {"file_path": "add.py", "old_string": "a - b", "new_string": "a + b"})],
            [("evaluate_python", {"code": "from add import add; print(add(2, 3))"})],
        ]
        turn = {0: 0, 2: 1, 3: 2}.get(len(conversation))
        assert "Review the project" in prompt.text
        return code_review.Reply(calls=calls[turn]) if turn is not None else code_review.Reply(text="add subtracts")

    assert code_review.review(code_review.sandbox(session, project), model) == "add subtracts"
    assert "add.py:2:     return a - b" in seen[0]
    assert seen[1].endswith("-1\n")
    assert seen[3].endswith("5\n")
    with open(os.path.join(project, "add.py"), encoding="utf-8") as file:
        assert "a - b" in file.read(), "the project itself is never changed"


@pytest.mark.usefixtures("examples")
def test_the_untrusted_code_example() -> None:
    untrusted_code = example("untrusted_code")
    programs = [
        "print(sum(map(int, input().split())))",
        "print(0)",
        "while True: pass",
        "import socket; socket.create_connection(('192.0.2.1', 80), 3)",
        "import os\nwhile True: os.fork()",
        ENDS_ITS_CONTAINER,
    ]
    verdicts = untrusted_code.judge_all(programs, "1 2 3\n", "6\n")
    assert [verdict.passed for verdict in verdicts] == [True, False, False, False, False, False]
    assert verdicts[1].why == "it printed something else"
    assert verdicts[2].why == "it ran for more than 5 s"
    assert "Network is unreachable" in verdicts[3].why
