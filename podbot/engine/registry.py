"""The engines that podbot knows: one line each. A module is imported when its engine is asked for.

Only :mod:`podbot.api` picks one; every other room is given an engine, or facts about it.
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
    """The engine of that name. Raises InvalidValue, naming ``origin``, for one that is not known."""
    if kind not in ENGINES:
        known = ", ".join(ENGINES)
        reason = f"podbot knows no engine {kind!r}"
        raise InvalidValue(field="engine", origin=origin, reason=reason, hint=f"Engines: {known}.")
    return cast("EngineDriver", import_module(ENGINES[kind]))
