"""The tools for whole sandboxes: sandbox_create, sandbox_list and sandbox_close."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from podbot.mcp.sandbox_registry import HeldSandbox, SandboxRegistry
from podbot.tools.constraints import Schema, Text, param
from podbot.tools.contract import AnyTool, Tool, ToolAnnotations, ToolContext, ToolResult
from podbot.tools.paths import invalid
from podbot.tools.tool_failures import settled
from podbot.tools.tool_limits import WORKSPACE

LABEL_CHARS = 80
HANDLE = Text(80, least=1, ascii_only=True)
_READS = ToolAnnotations(read_only=True, idempotent=True)


@dataclass(frozen=True, slots=True)
class _Names:
    """Some names, each at most once."""

    most: int

    def schema(self) -> Schema:
        return {"type": "array", "items": {"type": "string"}, "maxItems": self.most}

    def check(self, field: str, value: object) -> tuple[str, ...]:
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise invalid(field, value, "it is an array of strings")
        if len(value) > self.most:
            raise invalid(field, f"{len(value)} names", f"the limit is {self.most}")
        for name in value:
            if not isinstance(name, str):
                raise invalid(field, name, "it is a string")
        return tuple(value)


@dataclass(frozen=True, slots=True)
class SandboxCreateParams:
    """Of ``sandbox_create``."""

    mounts: tuple[str, ...] | None = param(
        _Names(100),
        "Which of the directories and files that this server offers are copied into it, by their names in the "
        "description; all of them if missing, none for [].",
        default=None,
        nullable=True,
    )
    label: str = param(
        Text(LABEL_CHARS, controls=""), "What it is for, shown by sandbox_list; it is not its name.", default=""
    )


@dataclass(frozen=True, slots=True)
class SandboxListParams:
    """Of ``sandbox_list``."""


@dataclass(frozen=True, slots=True)
class SandboxCloseParams:
    """Of ``sandbox_close``."""

    sandbox: str = param(HANDLE, "The handle, from sandbox_create or sandbox_list.")


@dataclass(frozen=True, slots=True)
class SandboxInfo:
    """A sandbox. ``is_default``: it is used by calls without ``sandbox``. ``mounts``: what was copied into it."""

    sandbox: str
    label: str
    is_default: bool
    is_running: bool
    workspace: str
    mounts: tuple[str, ...]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class SandboxListing:
    """The client's sandboxes, the oldest first."""

    sandboxes: tuple[SandboxInfo, ...]


@dataclass(frozen=True, slots=True)
class SandboxClosed:
    """A sandbox that is no longer there for calls."""

    sandbox: str


class SandboxTools:
    """The tools for the sandboxes of one client."""

    def __init__(self, registry: SandboxRegistry, owner: str) -> None:
        self._registry, self._owner = registry, owner

    def tools(self) -> tuple[AnyTool, ...]:
        """The tools, each under its name."""
        offered = ", ".join(mount.name for mount in self._registry.offered) or "none"
        return (
            Tool(
                name="sandbox_create",
                description="Start a new sandbox with its own files and processes, and return its handle for the "
                f"parameter sandbox of the other tools. Offered mounts: {offered}.",
                params_type=SandboxCreateParams,
                result_type=SandboxInfo,
                handler=self._create,
            ),
            Tool(
                name="sandbox_list",
                description="List your sandboxes.",
                params_type=SandboxListParams,
                result_type=SandboxListing,
                handler=self._list,
                annotations=_READS,
            ),
            Tool(
                name="sandbox_close",
                description="Remove a sandbox with all its files and processes. Export what you need before.",
                params_type=SandboxCloseParams,
                result_type=SandboxClosed,
                handler=self._close,
                annotations=ToolAnnotations(destructive=True),
            ),
        )

    def _create(self, params: SandboxCreateParams, /, *, context: ToolContext) -> ToolResult[SandboxInfo]:
        del context
        held = self._registry.create(self._owner, mounts=params.mounts, label=params.label)

        def call() -> ToolResult[SandboxInfo]:
            started = False
            try:
                held.workspace.start()
                started = True
            finally:
                if not started:
                    self._registry.close(self._owner, held.handle)
            info = _info(held)
            return ToolResult.ok(info, f"Started. {_line(info)}")

        return settled(call)

    def _list(self, params: SandboxListParams, /, *, context: ToolContext) -> ToolResult[SandboxListing]:
        del params, context
        found = tuple(map(_info, self._registry.listed(self._owner)))
        none = "There are no sandboxes. The first call without a parameter sandbox starts one."
        return ToolResult.ok(SandboxListing(found), "\n".join(map(_line, found)) or none)

    def _close(self, params: SandboxCloseParams, /, *, context: ToolContext) -> ToolResult[SandboxClosed]:
        del context

        def call() -> ToolResult[SandboxClosed]:
            held, left = self._registry.close(self._owner, params.sandbox)
            if left:
                text = f"{held.handle} was closed, and not all of it was removed: {'; '.join(left)}"
                return ToolResult(text, SandboxClosed(held.handle), success=False)
            return ToolResult.ok(SandboxClosed(held.handle), f"Removed {held.handle}.")

        return settled(call)


def _info(held: HeldSandbox) -> SandboxInfo:
    names = tuple(mount.name for mount in held.mounts)
    made = datetime.fromtimestamp(held.created_at, UTC)
    return SandboxInfo(held.handle, held.label, held.is_default, held.is_running, WORKSPACE, names, made)


def _line(info: SandboxInfo) -> str:
    words = [info.sandbox, "running" if info.is_running else "stopped"]
    if info.is_default:
        words.append("default")
    words.append(f"copies of {', '.join(info.mounts)}" if info.mounts else "no mounts")
    if info.label:
        words.append(info.label)
    return ", ".join(words)
