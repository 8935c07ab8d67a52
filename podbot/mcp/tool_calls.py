"""Calls of the tools: which there are, and what one of them returns. They block; run them in threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from podbot.errors import ToolValidationError
from podbot.mcp.job_tools import JobTools
from podbot.mcp.keeping_shell import CAPTURED, Captured
from podbot.mcp.kept_output import KeptText
from podbot.mcp.patch_tool import Exporting, patch_tool
from podbot.mcp.sandbox_registry import HeldSandbox, SandboxRegistry
from podbot.mcp.sandbox_tools import HANDLE, SandboxTools
from podbot.mcp.workspace_port import ExportPatch
from podbot.shell.types import JobShell, StreamName
from podbot.tools.constraints import Parameter, Schema
from podbot.tools.contract import AnyTool, ToolResult
from podbot.tools.file_port import FilePort
from podbot.tools.suite import ToolSuite
from podbot.tools.tool_schema import as_json

_SANDBOX = Parameter(
    HANDLE, "The sandbox's handle, from sandbox_create; your default sandbox if missing.", nullable=True
)
_STREAMS: tuple[StreamName, ...] = ("stdout", "stderr")


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool as clients see it. ``in_sandbox``: it has a parameter ``sandbox``."""

    tool: AnyTool
    in_sandbox: bool

    @property
    def runs(self) -> bool:
        """Whether it runs what it is given, which may do all that the sandbox allows."""
        return self.tool.name in ("shell_execute", "evaluate_python", "job_start")

    @property
    def input_schema(self) -> Schema:
        """The JSON schema of its parameters."""
        schema = self.tool.input_schema
        if not self.in_sandbox:
            return schema
        properties = {"sandbox": {**_SANDBOX.schema(), "default": None}, **schema["properties"]}
        return {**schema, "properties": properties}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call returned. ``kept``: output that its result has not, of the sandbox ``handle``."""

    text: str
    value: dict[str, Any] | None
    success: bool
    handle: str = ""
    kept: tuple[KeptText, ...] = ()


class ToolCalls:
    """The tools on the sandboxes of a registry. Any thread may use it. ``export``: None leaves patch_export out."""

    def __init__(
        self, registry: SandboxRegistry, export: ExportPatch | None, *, read_only: bool, code_chars: int | None
    ) -> None:
        self._registry, self._export = registry, None if read_only else export
        # Of these only names and schemas are used: the tools of each sandbox are its own.
        nothing = cast("Any", None)
        suite = ToolSuite(cast("FilePort", nothing), nothing, code_chars=code_chars, read_only=read_only)
        within = [*suite.tools, *(() if read_only else JobTools(cast("JobShell", nothing)).tools())]
        if self._export is not None:
            within.append(patch_tool(self._export))
        whole = SandboxTools(registry, "").tools()
        every = [*(ListedTool(tool, False) for tool in whole), *(ListedTool(tool, True) for tool in within)]
        self.listed = {found.tool.name: found for found in every}

    def will_start(self, owner: str, name: str, arguments: Mapping[str, Any]) -> bool:
        """Whether the call has to start a sandbox."""
        if not self.listed[name].in_sandbox:
            return name == "sandbox_create"
        return self._registry.will_start(owner, arguments.get("sandbox"))

    def call(self, owner: str, name: str, arguments: Mapping[str, Any]) -> Outcome:
        """Call a listed tool. Arguments that are not valid are an outcome without success."""
        if not self.listed[name].in_sandbox:
            tools = {tool.name: tool for tool in SandboxTools(self._registry, owner).tools()}
            return _outcome(tools[name].invoke(arguments))
        given = dict(arguments)
        try:
            held = self._registry.find(owner, _SANDBOX.check("sandbox", given.pop("sandbox", None)))
        except ToolValidationError as error:
            return Outcome(str(error), None, success=False)
        return self._called(held, name, given)

    def _called(self, held: HeldSandbox, name: str, arguments: Mapping[str, Any]) -> Outcome:
        if name == "patch_export" and self._export is not None:
            kept: list[KeptText] = []
            exporting = Exporting(held, lambda: self._registry.is_held(held), kept.append)
            return _outcome(patch_tool(self._export, exporting).invoke(arguments), held.handle, tuple(kept))
        captured = Captured()
        token = CAPTURED.set(captured)
        try:
            result = held.tools[name].invoke(arguments)
        finally:
            CAPTURED.reset(token)
        return _outcome(result, held.handle, _kept(held, name, captured, result), captured.left_jobs)


def _kept(held: HeldSandbox, name: str, captured: Captured, result: ToolResult[Any]) -> tuple[KeptText, ...]:
    """The streams of a command of which the result has not all."""
    kept = []
    for stream in _STREAMS:
        data = bytes(captured.first[stream])
        if data and getattr(result.value, stream, None) != data.decode("utf-8", "replace"):
            kept.append(held.outputs.add(f"{stream} of {name}", data, captured.total[stream]))
    return tuple(kept)


def _outcome(
    result: ToolResult[Any], handle: str = "", kept: tuple[KeptText, ...] = (), left_jobs: Sequence[str] = ()
) -> Outcome:
    value = None if result.value is None else as_json(result.value)
    left = "".join(f"\n\nIts background processes are job {job}: see job_output and job_kill." for job in left_jobs)
    return Outcome(result.render() + left, value, result.success, handle, kept)
