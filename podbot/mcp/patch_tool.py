"""The tool patch_export: the changes of a sandbox as a patch, and where it applies."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from podbot.mcp.kept_output import KeptText
from podbot.mcp.sandbox_registry import HeldSandbox
from podbot.mcp.workspace_port import ExportPatch
from podbot.suites import ExportedPatch, LeftOut, PatchedFile
from podbot.tools.constraints import PathText, param
from podbot.tools.contract import Tool, ToolAnnotations, ToolContext, ToolResult
from podbot.tools.paths import invalid, parse_path, shown_path
from podbot.tools.rendering import EMPTY, counted
from podbot.tools.tool_failures import settled
from podbot.tools.tool_limits import WORKSPACE

SHOWN = 50  # of what a patch leaves out, in the text
PATCH_CHARS = 64 * 1024  # of a patch in a result; all of it is kept as a resource
APPLY = 'git apply --directory="$(git rev-parse --show-prefix)"'  # without it git skips all files in a subdirectory
_ABOUT = f"""\
Return what was changed in the sandbox since its files were copied from the host, as a patch. To apply it on the host, \
save it as a file and run, in the directory that was copied: {APPLY} FILE. Plain git apply changes nothing in a \
subdirectory of a repository, and reports success. The first line says which directory the paths are relative to. \
What cannot be in the patch is listed with the reason."""


@dataclass(frozen=True, slots=True)
class PatchExportParams:
    """Of ``patch_export``."""

    mount: str | None = param(
        PathText(),
        "The name of a mount, for its changes alone, by paths relative to it; /workspace for all changes, by paths "
        "relative to the workspace. If missing: the sandbox's mount if it has only one, otherwise all changes.",
        default=None,
        nullable=True,
    )


@dataclass(frozen=True, slots=True)
class PatchResult:
    """``patch``: for ``git apply``; with ``truncated`` only its beginning. ``left_out``: what is not in it, and why.

    ``base``: the directory in the sandbox, or the mounted file, that the paths are relative to.
    """

    patch: str
    base: str
    files: tuple[PatchedFile, ...]
    left_out: tuple[LeftOut, ...]
    more_left_out: int
    truncated: bool


@dataclass(frozen=True, slots=True)
class Exporting:
    """An export. ``is_held``: whether the sandbox was not closed yet. ``keep``: gets a patch that a result has not."""

    held: HeldSandbox
    is_held: Callable[[], bool]
    keep: Callable[[KeptText], object]


def patch_tool(export: ExportPatch, exporting: Exporting | None = None) -> Tool[PatchExportParams, PatchResult]:
    """``patch_export`` for one sandbox, or for the list of tools without one."""

    def handler(params: PatchExportParams, /, *, context: ToolContext) -> ToolResult[PatchResult]:
        del context
        if exporting is None:
            raise RuntimeError("a tool without a sandbox was called")
        return settled(lambda: _exported(exporting, export, params.mount))

    return Tool(
        name="patch_export",
        description=_ABOUT,
        params_type=PatchExportParams,
        result_type=PatchResult,
        handler=handler,
        annotations=ToolAnnotations(read_only=True, idempotent=True),
    )


def _exported(exporting: Exporting, export: ExportPatch, asked: str | None) -> ToolResult[PatchResult]:
    held = exporting.held
    base = _base(held, asked)
    directory = held.workspace.directory
    found = export(held.workspace.plan, directory, mount=base) if os.path.isdir(directory) else None
    if not exporting.is_held():  # its files were being removed meanwhile, which looks like a sandbox that removed them
        raise invalid("sandbox", held.handle, "it was closed meanwhile")
    if found is None:
        nothing = PatchResult("", base or WORKSPACE, (), (), 0, truncated=False)
        return ToolResult.ok(nothing, "Nothing was changed: it has not started yet.")
    truncated = len(found.text) > PATCH_CHARS
    if truncated:
        data = found.text.encode("utf-8", "surrogateescape")
        exporting.keep(held.outputs.add("patch", data, len(data)))
    shown = _shown(found, _place(held, base), truncated=truncated)
    text = found.text[:PATCH_CHARS]
    value = PatchResult(text, base or WORKSPACE, found.files, found.left_out, found.more, truncated)
    return ToolResult.ok(value, shown)


def _base(held: HeldSandbox, asked: str | None) -> str | None:
    """The mount to export: what was asked for, or the only one; None for the whole workspace."""
    names = [mount.name for mount in held.mounts]
    if asked is not None:
        whole = not parse_path(asked, "mount") and WORKSPACE not in names
        return None if whole else asked
    if len(names) != 1 or names[0] == WORKSPACE:
        return None
    only = held.mounts[0]
    in_place = f"{WORKSPACE}/{os.path.basename(only.mount.host_path)}"  # relative to the workspace its path fits, too
    return None if only.root != only.mount.host_path and only.name == in_place else only.name


def _place(held: HeldSandbox, base: str | None) -> str:
    """Which directory the paths are relative to, and where they fit on the host."""
    if base is not None:
        return f"Paths are relative to {shown_path(base)}; apply it where that was copied from"
    names = [mount.name for mount in held.mounts]
    if not names:
        return f"Paths are relative to {WORKSPACE}, into which nothing was copied"
    if len(names) == 1:
        return f"Paths are relative to {WORKSPACE}; apply it in the directory that was copied"
    return (
        f"Paths are relative to {WORKSPACE}, which has {len(names)} mounts; to apply the changes, export each with "
        "the parameter mount"
    )


def _shown(found: ExportedPatch, place: str, *, truncated: bool) -> str:
    words = [f"{counted(len(found.files), 'file')} changed"]
    if truncated:
        words.append(f"this is the beginning, {PATCH_CHARS:,} of {len(found.text):,} characters")
    lines = [
        f"{', '.join(words)}. {place}.",
        *(f"left out: {shown_path(left.path)}: {left.reason}" for left in found.left_out[:SHOWN]),
    ]
    if more := found.more + len(found.left_out[SHOWN:]):
        lines.append(f"left out: {more:,} more")
    return "\n".join((*lines, "", found.text[:PATCH_CHARS] or EMPTY))
