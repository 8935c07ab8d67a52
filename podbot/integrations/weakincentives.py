"""Workspaces for prompts of the library weakincentives: PodbotSection, and its files: PodbotFilesystem.

Needs ``podbot[weakincentives]``; without it, and on a Python that the library's extra does not support, the import
raises ExtraUnusable.
"""

from __future__ import annotations

import importlib.metadata
import sys
from typing import TYPE_CHECKING

from podbot.errors import ExtraUnusable

if TYPE_CHECKING:
    from podbot.integrations.weakincentives_filesystem import PodbotFilesystem, PodbotSnapshotFilesystem
    from podbot.integrations.weakincentives_section import PodbotSection, PodbotWorkspaceSection

__all__ = ["PodbotFilesystem", "PodbotSection", "PodbotSnapshotFilesystem", "PodbotWorkspaceSection"]


EXTRA = "weakincentives"
OLDEST_PYTHON = (3, 13)
SERIES = "0.27"  # what a section overrides changes between such versions


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    check_library()
    from podbot.integrations import weakincentives_filesystem, weakincentives_section

    home = weakincentives_section if name.endswith("Section") else weakincentives_filesystem
    return getattr(home, name)


def __dir__() -> list[str]:
    return sorted(__all__)


def check_library() -> None:
    """Raise ExtraUnusable unless the library is installed, in a version and on a Python that podbot was tested with."""
    try:
        version: str | None = importlib.metadata.version("weakincentives")
    except importlib.metadata.PackageNotFoundError:
        version = None
    check_versions(sys.version_info[:2], version)


def check_versions(python: tuple[int, int], version: str | None) -> None:
    """The same for versions. ``version``: the library's; None if it is not installed."""
    oldest = ".".join(map(str, OLDEST_PYTHON))
    if python < OLDEST_PYTHON:
        found = ".".join(map(str, python))
        hint = f"Use Python {oldest} or later for the program that imports it."
        raise ExtraUnusable(extra=EXTRA, reason=f"it needs Python {oldest} or later, and this is {found}", hint=hint)
    hint = ExtraUnusable.INSTALL.format(extra=EXTRA)
    if version is None:
        raise ExtraUnusable(extra=EXTRA, reason="weakincentives is not installed", hint=hint)
    if not f"{version}.".startswith(f"{SERIES}."):
        reason = f"it needs weakincentives {SERIES}, and {version} is installed"
        raise ExtraUnusable(extra=EXTRA, reason=reason, hint=hint)
