"""Each limit of each parameter, one over and one under."""

from __future__ import annotations

from typing import Any

import pytest

from podbot.errors import ToolValidationError
from podbot.tools import params
from podbot.tools.tool_schema import checked, parsed

FILE = {"file_path": "a"}
SHELL: Any = params.ShellExecuteParams
PODMAN: Any = params.PodmanShellParams
ASTRAL = "\U0001f600"


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        (params.ListDirectoryParams, {}), (params.ListDirectoryParams, {"path": None}),
        (params.ReadFileParams, {**FILE, "offset": 0, "limit": 1}),
        (params.WriteFileParams, {**FILE, "content": ASTRAL * 48_000}),
        (params.WriteFileParams, {**FILE, "content": "with \0"}),
        (params.EditFileParams, {**FILE, "old_string": "a", "new_string": "b" * 48_000}),
        (params.EditFileParams, {**FILE, "old_string": " " * 48_000, "new_string": "", "replace_all": True}),
        (params.GlobParams, {"pattern": "*" * 4096}), (params.GrepParams, {"pattern": "é" * 4096, "glob": "*.py"}),
        (params.RemoveParams, {"path": "/workspace/a"}),
        (SHELL, {"command": ["x" * 4096]}), (SHELL, {"command": ["x", "y" * 4094]}),
        (SHELL, {"command": ["x", ""], "cwd": None, "stdin": "x" * 48_000, "env": {"A": ""}}),
        (SHELL, {"command": ["x"], "env": {f"V{n}": "" for n in range(64)}}),
        (SHELL, {"command": ["x"], "env": {"k" * 80: "lower case is kept"}}),
        (PODMAN, {"action": "exec", "command": "é" * 4096, "timeout_seconds": 1}),
        (PODMAN, {"action": "stop", "timeout_seconds": 600}),
        (params.EvalParams, {"code": "x\n\t\r" * 100_000}),
        (params.EvalParams, {"code": "é", "globals": {}, "reads": [], "writes": []}),
    ],
)  # fmt: skip
def test_up_to_the_limit(kind: type[Any], arguments: dict[str, Any]) -> None:
    made = parsed(kind, arguments)
    assert checked(made) == made
    for name, value in arguments.items():
        assert getattr(made, name) == (tuple(value) if isinstance(value, list) else value)


