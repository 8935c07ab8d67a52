"""What is decided without the library weakincentives: whether it can be used, and how it gets tools' parameters."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import sys
import typing

import pytest

from podbot.errors import ExtraUnusable, PodbotError
from podbot.integrations.weakincentives import check_versions
from podbot.integrations.weakincentives_params import parameter_guide, with_whole_numbers
from podbot.shell.mock_shell import MockShell
from podbot.testing import MemoryFiles
from podbot.tools import ToolSuite
from podbot.tools.params import EvalParams, ShellExecuteParams
from podbot.tools.tool_schema import input_schema

SUITE = ToolSuite(MemoryFiles(), MockShell())


@pytest.mark.parametrize("version", ["0.27.0", "0.27.13", "0.27", "0.27.1rc1"])
def test_the_version_that_podbot_was_tested_with(version: str) -> None:
    check_versions((3, 13), version)
    check_versions((3, 14), version)


@pytest.mark.parametrize(
    ("python", "version", "reason", "remedy"),
    [
        ((3, 11), None, "it needs Python 3.13 or later, and this is 3.11", "Use Python 3.13"),
        ((3, 12), "0.27.0", "it needs Python 3.13 or later, and this is 3.12", "Use Python 3.13"),
        ((3, 13), None, "weakincentives is not installed", "from a clone of podbot: pip install '.[weakincentives]'"),
        ((3, 13), "0.28.0", "it needs weakincentives 0.27, and 0.28.0 is installed", "pip install"),
        ((3, 13), "0.270.0", "it needs weakincentives 0.27, and 0.270.0 is installed", "pip install"),
        ((3, 14), "1.0", "it needs weakincentives 0.27, and 1.0 is installed", "pip install"),
    ],
)
def test_what_cannot_be_used_is_one_error_with_a_remedy(
    python: tuple[int, int], version: str | None, reason: str, remedy: str
) -> None:
    with pytest.raises(ExtraUnusable) as caught:
        check_versions(python, version)
    assert (caught.value.extra, caught.value.reason) == ("weakincentives", reason)
    assert remedy in caught.value.remedy
    assert isinstance(caught.value, PodbotError)
    assert isinstance(caught.value, ImportError)


def installed() -> bool:
    try:
        return bool(importlib.metadata.version("weakincentives"))
    except importlib.metadata.PackageNotFoundError:
        return False


def test_an_import_without_the_extra_says_so() -> None:
    import podbot.integrations.weakincentives as adapter

    assert dir(adapter) == ["PodbotFilesystem", "PodbotSection", "PodbotSnapshotFilesystem", "PodbotWorkspaceSection"]
    with pytest.raises(AttributeError, match="Nothing"):
        adapter.Nothing  # noqa: B018
    if not installed() or sys.version_info < (3, 13):
        with pytest.raises(ExtraUnusable, match=r"podbot\[weakincentives\] cannot be used"):
            from podbot.integrations.weakincentives import PodbotSection  # noqa: F401


@pytest.mark.parametrize("tool", SUITE.tools, ids=lambda tool: tool.name)
def test_the_library_accepts_descriptions_of_200_ascii_characters(tool: typing.Any) -> None:
    assert tool.description.isascii()
    assert len(tool.description) <= 200


def test_a_whole_number_is_a_number_of_seconds() -> None:
    wider = with_whole_numbers(ShellExecuteParams)
    assert wider.__name__ == "ShellExecuteParams"
    assert issubclass(wider, ShellExecuteParams)
    names = [field.name for field in dataclasses.fields(ShellExecuteParams)]
    assert [field.name for field in dataclasses.fields(wider)] == names
    assert typing.get_type_hints(wider)["timeout_seconds"] == int | float
    assert input_schema(wider) == input_schema(ShellExecuteParams)
    made = wider(("true",), timeout_seconds=5)
    assert (made.command, made.env, made.timeout_seconds) == (("true",), {}, 5)
    assert with_whole_numbers(EvalParams) is EvalParams


def test_a_tool_runs_with_the_wider_parameters() -> None:
    made = with_whole_numbers(ShellExecuteParams)(("true",), timeout_seconds=5)
    assert SUITE.tool("shell_execute").run(made).success


def test_the_guide_names_every_parameter_with_its_description() -> None:
    guide = parameter_guide(SUITE.tools)
    for tool in SUITE.tools:
        assert f"- `{tool.name}`\n" in guide
        for name, schema in tool.input_schema["properties"].items():
            assert f"  - `{name}`: {schema['description']}" in guide
