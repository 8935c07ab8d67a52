"""The suite of tools for a workspace, the same for each backend."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from podbot.errors import UnknownTool
from podbot.shell.types import Shell
from podbot.tools.contract import AnyTool, Before, ToolContext, ToolResult
from podbot.tools.file_port import FilePort
from podbot.tools.file_tools import FileTools
from podbot.tools.paths import shown_value
from podbot.tools.shell_tools import ShellTools


def _nothing() -> None:
    pass


class ToolSuite:
    """``ls read_file write_file edit_file glob grep rm shell_execute evaluate_python`` on one workspace.

    ``shell``: see :class:`~podbot.tools.shell_tools.ShellTools`; its root is the filesystem's. ``before``: called
    before each use of the workspace, to start it or to note when it was last used; its errors are the tool's.
    ``code_chars``: the most characters of ``evaluate_python``. ``read_only``: only the tools that change nothing. Any
    thread may use the tools if both may be used from any thread.
    """

    def __init__(
        self,
        files: FilePort,
        shell: Shell,
        *,
        before: Before = _nothing,
        code_chars: int | None = None,
        read_only: bool = False,
    ) -> None:
        every = (*FileTools(files, before).tools(), *ShellTools(shell, before, code_chars=code_chars).tools())
        self._tools = tuple(tool for tool in every if tool.annotations.read_only or not read_only)

    @property
    def tools(self) -> tuple[AnyTool, ...]:
        """The tools, in the order in which a prompt lists them."""
        return self._tools

    def tool(self, name: str) -> AnyTool:
        """The tool of that name. Raises UnknownTool; see :meth:`invoke` for a name that a model chose."""
        return tool_named(self._tools, name)

    def invoke(self, name: str, arguments: object, *, context: ToolContext | None = None) -> ToolResult[Any]:
        """Run the tool ``name`` with a JSON object. An unknown name is a result without success, as parameters are."""
        try:
            tool = self.tool(name)
        except UnknownTool as error:
            return ToolResult.error(str(error))
        return tool.invoke(arguments, context=context)


def tool_named(tools: Iterable[AnyTool], name: object) -> AnyTool:
    """The tool of that name. Raises UnknownTool, which lists the names."""
    known = {tool.name: tool for tool in tools}
    if isinstance(name, str) and name in known:
        return known[name]
    raise UnknownTool(field="tool", value=shown_value(name), limit=", ".join(known))
