from __future__ import annotations

import threading
from typing import Any

import pytest

from podbot.errors import ContainerNotFound, InvalidWorkingDirectory, SandboxDied, ToolValidationError
from podbot.shell.mock_shell import MockShell
from podbot.shell.types import ExecutionResult, Shell
from podbot.tools import ContainerShellTool, PodmanShellParams, PodmanShellResult, ToolResult


class Container:
    """One container of which the actions are noted."""

    container_name = "box"

    def __init__(self, result: ExecutionResult | Exception | None = None, error: Exception | None = None) -> None:
        self.mock = MockShell()
        self.error = error
        self.actions: list[str] = []
        self.inside = threading.Semaphore(1)
        if result is not None:
            self.mock.add_response("", result)

    def start(self) -> Shell:
        self._act("start")
        return self.mock

    def stop(self) -> None:
        self._act("stop")

    def _act(self, action: str) -> None:
        assert self.inside.acquire(blocking=False), "two actions at the same time"
        try:
            self.actions.append(action)
            if self.error is not None:
                raise self.error
        finally:
            self.inside.release()


def run(container: Container, /, *args: Any) -> ToolResult[PodmanShellResult]:
    (tool,) = ContainerShellTool(container).tools()
    assert tool.name == "podman_shell"
    return tool.run(PodmanShellParams(*args))


def ran(code: int, out: str = "", err: str = "", **more: Any) -> ExecutionResult:
    return ExecutionResult(code, out, err, ("x",), "/", 1.0, **more)


def test_lifecycle_actions_have_no_streams() -> None:
    container = Container()
    for action in ("start", "start", "stop", "stop"):
        result = run(container, action)
        assert result.success
        assert result.value == PodmanShellResult(action, "box", None, None, None)
    assert container.actions == ["start", "start", "stop", "stop"]


def test_exec_starts_the_container_and_returns_the_streams() -> None:
    container = Container(ran(0, "out", "err"))
    result = run(container, "exec", "make | tee log", 7)
    assert (result.success, result.value) == (True, PodmanShellResult("exec", "box", "out", "err", 0))
    assert container.actions == ["start"]
    ((command, how),) = container.mock.execute_calls
    assert (command, how["timeout_seconds"]) == ("make | tee log", 7.0)


def test_a_command_that_fails_is_no_success() -> None:
    said = run(Container(ran(2, "", "no rule")), "exec", "make")
    assert (said.success, said.value) == (False, PodmanShellResult("exec", "box", "", "no rule", 2))
    silent = run(Container(ran(1, "out")), "exec", "false").value
    assert silent == PodmanShellResult("exec", "box", "out", "The command ended with exit code 1.", 1)
    late = run(Container(ran(-1, "part", timed_out=True)), "exec", "sleep 9").value
    assert late is not None
    assert (late.exit_code, late.stdout) == (124, "part")
    assert "time limit" in str(late.stderr)


@pytest.mark.parametrize("action", ["start", "stop", "exec"])
def test_errors_are_in_stderr(action: str) -> None:
    for error in (ContainerNotFound(container="box"), RuntimeError("gone"), OSError("pipe")):
        result = run(Container(error=error), action, "true" if action == "exec" else None)
        assert (result.success, result.message) == (False, str(error))
        assert result.value == PodmanShellResult(action, "box", None, str(error), None)  # type: ignore[arg-type]
    wrong = InvalidWorkingDirectory(path="/w", root="/", reason="it does not exist")
    assert not run(Container(wrong), "exec", "true").success
    assert not run(Container(SandboxDied(container="box", reason="it ended")), "exec", "true").success


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        (("exec",), "command"), (("exec", "  "), "command"),
        (("start", "true"), "command"), (("stop", "true"), "command"),
        (("start", None, 5), "timeout_seconds"), (("stop", None, 5), "timeout_seconds"),
    ],
)  # fmt: skip
def test_parameters_that_do_not_belong_together(arguments: tuple[Any, ...], field: str) -> None:
    container = Container()
    with pytest.raises(ToolValidationError) as caught:
        run(container, *arguments)
    assert caught.value.field == field
    assert container.actions == []


def test_calls_from_many_threads_wait_for_each_other() -> None:
    container = Container(ran(0))
    (tool,) = ContainerShellTool(container).tools()
    results: list[bool] = []
    calls = [{"action": "start"}, {"action": "exec", "command": "true"}, {"action": "stop"}]

    def work() -> None:
        results.extend(tool.invoke(call).success for call in calls)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 24
