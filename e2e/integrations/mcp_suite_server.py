"""A server for MCP's conformance suite: podbot's own over HTTP, with tools that the suite calls in place of podbot's.

Run as a program: ``python -m e2e.integrations.mcp_suite_server TOKEN_FILE``. It prints its URL, and serves until it is
ended. Texts, schemas, progress, tasks and cancellation are podbot's; only what the tools do is made up.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR

from podbot import HostShell
from podbot.mcp.bearer_tokens import BearerTokens, read_tokens
from podbot.mcp.http_transport import PATH, Address, client_of_request, listening, serve_http
from podbot.mcp.protocol_server import protocol_server
from podbot.mcp.resource_reader import ResourceReader
from podbot.mcp.tool_calls import ListedTool, Outcome, ToolCalls
from podbot.tools.constraints import Text, Whole, param
from podbot.tools.contract import Handler, Tool, ToolContext, ToolResult
from podbot.tools.tool_schema import as_json

PATIENCE = 1.0  # seconds before a call becomes a task
LONG = 3  # seconds at least of a call that has to become one
TICK = 0.1  # between two reports of progress, of which the suite wants three


@dataclass(frozen=True, slots=True)
class Nothing:
    """No parameters."""


@dataclass(frozen=True, slots=True)
class Name:
    """Of ``greet``."""

    name: str = param(Text(100), "Who is greeted.")


@dataclass(frozen=True, slots=True)
class Computation:
    """Of ``slow_compute``."""

    seconds: int = param(Whole(0, 600), "How long it takes.", default=0)
    label: str = param(Text(100), "What it is for.", default="")


@dataclass(frozen=True, slots=True)
class File:
    """Of ``confirm_delete``."""

    filename: str = param(Text(100), "What would be deleted.")


@dataclass(frozen=True, slots=True)
class Said:
    """The value of each tool."""

    text: str


def _said(text: str) -> ToolResult[Said]:
    return ToolResult.ok(Said(text), text)


def _sleep(seconds: int) -> str:
    with HostShell("/") as shell:
        done = shell.execute(
            ["sleep", str(seconds)], timeout_seconds=600
        )  # a command, which a cancelled call has to end
    return f"exit code {done.exit_code}"


def _greet(params: Name, *, context: ToolContext) -> ToolResult[Said]:
    del context
    return _said(f"Hello, {params.name}!")


def _slow_compute(params: Computation, *, context: ToolContext) -> ToolResult[Said]:
    del context
    return _said(_sleep(max(LONG, params.seconds) if params.seconds else 0))


def _confirm_delete(params: File, *, context: ToolContext) -> ToolResult[Said]:
    del params, context
    return _said(_sleep(LONG))  # without a question: no task of podbot's asks one


def _failing_job(params: Nothing, *, context: ToolContext) -> ToolResult[Said]:
    del params, context
    return ToolResult.error(_sleep(LONG))


def _protocol_error_job(params: Nothing, *, context: ToolContext) -> ToolResult[Said]:
    del params, context
    raise MCPError(INTERNAL_ERROR, _sleep(LONG))


def _simple_text(params: Nothing, *, context: ToolContext) -> ToolResult[Said]:
    del params, context
    return _said("a text")


def _error(params: Nothing, *, context: ToolContext) -> ToolResult[Said]:
    del params, context
    return ToolResult.error("an error")


def _long(params: Nothing, *, context: ToolContext) -> ToolResult[Said]:
    del params, context
    return _said(_sleep(LONG))


def _tool(name: str, params: type[Any], handler: Handler[Any, Said]) -> Tool[Any, Said]:
    return Tool(name=name, description=name, params_type=params, result_type=Said, handler=handler)


class SuiteTools:
    """What ``protocol_server`` uses of ToolCalls."""

    def __init__(self) -> None:
        tools = (
            _tool("greet", Name, _greet),
            _tool("slow_compute", Computation, _slow_compute),
            _tool("confirm_delete", File, _confirm_delete),
            _tool("failing_job", Nothing, _failing_job),
            _tool("protocol_error_job", Nothing, _protocol_error_job),
            _tool("test_simple_text", Nothing, _simple_text),
            _tool("test_error_handling", Nothing, _error),
            _tool("test_tool_with_progress", Nothing, _long),
        )
        self.listed = {tool.name: ListedTool(tool, in_sandbox=False) for tool in tools}

    def will_start(self, owner: str, name: str, arguments: Mapping[str, Any]) -> bool:
        """No tool has a sandbox."""
        del owner, name, arguments
        return False

    def call(self, owner: str, name: str, arguments: Mapping[str, Any]) -> Outcome:
        """Call a listed tool."""
        del owner
        result = self.listed[name].tool.invoke(arguments)
        return Outcome(result.render(), None if result.value is None else as_json(result.value), result.success)


class NoResources:
    """What ``protocol_server`` uses of ResourceReader before a resource is read."""

    def listed(self, owner: str) -> list[Any]:
        """None."""
        del owner
        return []


def main(token_file: str) -> None:
    """Serve on a free port of loopback."""
    listener = listening(Address("127.0.0.1", 0))
    tools, resources = cast("ToolCalls", SuiteTools()), cast("ResourceReader", NoResources())
    server = protocol_server(
        tools, resources, client_of_request, sandboxed=True, read_only=False, patience=PATIENCE, tick=TICK
    )
    print(f"http://127.0.0.1:{listener.getsockname()[1]}{PATH}", flush=True)
    anyio.run(serve_http, server, BearerTokens(read_tokens(token_file)), listener)


if __name__ == "__main__":
    main(sys.argv[1])
