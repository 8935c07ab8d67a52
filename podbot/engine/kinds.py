"""The registry of engines that podbot supports, one line each. A module is imported only when its engine is used.

Only :mod:`podbot.api` selects one; every other room gets an engine, or facts about it, as an argument.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, cast

from podbot.errors import InvalidValue

if TYPE_CHECKING:
    from podbot.engine.driver import EngineDriver

ENGINES = {
    "podman": "podbot.engine.podman.driver",
}


def driver(kind: str, origin: str) -> EngineDriver:
    """The driver of the engine ``kind``. Raises InvalidValue, naming ``origin``, for an unknown one."""
    if kind not in ENGINES:
        known = ", ".join(ENGINES)
        reason = f"unknown engine {kind!r}"
        raise InvalidValue(field="engine", origin=origin, reason=reason, hint=f"Write {known}, the default.")
    return cast("EngineDriver", import_module(ENGINES[kind]))
