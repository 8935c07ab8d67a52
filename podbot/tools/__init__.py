"""The tools that agents and programs use in a workspace, inside a sandbox or on this host.

Names are loaded when they are first used: ``import podbot`` loads none of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from podbot.deferred import loader

if TYPE_CHECKING:
    from podbot.errors import FileRefused, ToolError, ToolValidationError, WorkerLost, WorkerUnavailable
    from podbot.tools.command_results import EvalResult, PodmanShellResult, ShellExecuteResult
    from podbot.tools.constraints import Schema, param
    from podbot.tools.container_shell import ContainerShell, ContainerShellTool
    from podbot.tools.contract import AnyTool, Handler, Tool, ToolAnnotations, ToolContext, ToolExample, ToolResult
    from podbot.tools.file_port import Filesystem
    from podbot.tools.params import (
        EditFileParams,
        EvalParams,
        GlobParams,
        GrepParams,
        ListDirectoryParams,
        PodmanShellParams,
        ReadFileParams,
        RemoveParams,
        ShellExecuteParams,
        WriteFileParams,
    )
    from podbot.tools.paths import VfsPath, parse_path
    from podbot.tools.rendering import rendered
    from podbot.tools.results import (
        DeleteEntry,
        FileInfo,
        GlobMatch,
        GlobResult,
        GrepMatch,
        GrepResult,
        Listing,
        ReadFileResult,
        WriteFile,
    )
    from podbot.tools.suite import ToolSuite, tool_named
    from podbot.tools.tool_limits import SUITE_SHELL_LIMITS
    from podbot.tools.tool_schema import as_json

__all__ = [
    "SUITE_SHELL_LIMITS",
    "AnyTool",
    "ContainerShell",
    "ContainerShellTool",
    "DeleteEntry",
    "EditFileParams",
    "EvalParams",
    "EvalResult",
    "FileInfo",
    "FileRefused",
    "Filesystem",
    "GlobMatch",
    "GlobParams",
    "GlobResult",
    "GrepMatch",
    "GrepParams",
    "GrepResult",
    "Handler",
    "ListDirectoryParams",
    "Listing",
    "PodmanShellParams",
    "PodmanShellResult",
    "ReadFileParams",
    "ReadFileResult",
    "RemoveParams",
    "Schema",
    "ShellExecuteParams",
    "ShellExecuteResult",
    "Tool",
    "ToolAnnotations",
    "ToolContext",
    "ToolError",
    "ToolExample",
    "ToolResult",
    "ToolSuite",
    "ToolValidationError",
    "VfsPath",
    "WorkerLost",
    "WorkerUnavailable",
    "WriteFile",
    "WriteFileParams",
    "as_json",
    "param",
    "parse_path",
    "rendered",
    "tool_named",
]

_HOME = {
    "podbot.errors": ("FileRefused", "ToolError", "ToolValidationError", "WorkerLost", "WorkerUnavailable"),
    "podbot.tools.command_results": ("EvalResult", "PodmanShellResult", "ShellExecuteResult"),
    "podbot.tools.constraints": ("Schema", "param"),
    "podbot.tools.container_shell": ("ContainerShell", "ContainerShellTool"),
    "podbot.tools.contract": (
        "AnyTool",
        "Handler",
        "Tool",
        "ToolAnnotations",
        "ToolContext",
        "ToolExample",
        "ToolResult",
    ),
    "podbot.tools.file_port": ("Filesystem",),
    "podbot.tools.params": (
        "EditFileParams",
        "EvalParams",
        "GlobParams",
        "GrepParams",
        "ListDirectoryParams",
        "PodmanShellParams",
        "ReadFileParams",
        "RemoveParams",
        "ShellExecuteParams",
        "WriteFileParams",
    ),
    "podbot.tools.paths": ("VfsPath", "parse_path"),
    "podbot.tools.rendering": ("rendered",),
    "podbot.tools.results": (
        "DeleteEntry",
        "FileInfo",
        "GlobMatch",
        "GlobResult",
        "GrepMatch",
        "GrepResult",
        "Listing",
        "ReadFileResult",
        "WriteFile",
    ),
    "podbot.tools.suite": ("ToolSuite", "tool_named"),
    "podbot.tools.tool_limits": ("SUITE_SHELL_LIMITS",),
    "podbot.tools.tool_schema": ("as_json",),
}
__getattr__ = loader(__name__, _HOME)


def __dir__() -> list[str]:
    return sorted(__all__)
