"""Workspaces for prompts of the library weakincentives: ``from podbot.harness.weakincentives import PodbotSection``.

Needs ``podbot[weakincentives]``; without it, and on a Python that the library's extra does not support, the import
raises ExtraUnusable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podbot.harness.weakincentives_section import PodbotSection

__all__ = ["PodbotSection"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from podbot.harness.weakincentives_library import check_library

    check_library()
    from podbot.harness import weakincentives_section

    return weakincentives_section.PodbotSection


def __dir__() -> list[str]:
    return sorted(__all__)
