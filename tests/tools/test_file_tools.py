"""The file tools over a filesystem in memory: what they hand on, return and refuse."""

from __future__ import annotations

from typing import Any

import pytest

from podbot.errors import FileRefused, SandboxDied, ToolValidationError, WorkerLost
from podbot.shell.mock_shell import MockShell
from podbot.testing import MemoryFiles
from podbot.tools import (
    DeleteEntry,
    EditFileParams,
    GrepMatch,
    GrepParams,
    ListDirectoryParams,
    ReadFileParams,
    RemoveParams,
    ToolSuite,
    WriteFileParams,
)

CONTENT = {"src/a.py": b"one\ntwo\n", "src/b.txt": b"two\n", "top": b"two two\n"}


def suite(files: Any = None, **options: Any) -> ToolSuite:
    return ToolSuite(MemoryFiles(dict(CONTENT)) if files is None else files, MockShell(root="/workspace"), **options)


def value(made: ToolSuite, name: str, /, **arguments: Any) -> Any:
    result = made.tool(name).invoke(arguments)
    assert result.success, result.message
    return result.value


def refused(made: ToolSuite, params: Any, name: str) -> ToolValidationError:
    with pytest.raises(ToolValidationError) as caught:
        made.tool(name).run(params)
    return caught.value


def test_the_nine_tools() -> None:
    tools = {tool.name: tool for tool in suite().tools}
    assert list(tools) == [
        "ls", "read_file", "write_file", "edit_file", "glob", "grep", "rm", "shell_execute", "evaluate_python"
    ]  # fmt: skip
    reading = [name for name, tool in tools.items() if tool.annotations.read_only]
    assert reading == ["ls", "read_file", "glob", "grep"]
    assert [name for name, tool in tools.items() if tool.annotations.destructive] == [
        "edit_file", "rm", "shell_execute", "evaluate_python"
    ]  # fmt: skip
    assert [tool.name for tool in suite(read_only=True).tools] == reading


def test_an_unknown_tool_is_named_with_the_known_ones() -> None:
    with pytest.raises(ToolValidationError, match=r"'remove'.*rm"):
        suite().tool("remove")
    with pytest.raises(ToolValidationError):
        suite(read_only=True).tool("rm")


def test_ls() -> None:
    assert [entry.path for entry in value(suite(), "ls").entries] == ["src", "top"]
    for path in (None, "", "/", "/workspace"):
        assert value(suite(), "ls", path=path).path == ""
    result = suite().tool("ls").run(ListDirectoryParams("/workspace/src/"))
    assert result.message == "2 entries in src."
    assert result.render().startswith("Directory src, 2 entries\n\nFILE src/a.py (8 B, v1, updated 1970-")
    assert "missing" in refused(suite(), ListDirectoryParams("missing"), "ls").value
    assert "not a directory" in refused(suite(), ListDirectoryParams("top"), "ls").limit


def test_read_file() -> None:
    assert value(suite(), "read_file", file_path="src/a.py", offset=1, limit=5).content == "two"
    assert value(suite(), "read_file", file_path="/src/a.py", offset=2).limit == 0
    result = suite().tool("read_file").run(ReadFileParams("src/a.py"))
    assert result.render() == "File src/a.py, lines 1 to 2 of 2\n\n   1 | one\n   2 | two"
    for path, reason in (("src", "not a regular file"), ("no", "does not exist")):
        error = refused(suite(), ReadFileParams(path), "read_file")
        assert (error.field, error.value) == ("file_path", repr(path))
        assert reason in error.limit
    files = MemoryFiles({"binary": b"\xff"})
    assert "UTF-8" in refused(suite(files), ReadFileParams("binary"), "read_file").limit


def test_write_file_creates_only() -> None:
    files = MemoryFiles()
    made = suite(files)
    written = value(made, "write_file", file_path="new/dir/f", content="x\r\n")
    assert (written.path, written.mode, written.size_bytes) == ("new/dir/f", "create", 3)
    error = refused(made, WriteFileParams("new/dir/f", "y"), "write_file")
    assert "already exists" in error.limit
    assert error.remedy == "Edit it, or remove it first."
    assert "not a directory" in refused(made, WriteFileParams("new/dir/f/g", ""), "write_file").limit
    assert files.content() == {"new/dir/f": b"x\r\n"}


