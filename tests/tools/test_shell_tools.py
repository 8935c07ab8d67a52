"""shell_execute and evaluate_python: what they ask of a shell, and what they make of its results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podbot.errors import CommandBlocked, InvalidCommand, InvalidWorkingDirectory, SandboxDied, ToolValidationError
from podbot.shell.host_shell import HostShell
from podbot.shell.mock_shell import MockShell
from podbot.shell.types import ExecutionResult
from podbot.testing import MemoryFiles
from podbot.tools import SUITE_SHELL_LIMITS, EvalParams, ShellExecuteParams, ToolSuite


def ran(code: int = 0, out: str = "", err: str = "", **more: Any) -> ExecutionResult:
    return ExecutionResult(code, out, err, ("x",), "/elsewhere", 0.0123, **more)


def shell_with(result: ExecutionResult | Exception) -> MockShell:
    shell = MockShell(root="/workspace", limits=SUITE_SHELL_LIMITS)
    shell.add_response("", result)
    return shell


def suite(shell: MockShell | HostShell, **options: Any) -> ToolSuite:
    return ToolSuite(MemoryFiles(), shell, **options)


def execute(shell: MockShell, /, *command: str, **params: Any) -> Any:
    return suite(shell).tool("shell_execute").run(ShellExecuteParams(command or ("x",), **params))


def evaluate(shell: MockShell | HostShell, code: str, **options: Any) -> Any:
    return suite(shell, **options).tool("evaluate_python").run(EvalParams(code))


@pytest.mark.parametrize("code", [0, 1, 127, 137])
def test_every_exit_code_is_a_success(code: int) -> None:
    result = execute(shell_with(ran(code, "out", "err", truncated=True)), "make", "it", cwd="src", env={"a": "b"})
    value = result.value
    assert (result.success, value.exit_code, value.stdout, value.stderr) == (True, code, "out", "err")
    assert (value.command, value.cwd, value.duration_ms) == (("make", "it"), "/workspace/src", 12)
    assert (value.timed_out, value.truncated) == (False, True)


def test_a_time_limit_is_exit_code_124() -> None:
    result = execute(shell_with(ran(-1, "partly", timed_out=True, signal=15)))
    assert (result.success, result.value.exit_code, result.value.timed_out) == (True, 124, True)
    assert result.value.stdout == "partly"
    assert "time limit" in result.message


def test_what_a_shell_is_asked() -> None:
    shell = shell_with(ran())
    execute(shell, "a", cwd=" /workspace/src//x ", env={"k": "v"}, stdin="in", timeout_seconds=500)
    execute(shell, "b", capture_output=False)
    (first, how), (_, plain) = shell.execute_calls
    assert first == ("a",)
    assert how == {
        "cwd": "src/x", "env": {"k": "v"}, "env_mode": "extend", "stdin": "in", "timeout_seconds": 120.0,
        "capture_output": True,
    }  # fmt: skip
    assert (plain["cwd"], plain["env"], plain["stdin"], plain["timeout_seconds"]) == (None, {}, None, 30.0)
    assert plain["capture_output"] is False


def test_output_that_is_not_wanted_says_so() -> None:
    value = execute(shell_with(ran(3)), capture_output=False).value
    assert (value.exit_code, value.stdout, value.stderr) == (3, "capture disabled", "capture disabled")


@pytest.mark.parametrize(
    ("cwd", "where"),
    [(None, "/workspace"), ("", "/workspace"), ("/workspace", "/workspace"), ("//workspace/a", "/workspace/a")],
)
def test_working_directories(cwd: str | None, where: str) -> None:
    assert execute(shell_with(ran()), cwd=cwd).value.cwd == where


@pytest.mark.parametrize("cwd", ["/", "/tmp", "/workspaces", "/etc/workspace", "..", "a/../b", "é"])
def test_working_directories_that_are_refused(cwd: str) -> None:
    shell = shell_with(ran())
    with pytest.raises(ToolValidationError) as caught:
        execute(shell, cwd=cwd)
    assert caught.value.field == "cwd"
    assert shell.execute_calls == []


def test_arguments_that_the_shell_refuses_are_validation_errors() -> None:
    missing = InvalidWorkingDirectory(path="/host/path/no", root="/host/path", reason="it does not exist")
    with pytest.raises(ToolValidationError) as caught:
        execute(shell_with(missing), cwd="no")
    assert str(caught.value) == "cwd cannot be '/workspace/no': it does not exist"
    wrong = InvalidCommand(field="stdin", value="9 bytes", limit="the limit is 8 bytes", hint="Less.")
    with pytest.raises(ToolValidationError, match=r"stdin cannot be 9 bytes: the limit is 8 bytes\. Less\."):
        execute(shell_with(wrong))
    with pytest.raises(ToolValidationError, match="not that"):
        execute(shell_with(ValueError("not that")))


def test_what_a_caller_cannot_correct_is_a_result_without_success() -> None:
    blocked = CommandBlocked(pattern="mkfs", found="'mkfs'", reason="it makes a filesystem")
    for error in (
        blocked,
        PermissionError("no"),
        SandboxDied(container="box", reason="it ended"),
        RuntimeError("gone"),
        OSError("pipe"),
    ):
        for result in (execute(shell_with(error)), evaluate(shell_with(error), "1")):
            assert (result.success, result.value, result.message) == (False, None, str(error))


def test_code_travels_on_stdin() -> None:
    shell = shell_with(ran(0, "1\n"))
    code = "# é\n" + "x = 1\n" * 40_000
    result = evaluate(shell, code)
    ((command, how),) = shell.execute_calls
    assert command == ["python3", "-"]
    assert (how["stdin"], how["timeout_seconds"], how["cwd"]) == (code, 5.0, None)
    value = result.value
    assert (result.success, value.stdout, value.exit_code) == (True, "1\n", 0)
    assert (value.value_repr, value.globals, value.reads, value.writes) == (None, {}, (), ())


@pytest.mark.parametrize(("size", "shown"), [(4095, 4095), (4096, 4096), (4097, 4099)])
def test_streams_are_cut_after_4096_characters(size: int, shown: int) -> None:
    for value in (
        evaluate(shell_with(ran(0, "é" * size)), "1").value.stdout,
        evaluate(shell_with(ran(1, "", "é" * size)), "1").value.stderr,
    ):
        assert len(value) == shown
        assert value.endswith("...") is (size > 4096)


def test_a_program_that_fails_is_no_success_and_its_output_is_there() -> None:
    failed = evaluate(shell_with(ran(1, "a", "Traceback")), "1")
    assert (failed.success, failed.value.exit_code, failed.value.stderr) == (False, 1, "Traceback")
    assert failed.message == "The program ended with exit code 1."
    late = evaluate(shell_with(ran(-1, "a", timed_out=True)), "1")
    assert (late.success, late.value.exit_code, late.value.timed_out) == (False, 124, True)
    memory = evaluate(shell_with(ran(137, out_of_memory=True)), "1")
    assert "memory" in memory.message
    full = evaluate(shell_with(ran(1, disk_full=True)), "1")
    assert full.message == "The program ended with exit code 1: a disk was full."
    crashed = evaluate(shell_with(ran(139, signal=11, cause="fault")), "1")
    assert crashed.message == "The program ended with exit code 139: SIGSEGV: usually a fault of the program."


@pytest.mark.parametrize(("size", "limit", "valid"), [(2000, 2000, True), (2001, 2000, False), (200_000, None, True)])
def test_the_limit_of_code(size: int, limit: int | None, *, valid: bool) -> None:
    shell = shell_with(ran())
    made = suite(shell, code_chars=limit).tool("evaluate_python")
    result = made.invoke({"code": "x" * size})
    assert result.success is valid
    assert valid or result.message == "code cannot be 2001 characters: the limit is 2000"


def test_real_programs(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("value = 7\n")
    with HostShell(tmp_path, limits=SUITE_SHELL_LIMITS) as shell:
        result = evaluate(shell, "import sys, beside\nprint(beside.value, 'é', sys.stdin.read())\nsys.exit(3)")
        assert (result.success, result.value.exit_code, result.value.stdout) == (False, 3, "7 é \n")
        long = "x = '" + "y" * 200_000 + "'\nprint(len(x))"
        assert evaluate(shell, long).value.stdout == "200000\n"
        done = suite(shell).tool("shell_execute").invoke({"command": ["pwd"], "cwd": "/workspace"})
        assert done.value is not None
        assert (done.value.stdout, done.value.cwd) == (f"{tmp_path}\n", "/workspace")
        gone = suite(shell).tool("shell_execute").invoke({"command": ["pwd"], "cwd": "gone"})
        assert (gone.success, "'/workspace/gone'" in gone.message) == (False, True)
        assert str(tmp_path) not in gone.message
