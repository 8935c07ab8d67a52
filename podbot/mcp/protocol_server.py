"""The protocol's side of the server: tools and resources behind the SDK's low-level server.

Every call runs in a thread, so one sandbox never waits for another; a cancelled call ends its command first.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from podbot._version import __version__
from podbot.errors import FileRefused, PodbotError, ToolValidationError
from podbot.mcp.request_errors import naming_errors
from podbot.mcp.resource_reader import FILE_TEMPLATE, OUTPUT_TEMPLATE, URI_CHARS, ResourceReader, file_uri, output_uri
from podbot.mcp.tasks_extension import KEPT_SECONDS, PATIENCE, OwnerOf, Tasks
from podbot.mcp.tool_calls import ListedTool, Outcome, ToolCalls
from podbot.shell.anyio_calls import in_thread

_Context = ServerRequestContext[Any, Any]
TICK_SECONDS = 2.0  # between two reports of progress
_TOOLS_TTL = 3600_000  # ms: the list never changes while a server runs

_ABOUT = """\
podbot gives you {what}. Every tool works on the files below /workspace of one sandbox. Calls without the parameter \
`sandbox` use your default sandbox, which the first call starts; that suffices for most work. Call sandbox_create for \
another one, to keep experiments apart, and pass its handle as `sandbox`. Calls in different sandboxes run at once."""
_WRITING = """\
The files are copies: changing them changes nothing on the host. When your work is done, patch_export returns it as \
a patch, and says how it is applied. read_file, glob and grep are faster than a shell. write_file only creates; \
edit_file changes. shell_execute runs a command for at most 120 seconds; job_start runs one in the background, and \
job_output reads what it prints. Output that is too long for a result is linked as a resource."""
_READING = """\
This server only reads: there are no tools that change files or run commands. Sandboxes can be made and closed."""
_SANDBOXED = "sandboxes without a network, isolated from the host"
_LOCAL = "workspaces on the host itself. Commands run without isolation, as the user's own"


def protocol_server(
    calls: ToolCalls,
    resources: ResourceReader,
    owner_of: OwnerOf,
    *,
    sandboxed: bool,
    read_only: bool,
    tick: float = TICK_SECONDS,
    patience: float = PATIENCE,
    kept: float = KEPT_SECONDS,
) -> Server[Any]:
    """A server for stdio, HTTP or a test's streams.

    ``owner_of``: the client of the present request. ``sandboxed``: for the instructions. ``tick``: seconds between
    reports of progress; ``patience``: of a call before it becomes a task; ``kept``: of a task's result.
    """
    tools = [_described(found, sandboxed=sandboxed) for found in calls.listed.values()]
    tasks = Tasks(owner_of, patience=patience, kept=kept)
    handlers = _Handlers(calls, tools, resources, owner_of, tasks, tick=tick)
    server: Server[Any] = Server(
        "podbot",
        version=__version__,
        title="podbot",
        description="Sandboxes with files, search, a shell and Python.",
        instructions=instructions(sandboxed=sandboxed, read_only=read_only),
        cache_hints={"tools/list": CacheHint(_TOOLS_TTL, "private")},
        lifespan=handlers.lifespan,
        get_tool_input_schema=handlers.input_schema,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        on_list_resources=handlers.list_resources,
        on_list_resource_templates=handlers.list_templates,
        on_read_resource=handlers.read_resource,
    )
    server.middleware.append(naming_errors)
    handlers.tasks.offer(server)
    return server


class _Handlers:
    def __init__(
        self,
        calls: ToolCalls,
        tools: list[types.Tool],
        resources: ResourceReader,
        owner_of: OwnerOf,
        tasks: Tasks,
        *,
        tick: float,
    ) -> None:
        self._calls, self._tools, self._resources = calls, tools, resources
        self._owner_of, self._tick, self.tasks = owner_of, tick, tasks

    @contextlib.asynccontextmanager
    async def lifespan(self, server: Server[Any]) -> AsyncIterator[dict[str, Any]]:
        del server
        async with self.tasks.running():
            yield {}

    def input_schema(self, name: str) -> dict[str, Any] | None:
        found = self._calls.listed.get(name)
        return None if found is None else found.input_schema

    async def list_tools(self, ctx: _Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        del ctx, params
        return types.ListToolsResult(tools=self._tools)

    async def call_tool(self, ctx: _Context, params: types.CallToolRequestParams) -> Any:
        name, arguments = params.name, params.arguments or {}
        if name not in self._calls.listed:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {name[:80]}")
        owner = self._owner_of()

        async def call() -> types.CallToolResult:
            return _result(await in_thread(lambda: self._calls.call(owner, name, arguments)))

        if self.tasks.takes(ctx):
            return await self.tasks.result_or_task(call)
        starts = self._calls.will_start(owner, name, arguments)
        return await _with_progress(ctx, call, self._tick, name, starts=starts)

    async def list_resources(
        self, ctx: _Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        del ctx, params
        found = []
        for held, kept in self._resources.listed(self._owner_of()):
            uri = file_uri(held.handle)
            name = f"workspace of {held.label or held.handle}"
            found.append(types.Resource(uri=uri, name=name, description="The files of the workspace."))
            for one in kept:
                uri = output_uri(held.handle, one.number)
                found.append(types.Resource(uri=uri, name=one.name, mime_type="text/plain", size=len(one.data)))
        return types.ListResourcesResult(resources=found)

    async def list_templates(
        self, ctx: _Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        del ctx, params
        file = types.ResourceTemplate(
            uri_template=FILE_TEMPLATE,
            name="file",
            description="A UTF-8 text file of a sandbox's workspace, or the listing of a directory.",
        )
        output = types.ResourceTemplate(
            uri_template=OUTPUT_TEMPLATE,
            name="output",
            description="Output that was too long for a tool's result.",
            mime_type="text/plain",
        )
        return types.ListResourceTemplatesResult(resource_templates=[file, output])

    async def read_resource(self, ctx: _Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
        del ctx
        owner, uri = self._owner_of(), str(params.uri)
        try:
            text = await in_thread(lambda: self._resources.read(owner, uri))
        except (ToolValidationError, FileRefused) as error:
            named = {"uri": uri} if len(uri) <= URI_CHARS else None
            raise MCPError(types.INVALID_PARAMS, str(error), named) from error
        except (PodbotError, RuntimeError) as error:
            raise MCPError(types.INTERNAL_ERROR, str(error)) from error
        content = types.TextResourceContents(uri=uri, mime_type="text/plain", text=text)
        return types.ReadResourceResult(contents=[content])


async def _with_progress(
    ctx: _Context, call: Callable[[], Awaitable[types.CallToolResult]], tick: float, name: str, *, starts: bool
) -> types.CallToolResult:
    """The call's result; meanwhile reports of how long it takes, which the SDK sends to clients that asked for them."""
    done = anyio.Event()
    outcome: list[types.CallToolResult] = []
    failure: list[Exception] = []

    async def run() -> None:
        try:
            outcome.append(await call())
        except Exception as error:  # noqa: BLE001 - raised below, outside of the group, which would wrap it
            failure.append(error)
        finally:
            done.set()

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        begin = anyio.current_time()
        if starts:
            await ctx.session.report_progress(0, None, "starting the sandbox")
        while not done.is_set():
            with anyio.move_on_after(tick):
                await done.wait()
            if not done.is_set():
                seconds = round(anyio.current_time() - begin, 3)
                await ctx.session.report_progress(seconds, None, f"{name}, {seconds:.0f} s")
    if failure:
        raise failure[0]
    return outcome[0]


