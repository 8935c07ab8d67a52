"""The scenario of each agent of ``podbot.agents``: a module of the agent's name with its ``KIND``."""

from __future__ import annotations

from importlib import import_module

from e2e.agents.kind import Kind
from podbot.agents.registry import known

KINDS: dict[str, Kind] = {name: import_module(f"{__name__}.{name}").KIND for name in known()}
