"""Which agents there are: each module of this package but three is one, named as its kind, with its ``AGENT``.

The names cost one listing of the directory (0.03 ms); a module is loaded when its agent is asked for, because `podbot
exec` and `podbot ps` read the configuration, which has to know the names, and need nothing else of it (ADR 0025).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from podbot.agents.types import Agent, Family

AgentMode = Literal["podbot", "codex_app_server", "acp"]
Permissions = Literal["full", "ask"]

CUSTOM = "custom"  # a command of the operator's own; podbot knows nothing else of it
_OTHERS = ("__init__", "registry", "types")
_SUFFIXES = (".py", ".pyc")


@cache
def names() -> tuple[str, ...]:
    """Every kind of agent, in alphabetical order, with ``custom`` at the end."""
    found = {name for name in _modules() if name.isidentifier()} - {*_OTHERS}
    return tuple(sorted(found, key=lambda name: (name == CUSTOM, name)))


def known() -> tuple[str, ...]:
    """The kinds that podbot knows something of: all but ``custom``."""
    return tuple(name for name in names() if name != CUSTOM)


def agent(kind: str) -> Agent:
    """The agent of this kind. Raises KeyError for one that is not in :func:`names`."""
    if kind not in names():
        raise KeyError(kind)
    found: Agent = import_module(f"{__package__}.{kind}").AGENT
    return found


@cache
def agents() -> Mapping[str, Agent]:
    """Every agent by its kind, in the order of :func:`names`. Loads all of their modules."""
    return MappingProxyType({kind: agent(kind) for kind in names()})


@cache
def families() -> Mapping[str, Family]:
    """Every credential family by its name, which is the kind of the agent that writes it."""
    return MappingProxyType({kind: found.family for kind, found in agents().items() if found.family is not None})


def _modules() -> list[str]:
    """Names of this package's modules."""
    directory = os.path.dirname(__file__)
    try:
        files = os.listdir(directory)
    except NotADirectoryError:  # podbot is run from a zip file
        from pkgutil import iter_modules

        return [module.name for module in iter_modules([directory])]
    return [name.rpartition(".")[0] for name in files if name.endswith(_SUFFIXES)]
