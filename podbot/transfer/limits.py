"""What bounds a copy, and what is reported of it."""

from __future__ import annotations

from typing import NamedTuple

_REPORTED = 20
_OVERHEAD = 1 << 14  # bytes of an archive for one entry: its header, two names of 4096 bytes, and padding
_BEGUN = 8  # entries whose headers may be read before the first is complete
AFTER_END = 1 << 20  # bytes after the end mark, where tar fills its last block


class CopyLimits(NamedTuple):
    """``size``: bytes of all files together. ``entries``: files, directories and links."""

    size: int = 4 << 30
    entries: int = 200_000


COPY_LIMITS = CopyLimits()


class LeftOut(NamedTuple):
    """Something that was not copied. ``path``: as bytes of the file system, decoded with surrogate escapes."""

    path: str
    reason: str


class CopyReport:
    """Counts what is copied, and holds the first things that were left out."""

    def __init__(self) -> None:
        self.files = 0
        self.size = 0
        self.entries = 0
        self.left_out: list[LeftOut] = []
        self.more = 0  # things that were left out besides
        self.warnings: list[str] = []  # about the copy as a whole

    def leave_out(self, path: bytes | str, reason: str) -> None:
        """Report something that is not copied."""
        text = path if isinstance(path, str) else path.decode("utf-8", "surrogateescape")
        if len(self.left_out) < _REPORTED:
            self.left_out.append(LeftOut(text, reason))
        else:
            self.more += 1


class TooMuch(Exception):
    """A limit was reached; the message says which. ``hint``: what to do."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(reason)
        self.hint = hint


def check(report: CopyReport, limits: CopyLimits, *, coming: int = 0, directories: int = 0, archive: int = 0) -> None:
    """Raise TooMuch if the copy, with ``coming`` bytes more, is larger than allowed.

    ``directories``: that it made. ``archive``: bytes of it that were read, also those of which nothing is written.
    """
    if max(report.entries, directories) > limits.entries:
        raise TooMuch(f"it has more than {limits.entries:,} files and directories", "Copy it in parts.")
    overhead = (report.entries + _BEGUN) * _OVERHEAD
    if report.size + coming > limits.size or archive > limits.size + overhead:
        raise TooMuch(f"it has more than {limits.size:,} bytes", "Allow more bytes, or copy it in parts.")
