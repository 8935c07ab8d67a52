"""Resources: files of a sandbox's workspace, and kept output. Their addresses, and reading them; it blocks."""

from __future__ import annotations

import urllib.parse
from dataclasses import dataclass

from podbot.errors import FileRefused
from podbot.mcp.kept_output import KeptText
from podbot.mcp.sandbox_registry import HeldSandbox, SandboxRegistry
from podbot.mcp.workspace_port import ReadableFiles
from podbot.tools.paths import VfsPath, invalid, parse_path, path_text
from podbot.tools.rendering import rendered

SCHEME = "podbot"
FILE_BYTES = 4 << 20  # of a file that is read as a resource; each piece of it is read from its beginning
FILE_CHARS = 1 << 20  # of its text
URI_CHARS = 4096
FILE_TEMPLATE = f"{SCHEME}://{{sandbox}}/files/{{+path}}"
OUTPUT_TEMPLATE = f"{SCHEME}://{{sandbox}}/output/{{number}}"


@dataclass(frozen=True, slots=True)
class Place:
    """What an address names: a file or directory of a sandbox, or with a ``number`` kept output."""

    handle: str
    path: VfsPath = ()
    number: int | None = None


def file_uri(handle: str, path: VfsPath = ()) -> str:
    """The address of a file or directory."""
    return f"{SCHEME}://{handle}/files/{urllib.parse.quote(path_text(path))}"


def output_uri(handle: str, number: int) -> str:
    """The address of kept output."""
    return f"{SCHEME}://{handle}/output/{number}"


def parse_uri(uri: str) -> Place:
    """What an address names. Raises ToolValidationError."""
    if len(uri) > URI_CHARS:
        raise invalid("uri", uri, f"it has {len(uri):,} characters, the limit is {URI_CHARS:,}")
    begin = f"{SCHEME}://"
    handle, _, rest = uri.removeprefix(begin).partition("/")
    kind, _, name = rest.partition("/")
    if not uri.startswith(begin) or not handle or kind not in ("files", "output"):
        raise _no_resource(uri)
    if kind == "files":
        # After decoding, as the tools' paths: an escaped slash or dot gains nothing.
        return Place(handle, parse_path(f"/{urllib.parse.unquote(name)}", "uri"))
    if not (name.isascii() and name.isdigit() and len(name) < 10):
        raise _no_resource(uri)
    return Place(handle, number=int(name))


class ResourceReader:
    """The resources of a registry's sandboxes. Any thread may use it."""

    def __init__(self, registry: SandboxRegistry) -> None:
        self._registry = registry

    def listed(self, owner: str) -> tuple[tuple[HeldSandbox, tuple[KeptText, ...]], ...]:
        """The client's sandboxes, each with its kept output."""
        return tuple((held, held.outputs.listed()) for held in self._registry.listed(owner))

    def read(self, owner: str, uri: str) -> str:
        """The text of a resource: of a file, of a directory's listing, of kept output.

        Raises ToolValidationError and FileRefused, and RuntimeError subclasses when the sandbox does not answer.
        """
        place = parse_uri(uri)
        held = self._registry.find(owner, place.handle)
        if place.number is None:
            return _content(held.workspace.files, place.path)
        kept = held.outputs.get(place.number)
        if kept is None:
            raise invalid("uri", uri, "there is no such output, or it is no longer kept")
        return kept.text


def _content(files: ReadableFiles, path: VfsPath) -> str:
    """At most 1 MiB of a file's lines. Raises FileRefused for a longer one."""
    found = files.stat(path) if path else None
    if found is None or found.kind == "directory":
        return rendered(files.ls(path))
    if found.size_bytes > FILE_BYTES:
        raise _too_large(path, f"it has more than {FILE_BYTES:,} bytes")
    lines: list[str] = []
    size, offset = 0, 0
    while True:
        part = files.read(path, offset=offset)
        lines.append(part.content)
        size += len(part.content) + 1
        offset += part.limit
        if size > FILE_CHARS + 1:
            raise _too_large(path, f"it has more than {FILE_CHARS:,} characters")
        if offset >= part.total_lines or not part.limit:
            return "\n".join(lines)


def _too_large(path: VfsPath, reason: str) -> Exception:
    return FileRefused(operation="read", path=path_text(path), kind="too_large", reason=reason, hint="Use read_file.")


def _no_resource(uri: str) -> Exception:
    return invalid("uri", uri, f"resources are {FILE_TEMPLATE} and {OUTPUT_TEMPLATE}")