def test_edit_file() -> None:
    files = MemoryFiles(dict(CONTENT))
    made = suite(files)
    assert value(made, "edit_file", file_path="src/a.py", old_string="one", new_string="1").replacements == 1
    absent = refused(made, EditFileParams("top", "no", ""), "edit_file")
    assert str(absent) == "old_string cannot be 'no': the text to replace does not occur in it"
    several = refused(made, EditFileParams("top", "two", ""), "edit_file")
    assert (several.field, several.limit) == ("old_string", "the text to replace occurs 2 times")
    edited = value(made, "edit_file", file_path="top", old_string="two", new_string="", replace_all=True)
    assert edited.replacements == 2
    assert refused(made, EditFileParams("no", "a", ""), "edit_file").field == "file_path"
    assert files.content() == {"src/a.py": b"1\ntwo\n", "src/b.txt": b"two\n", "top": b" \n"}


def test_glob() -> None:
    assert [match.path for match in value(suite(), "glob", pattern="**/*.py").matches] == ["src/a.py"]
    assert [match.path for match in value(suite(), "glob", pattern="*", path="src").matches] == [
        "src/a.py",
        "src/b.txt",
    ]
    result = suite().tool("glob").invoke({"pattern": "../*"})
    assert (result.success, "pattern cannot be" in result.message) == (False, True)


def test_grep() -> None:
    found = value(suite(), "grep", pattern="^two$", glob="*.txt")
    assert found.matches == (GrepMatch("src/b.txt", 1, "two"),)
    assert [match.path for match in value(suite(), "grep", pattern="two", path="src").matches] == [
        "src/a.py", "src/b.txt"
    ]  # fmt: skip
    assert value(suite(), "grep", pattern="two", path="top").matches[0].path == "top"


def test_a_bad_expression_is_a_result_without_success() -> None:
    result = suite().tool("grep").run(GrepParams("("))
    assert (result.success, result.value) == (False, None)
    assert "pattern is not valid" in result.message


def test_rm() -> None:
    files = MemoryFiles(dict(CONTENT))
    assert value(suite(files), "rm", path="src") == DeleteEntry("src", "directory", 3)
    assert list(files.content()) == ["top"]
    assert "does not exist" in refused(suite(files), RemoveParams("src"), "rm").limit
    assert "workspace itself" in refused(suite(files), RemoveParams("/workspace"), "rm").limit


class Failing:
    """A filesystem whose calls raise."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __getattr__(self, name: str) -> Any:
        def fails(*_: object, **__: object) -> None:
            raise self.error

        return fails


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("ls", {}), ("read_file", {"file_path": "a"}), ("write_file", {"file_path": "a", "content": ""}),
    ("edit_file", {"file_path": "a", "old_string": "a", "new_string": ""}), ("glob", {"pattern": "*"}),
    ("grep", {"pattern": "x"}), ("rm", {"path": "a"}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=lambda value: str(value)[:10])
def test_a_workspace_that_does_not_answer_is_a_result_without_success(name: str, arguments: dict[str, Any]) -> None:
    for error in (
        WorkerLost(where="box", reason="it ended"), SandboxDied(container="box", reason="it ended"),
        RuntimeError("gone"), OSError("disk"),
    ):  # fmt: skip
        made = suite(Failing(error))
        tool = made.tool(name)
        result = tool.run(tool.parse(arguments))
        assert (result.success, result.value, result.message) == (False, None, str(error))


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=lambda value: str(value)[:10])
def test_refusals_that_pass_are_results_and_others_are_errors(name: str, arguments: dict[str, Any]) -> None:
    for kind in ("busy", "changed", "deadline", "failed"):
        made = suite(Failing(FileRefused(operation=name, path="a", kind=kind, reason="it is so")))
        tool = made.tool(name)
        assert "it is so" in tool.run(tool.parse(arguments)).message
    for kind in ("bad_path", "denied", "link", "missing", "not_a_file", "too_large", "of a later version"):
        made = suite(Failing(FileRefused(operation=name, path="a", kind=kind, reason="it is so", hint="Do this.")))
        tool = made.tool(name)
        error = refused(made, tool.parse(arguments), name)
        assert (error.field in ("path", "file_path"), error.limit, error.remedy) == (True, "it is so", "Do this.")


def test_before_is_called_before_each_use_and_not_for_wrong_parameters() -> None:
    calls: list[int] = []
    made = suite(before=lambda: calls.append(1))
    for name, arguments in CALLS:
        made.tool(name).invoke(arguments)
    assert len(calls) == len(CALLS)
    made.tool("ls").invoke({"path": ".."})
    assert len(calls) == len(CALLS)


def test_a_workspace_that_does_not_start_is_a_result_without_success() -> None:
    def start() -> None:
        raise SandboxDied(container="box", reason="it ended")

    result = suite(before=start).tool("ls").run(ListDirectoryParams())
    assert (result.success, "box" in result.message) == (False, True)