def _described(found: ListedTool, *, sandboxed: bool) -> types.Tool:
    """A tool as the protocol describes it. Its world is closed, unless commands run on this host."""
    about = found.tool.annotations
    return types.Tool(
        name=found.tool.name,
        description=found.tool.description,
        input_schema=found.input_schema,
        output_schema=found.tool.output_schema,
        annotations=types.ToolAnnotations(
            read_only_hint=about.read_only,
            destructive_hint=about.destructive,
            idempotent_hint=about.idempotent,
            open_world_hint=found.runs and not sandboxed,
        ),
    )


def _result(outcome: Outcome) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(text=outcome.text)]
    for kept in outcome.kept:
        size = (
            f"{kept.total:,} bytes"
            if kept.total == len(kept.data)
            else f"the first {len(kept.data):,} of {kept.total:,} bytes"
        )
        content.append(
            types.ResourceLink(
                uri=output_uri(outcome.handle, kept.number),
                name=kept.name,
                description=f"Output that is not all in the result: {size}.",
                mime_type="text/plain",
                size=len(kept.data),
            )
        )
    return types.CallToolResult(content=content, structured_content=outcome.value, is_error=not outcome.success)


def instructions(*, sandboxed: bool, read_only: bool) -> str:
    """The text."""
    what = _SANDBOXED if sandboxed else _LOCAL
    return f"{_ABOUT.format(what=what)}\n\n{_READING if read_only else _WRITING}"
