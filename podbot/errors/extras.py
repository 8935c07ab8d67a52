"""The error of an extra: a part of podbot that needs another package, which is missing or cannot be used."""

from __future__ import annotations

from typing import ClassVar

from podbot.errors.base import PodbotError


class ExtraUnusable(PodbotError, ImportError):
    """A part of podbot was imported that needs ``podbot[extra]``, whose package is missing or cannot be used.

    ``reason``: such as "weakincentives is not installed".
    """

    extra: str
    reason: str
    hint: str
    template: ClassVar[str] = "podbot[{extra}] cannot be used: {reason}"
    advice: ClassVar[str] = "{hint}"
