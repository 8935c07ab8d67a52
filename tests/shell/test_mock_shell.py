from __future__ import annotations

import pytest

from podbot.errors import CommandBlocked, ContainerNotFound
from podbot.execution.result import ExecutionResult
from podbot.shell.conformance import ShellArgumentTests
from podbot.shell.mock_shell import MockShell
from podbot.shell.shell_limits import ShellLimits
from podbot.shell.types import Shell
from podbot.shell.validator import CommandValidator


class TestMockShell(ShellArgumentTests):
    def create_shell(self) -> MockShell:
        return MockShell(root="/workspace")


BUILT = ExecutionResult(0, "Build succeeded", "", ("make", "build"), "/workspace", 5.2)


def test_it_returns_prepared_results_and_records_its_calls() -> None:
    mock = MockShell()
    mock.add_response("make build", BUILT)
    mock.add_response("make", ExecutionResult(2, "", "no rule", ("make",), "/", 0.1))
    shell: Shell = mock
    assert shell.execute(["make", "build"], timeout_seconds=5) is BUILT
    assert shell.execute("cd x && make build") is BUILT
    assert shell.execute(["make", "test"]).exit_code == 2
    assert shell.execute(["ls"], cwd="sub").cwd == "/sub"
    assert [call[0] for call in mock.execute_calls][:2] == [["make", "build"], "cd x && make build"]
    assert mock.execute_calls[0][1]["timeout_seconds"] == 5
    assert (mock.backend_name, mock.sandboxed, mock.network_enabled) == ("mock", True, False)


def test_a_default_an_error_programs_and_variables() -> None:
    default = ExecutionResult(9, "d", "", ("x",), "/", 0.0)
    mock = MockShell(default_result=default, programs={"make": "/usr/bin/make"}, variables={"PATH": "/bin"}, root="/w")
    mock.add_response("gone", ContainerNotFound(container="c"))
    assert mock.execute(["anything"]) is default
    with pytest.raises(RuntimeError):
        mock.execute(["gone"])
    assert mock.which("make").path == "/usr/bin/make"
    assert not mock.which("cc").found
    assert (mock.env().get("PATH"), mock.env().cwd) == ("/bin", "/w")
    assert mock.execute_script("make", interpreter="/bin/sh") is default
    assert mock.script_calls[0][0] == "make"


def test_what_is_blocked_is_not_recorded() -> None:
    mock = MockShell(validator=CommandValidator())
    with pytest.raises(CommandBlocked):
        mock.execute("rm -rf /")
    with pytest.raises(CommandBlocked):
        mock.execute_script("rm -rf /")
    assert mock.execute_calls == mock.script_calls == []


def test_the_limits_of_a_mock_hold_for_calls_that_name_no_time() -> None:
    mock = MockShell(limits=ShellLimits(default_timeout=5, max_timeout=10))
    assert mock.default_timeout == 5
    assert mock.execute(["make"]).success
    assert mock.execute_calls[0][1]["timeout_seconds"] == 5
    with pytest.raises(ValueError, match=r"11.*0\.1 to 10 seconds"):
        mock.execute(["make"], timeout_seconds=11)
    with pytest.raises(ValueError, match=r"700.*0\.1 to 600 seconds"):
        MockShell(limits=ShellLimits(default_timeout=700)).execute(["make"])
