"""The mounts of a workspace as a part of a section's text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podbot.sections.host_mounts import HostMountPreview, more_text
from podbot.tools.paths import logical_path, shown_path
from podbot.tools.rendering import counted

_NAME = 120  # characters of a name


def with_mounts(text: str, previews: Sequence[HostMountPreview]) -> str:
    """``text``, and behind it the mounts. It is added to the finished text: a name may have any ``$``."""
    return text if not previews else f"{text.rstrip()}\n\n{rendered_mounts(previews)}"


def rendered_mounts(previews: Sequence[HostMountPreview]) -> str:
    """A list of the mounts with the first names in each, one on a line."""
    return "\n".join(("Files of the host that were copied into it:", "", *_lines(previews)))


def _lines(previews: Sequence[HostMountPreview]) -> Iterator[str]:
    for preview in previews:
        segments = preview.mount_path.split("/") if preview.mount_path else ()
        slash = "/" if preview.is_directory else ""
        count = f"{counted(preview.files, 'file')}, {preview.bytes_copied:,} bytes"
        yield f"- {_shown(logical_path(segments))}{slash}, from {_shown(preview.host_path)} ({count})"
        if preview.is_directory:
            yield from (f"  - {_shown(name)}" for name in preview.entries)
            if preview.more:
                yield f"  - {more_text(preview.more)}"
            if not preview.entries:
                yield "  - <empty>"
        for note in preview.notes:
            yield f"  - skipped: {_shown(note)}"


def _shown(name: str) -> str:
    shown = shown_path(name)
    return shown if len(shown) <= _NAME else f"{shown[:_NAME]}…"
