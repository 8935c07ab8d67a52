"""The tools for files: ls, read_file, write_file, edit_file, glob, grep and rm."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from podbot.tools import params as given
from podbot.tools import results
from podbot.tools.contract import AnyTool, Before, Tool, ToolAnnotations, ToolContext, ToolResult
from podbot.tools.file_port import FilePort
from podbot.tools.paths import parse_entry, parse_path, shown_path
from podbot.tools.rendering import counted
from podbot.tools.tool_failures import Concerns, settled_files

_Value = TypeVar("_Value")
_READS = ToolAnnotations(read_only=True, idempotent=True)


class FileTools:
    """The seven tools on one filesystem. ``before``: called before each use of it; its errors are the tool's.

    A path that is missing, exists already, or is of the wrong kind is a ToolValidationError, as a parameter that is not
    valid is. A pattern of ``grep`` that is not valid, a search that takes too long, and a filesystem that does not
    answer are results without success.
    """

    def __init__(self, files: FilePort, before: Before) -> None:
        self._files, self._before = files, before

    def tools(self) -> tuple[AnyTool, ...]:
        """The tools, each under its name."""
        return (
            Tool(
                name="ls",
                description="List a directory of the workspace: its entries sorted by name, at most 2,000.",
                params_type=given.ListDirectoryParams,
                result_type=results.Listing,
                handler=self._ls,
                annotations=_READS,
            ),
            Tool(
                name="read_file",
                description="Read lines of a UTF-8 text file of the workspace, at most 2,000 at a time.",
                params_type=given.ReadFileParams,
                result_type=results.ReadFileResult,
                handler=self._read_file,
                annotations=_READS,
            ),
            Tool(
                name="write_file",
                description="Create a text file in the workspace, of at most 48,000 characters. "
                "It must not exist yet: use edit_file to change a file.",
                params_type=given.WriteFileParams,
                result_type=results.WriteFile,
                handler=self._write_file,
            ),
            Tool(
                name="edit_file",
                description="Replace a text in a file of the workspace. The text must occur exactly once, "
                "unless replace_all is true.",
                params_type=given.EditFileParams,
                result_type=results.WriteFile,
                handler=self._edit_file,
                annotations=ToolAnnotations(destructive=True),
            ),
            Tool(
                name="glob",
                description="Find files of the workspace whose path matches a pattern, such as src/**/*.py; "
                "at most 2,000.",
                params_type=given.GlobParams,
                result_type=results.GlobResult,
                handler=self._glob,
                annotations=_READS,
            ),
            Tool(
                name="grep",
                description="Search the text files of the workspace, line by line, for a Python regular expression; "
                "at most 2,000 lines.",
                params_type=given.GrepParams,
                result_type=results.GrepResult,
                handler=self._grep,
                annotations=_READS,
            ),
            Tool(
                name="rm",
                description="Remove a file, a link or a directory with all that is in it from the workspace.",
                params_type=given.RemoveParams,
                result_type=results.DeleteEntry,
                handler=self._rm,
                annotations=ToolAnnotations(destructive=True),
            ),
        )

    def _ls(self, params: given.ListDirectoryParams, /, *, context: ToolContext) -> ToolResult[results.Listing]:
        del context
        path = parse_path(params.path or "")
        return self._result(
            lambda: self._files.ls(path),
            lambda found: f"{counted(len(found.entries), 'entry', 'entries')} in {shown_path(found.path)}.",
            "path",
        )

    def _read_file(
        self, params: given.ReadFileParams, /, *, context: ToolContext
    ) -> ToolResult[results.ReadFileResult]:
        del context
        path = parse_entry(params.file_path, "file_path")
        return self._result(
            lambda: self._files.read(path, offset=params.offset, limit=params.limit),
            lambda found: f"{found.limit:,} of {found.total_lines:,} lines of {shown_path(found.path)}.",
            "file_path",
        )

    def _write_file(self, params: given.WriteFileParams, /, *, context: ToolContext) -> ToolResult[results.WriteFile]:
        del context
        path = parse_entry(params.file_path, "file_path")
        return self._result(
            lambda: self._files.write(path, params.content),
            lambda written: f"Created {shown_path(written.path)}.",
            "file_path",
        )

    def _edit_file(self, params: given.EditFileParams, /, *, context: ToolContext) -> ToolResult[results.WriteFile]:
        del context
        path = parse_entry(params.file_path, "file_path")
        return self._result(
            lambda: self._files.edit(path, params.old_string, params.new_string, replace_all=params.replace_all),
            lambda edited: f"{counted(edited.replacements, 'replacement')} in {shown_path(edited.path)}.",
            "file_path",
            dict.fromkeys(("no_match", "several_matches"), ("old_string", params.old_string)),
        )

    def _glob(self, params: given.GlobParams, /, *, context: ToolContext) -> ToolResult[results.GlobResult]:
        del context
        path = parse_path(params.path)
        return self._result(
            lambda: self._files.glob(params.pattern, path),
            lambda found: f"{counted(len(found.matches), 'file')} found.",
            "path",
            {"bad_pattern": ("pattern", params.pattern)},
        )

    def _grep(self, params: given.GrepParams, /, *, context: ToolContext) -> ToolResult[results.GrepResult]:
        del context
        path = parse_path(params.path or "")
        return self._result(
            lambda: self._files.grep(params.pattern, path, glob=params.glob),
            lambda found: f"{counted(len(found.matches), 'line')} found.",
            "path",
            {"bad_pattern": None},
        )

    def _rm(self, params: given.RemoveParams, /, *, context: ToolContext) -> ToolResult[results.DeleteEntry]:
        del context
        path = parse_entry(params.path)
        return self._result(
            lambda: self._files.rm(path), lambda removed: f"Removed {shown_path(removed.path)}.", "path"
        )

    def _result(
        self,
        use: Callable[[], _Value],
        message: Callable[[_Value], str],
        path: str,
        concerns: Concerns | None = None,
    ) -> ToolResult[_Value]:
        """``path`` and ``concerns``: see :func:`~podbot.tools.tool_failures.settled_files`."""

        def call() -> ToolResult[_Value]:
            self._before()
            value = use()
            return ToolResult.ok(value, message(value))

        return settled_files(call, path, concerns)