@pytest.mark.parametrize(
    ("kind", "arguments", "field", "limit"),
    [
        (params.ListDirectoryParams, {"path": 1}, "path", "string"),
        (params.ReadFileParams, {}, "file_path", "required"),
        (params.ReadFileParams, {"file_path": None}, "file_path", "string"),
        (params.ReadFileParams, {"file_path": "/"}, "file_path", "workspace itself"),
        (params.ReadFileParams, {**FILE, "offset": -1}, "offset", "at least 0"),
        (params.ReadFileParams, {**FILE, "limit": 0}, "limit", "at least 1"),
        (params.ReadFileParams, {**FILE, "limit": True}, "limit", "whole number"),
        (params.ReadFileParams, {**FILE, "limit": 1.0}, "limit", "whole number"),
        (params.ReadFileParams, {**FILE, "limit": "1"}, "limit", "whole number"),
        (params.WriteFileParams, {**FILE, "content": "x" * 48_001}, "content", "48000"),
        (params.WriteFileParams, {**FILE, "content": "\ud800"}, "content", "surrogate"),
        (params.EditFileParams, {**FILE, "old_string": "", "new_string": ""}, "old_string", "empty"),
        (params.EditFileParams, {**FILE, "old_string": "x" * 48_001, "new_string": ""}, "old_string", "48000"),
        (params.EditFileParams, {**FILE, "old_string": "x", "new_string": "x" * 48_001}, "new_string", "48000"),
        (params.EditFileParams, {**FILE, "old_string": "x", "new_string": "", "replace_all": 1}, "replace_all", "true"),
        (params.GlobParams, {"pattern": "*" * 4097}, "pattern", "4096"),
        (params.GlobParams, {"pattern": " "}, "pattern", "empty"),
        (params.GlobParams, {"pattern": "é"}, "pattern", "ASCII"),
        (params.GlobParams, {"pattern": "*", "path": None}, "path", "string"),
        (params.GrepParams, {"pattern": ""}, "pattern", "empty"),
        (params.GrepParams, {"pattern": "x" * 4097}, "pattern", "4096"),
        (params.GrepParams, {"pattern": "x", "glob": "a\0"}, "glob", "NUL"),
        (params.RemoveParams, {"path": ""}, "path", "workspace itself"),
        (SHELL, {"command": ["x" * 4097]}, "command", "4096"),
        (SHELL, {"command": ["x", "y" * 4095]}, "command", "4096"),
        (SHELL, {"command": []}, "command", "empty"), (SHELL, {"command": [" ", "x"]}, "command", "empty"),
        (SHELL, {"command": "ls"}, "command", "array"), (SHELL, {"command": ["x", 1]}, "command", "string"),
        (SHELL, {"command": ["é"]}, "command", "ASCII"), (SHELL, {"command": ["a\0"]}, "command", "NUL"),
        (SHELL, {"command": ["x"], "cwd": ".."}, "cwd", "segment .."),
        (SHELL, {"command": ["x"], "stdin": "x" * 48_001}, "stdin", "48000"),
        (SHELL, {"command": ["x"], "env": {f"V{n}": "" for n in range(65)}}, "env", "64"),
        (SHELL, {"command": ["x"], "env": {"k" * 81: ""}}, "env", "80"),
        (SHELL, {"command": ["x"], "env": {"é": ""}}, "env", "ASCII"),
        (SHELL, {"command": ["x"], "env": {"": ""}}, "env", "empty"),
        (SHELL, {"command": ["x"], "env": {"a=b": ""}}, "env", "="),
        (SHELL, {"command": ["x"], "env": {"a": "é"}}, "env a", "ASCII"),
        (SHELL, {"command": ["x"], "env": {"a": None}}, "env a", "string"),
        (SHELL, {"command": ["x"], "env": []}, "env", "maps"),
        (SHELL, {"command": ["x"], "timeout_seconds": float("nan")}, "timeout_seconds", "finite"),
        (SHELL, {"command": ["x"], "timeout_seconds": float("inf")}, "timeout_seconds", "finite"),
        (SHELL, {"command": ["x"], "timeout_seconds": True}, "timeout_seconds", "number"),
        (SHELL, {"command": ["x"], "timeout_seconds": "5"}, "timeout_seconds", "number"),
        (SHELL, {"command": ["x"], "capture_output": None}, "capture_output", "true"),
        (PODMAN, {"action": "restart"}, "action", "start, exec, stop"), (PODMAN, {}, "action", "required"),
        (PODMAN, {"action": ["start"]}, "action", "start, exec, stop"),
        (PODMAN, {"action": "exec", "command": "x" * 4097}, "command", "4096"),
        (PODMAN, {"action": "exec", "timeout_seconds": 0}, "timeout_seconds", "at least 1"),
        (PODMAN, {"action": "exec", "timeout_seconds": 601}, "timeout_seconds", "at most 600"),
        (PODMAN, {"action": "exec", "timeout_seconds": 1.5}, "timeout_seconds", "whole"),
        (params.EvalParams, {"code": " \n"}, "code", "empty"),
        (params.EvalParams, {"code": "a\x1b"}, "code", "control"),
        (params.EvalParams, {"code": "a\x7f"}, "code", "control"), (params.EvalParams, {"code": "a\0"}, "code", "NUL"),
        (params.EvalParams, {"code": "1", "globals": {"a": "1"}}, "globals", "must be empty"),
        (params.EvalParams, {"code": "1", "reads": ["a"]}, "reads", "must be empty"),
        (params.EvalParams, {"code": "1", "writes": [{}]}, "writes", "must be empty"),
        (params.EvalParams, {"code": "1", "writes": {}}, "writes", "must be empty"),
        (params.RemoveParams, {"path": "a", "force": True}, "parameter", "path"),
        (params.RemoveParams, ["a"], "the parameters", "JSON object"),
        (params.RemoveParams, None, "the parameters", "JSON object"),
    ],
)  # fmt: skip
def test_over_the_limit(kind: type[Any], arguments: Any, field: str, limit: str) -> None:
    with pytest.raises(ToolValidationError) as caught:
        parsed(kind, arguments)
    assert caught.value.field == field
    assert limit in caught.value.limit
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(("asked", "used"), [(0.9, 1), (1, 1), (-5, 1), (0, 1), (120, 120), (121, 120), (10**400, 120)])
def test_a_time_limit_is_clamped(asked: float, used: float) -> None:
    assert parsed(params.ShellExecuteParams, {"command": ["x"], "timeout_seconds": asked}).timeout_seconds == used


@pytest.mark.parametrize(("asked", "used"), [(1999, 1999), (2000, 2000), (2001, 2000), (10**400, 2000)])
def test_the_number_of_lines_is_clamped(asked: int, used: int) -> None:
    assert checked(params.ReadFileParams("a", limit=asked)).limit == used


def test_objects_are_checked_as_json_is() -> None:
    with pytest.raises(ToolValidationError):
        checked(params.WriteFileParams("..", ""))
    wrong: Any = params.ShellExecuteParams("ls")  # type: ignore[arg-type]
    with pytest.raises(ToolValidationError, match=r"sh.*-c"):
        checked(wrong)
    assert checked(params.ShellExecuteParams(("ls",))).timeout_seconds == 30


def test_a_value_of_a_variable_is_never_shown() -> None:
    with pytest.raises(ToolValidationError) as caught:
        parsed(params.ShellExecuteParams, {"command": ["x"], "env": {"TOKEN": "geheim-é"}})
    assert "geheim" not in str(caught.value)
    with pytest.raises(ToolValidationError) as caught:
        parsed(params.ShellExecuteParams, {"command": ["x"], "env": ["geheim"]})
    assert "geheim" not in str(caught.value)
