"""A suite of tools answers a model that calls a tool, or names a parameter, that there is not."""

from __future__ import annotations

import pytest

from podbot.shell import MockShell
from podbot.testing import MemoryFiles
from podbot.tools import ToolSuite, UnknownTool


def test_an_unknown_tool_is_an_error_for_a_program_and_a_result_for_a_model() -> None:
    suite = ToolSuite(MemoryFiles({"a": b"1\n"}), MockShell(), read_only=True)
    with pytest.raises(UnknownTool) as caught:
        suite.tool("rm")
    assert str(caught.value) == "there is no tool 'rm'. The tools are ls, read_file, glob, grep."
    result = suite.invoke("rm", {"path": "a"})
    assert (result.success, result.value, result.message) == (False, None, str(caught.value))


def test_a_suite_runs_its_tools_by_name() -> None:
    suite = ToolSuite(MemoryFiles({"a": b"1\n"}), MockShell())
    result = suite.invoke("read_file", {"file_path": "a"})
    assert (result.success, getattr(result.value, "content", None)) == (True, "1")
    wrong = suite.invoke("read_file", {"path": "a"})
    assert (wrong.success, wrong.render()) == (
        False,
        "read_file has no parameter 'path'. It has file_path, offset, limit.",
    )
