"""Errors of ``podbot cp``."""

from __future__ import annotations

from typing import ClassVar

from podbot.errors.host_files import FilesystemError


class CopyFailed(FilesystemError):
    """A file or directory was not copied, or only a part of it. ``path``: of this host, or NAME:PATH."""

    path: str
    reason: str
    hint: str = ""
    template: ClassVar[str] = "cannot copy {path}: {reason}"
    advice: ClassVar[str] = "{hint}"
