from __future__ import annotations

from typing import Any

import pytest

from podbot.errors import ToolValidationError
from podbot.tools.contract import Tool, ToolContext, ToolExample, ToolResult
from podbot.tools.params import ReadFileParams
from podbot.tools.results import ReadFileResult

SEEN: list[tuple[ReadFileParams, ToolContext]] = []
RESULT = ReadFileResult("a", "x", 0, 1, 1)


def handler(params: ReadFileParams, /, *, context: ToolContext) -> ToolResult[ReadFileResult]:
    SEEN.append((params, context))
    return ToolResult.ok(RESULT, "read")


def tool(**changes: Any) -> Tool[ReadFileParams, ReadFileResult]:
    given: dict[str, Any] = {
        "name": "read", "description": "Read.", "params_type": ReadFileParams, "result_type": ReadFileResult,
        "handler": handler,
    }  # fmt: skip
    return Tool(**{**given, **changes})


def test_a_tool_checks_its_parameters_and_hands_on_the_context() -> None:
    SEEN.clear()
    context = ToolContext(session="s")
    assert tool().run(ReadFileParams("a", limit=5000), context=context).value is RESULT
    assert tool().invoke({"file_path": "b"}).success
    first, second = SEEN
    assert first == (ReadFileParams("a", limit=2000), context)
    assert second == (ReadFileParams("b"), ToolContext())


def test_wrong_parameters_are_an_error_of_run_and_a_result_of_invoke() -> None:
    with pytest.raises(ToolValidationError):
        tool().run(ReadFileParams("a", offset=-1))
    result = tool().invoke({"file_path": "a", "offset": -1})
    assert (result.success, result.value) == (False, None)
    assert result.message == "offset cannot be -1: it is at least 0"
    named = tool().invoke({"path": "a"}).message
    assert named == "read has no parameter 'path'. It has file_path, offset, limit."
    wrong: Any = "a"
    with pytest.raises(TypeError, match="ReadFileParams"):
        tool().run(wrong)


@pytest.mark.parametrize("name", ["a", "read_file", "x" * 64, "a-1"])
def test_valid_names(name: str) -> None:
    assert tool(name=name).name == name


@pytest.mark.parametrize("name", ["", "x" * 65, "Read", "a b", "é", "a\n"])
def test_names_that_are_not_valid(name: str) -> None:
    with pytest.raises(ToolValidationError):
        tool(name=name)
    with pytest.raises(ToolValidationError):
        tool(description=" \n")


def test_the_text_of_a_result() -> None:
    assert ToolResult.ok(RESULT, "read").render() == "File a, lines 1 to 1 of 1\n\n   1 | x"
    assert ToolResult.error("it failed").render() == "it failed"
    assert ToolResult.error("it failed", RESULT).render() == "it failed\n\nFile a, lines 1 to 1 of 1\n\n   1 | x"
    assert ToolResult.ok(7, "seven").render() == "seven"


def test_schemas_and_examples() -> None:
    made = tool(examples=(ToolExample("the first line", ReadFileParams("a", limit=1), RESULT),))
    assert made.input_schema["required"] == ["file_path"]
    assert "total_lines" in made.output_schema["properties"]
    assert made.examples[0].output is RESULT
