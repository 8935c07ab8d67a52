"""The list of agents: each module of this package except four is one, named like its kind, with its ``AGENT``.

Listing the directory for the names costs 0.03 ms. A module is loaded only when its agent is needed, because `podbot
exec` and `podbot ps` read the configuration, which needs only the names (ADR 0025).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from podbot.agents.definition import Agent, Family

AgentMode = Literal["podbot", "codex_app_server", "acp"]
Permissions = Literal["full", "ask"]

CUSTOM = "custom"  # the operator's own command, about which podbot knows nothing else
_OTHERS = ("__init__", "registry", "definition", "login_state")
_SUFFIXES = (".py", ".pyc")


@cache
def names() -> tuple[str, ...]:
    """Every kind of agent, in alphabetical order, with ``custom`` at the end."""
    found = {name for name in _modules() if name.isidentifier()} - {*_OTHERS}
    return tuple(sorted(found, key=lambda name: (name == CUSTOM, name)))


def known() -> tuple[str, ...]:
    """The kinds that podbot knows: all except ``custom``."""
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
