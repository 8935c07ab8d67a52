"""The public part of a sandbox's plan as JSON and back, exactly: what a session is started from again.

A field that a plan's ``repr`` leaves out holds a secret, and is left out here as well. What is read back is checked
against the types of the plan, so that a record that was changed, or another version's, is refused.
"""

from __future__ import annotations

import dataclasses
import sys
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin

from podbot.launch.resources.every import EVERY
from podbot.launch.types import ResourcePlan, SandboxPlan

_T = TypeVar("_T")
_PLAIN = (str, int, float, bool, type(None))


class NotAPlan(ValueError):
    """A document is not a plan; the message says where and why."""


def public_part(plan: SandboxPlan) -> dict[str, Any]:
    """JSON-able. Without its notes, which the operator has seen."""
    found: dict[str, Any] = _encoded(dataclasses.replace(plan, notes=()))
    return found


def plan_from(document: Mapping[str, Any]) -> SandboxPlan:
    """The plan in a record, without what is secret. Raises NotAPlan."""
    return _instance(SandboxPlan, document, "plan")


def resource_kind(name: str) -> type[Any]:
    """The class of a resource's plan: the one of its module that describes itself. Raises NotAPlan."""
    if name not in EVERY:
        raise NotAPlan(f"there is no resource {name[:40]!r}")
    module = sys.modules[EVERY[name].__module__]
    kinds = (found for found in vars(module).values() if isinstance(found, type) and hasattr(found, "described"))
    return next(found for found in kinds if found.__module__ == module.__name__)


def _encoded(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return {found.name: _encoded(getattr(value, found.name)) for found in dataclasses.fields(value) if found.repr}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: _encoded(item) for key, item in value.items()}
        return [[_encoded(key), _encoded(item)] for key, item in value.items()]
    if isinstance(value, (tuple, frozenset)):
        return [_encoded(item) for item in (sorted(value) if isinstance(value, frozenset) else value)]
    if isinstance(value, _PLAIN):
        return value
    raise TypeError(f"{type(value).__name__} has no place in a record")


def _decoded(kind: Any, value: Any, where: str) -> Any:
    origin, words = get_origin(kind), get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _of_one(words, value, where)
    if dataclasses.is_dataclass(kind):
        return _instance(typing.cast("type[Any]", kind), value, where)
    if origin in (tuple, frozenset):
        return _several(origin, words, value, where)
    if origin is not None and origin is not Literal:
        return _mapping(words, value, where)
    fits = value in words and type(value) in map(type, words) if origin is Literal else type(value) is kind
    if not fits:
        raise NotAPlan(f"{where} is not what it should be")
    return value


def _several(origin: type[tuple[Any, ...] | frozenset[Any]], words: Any, value: Any, where: str) -> Any:
    if not isinstance(value, list):
        raise NotAPlan(f"{where} is not a list")
    kinds = words if origin is tuple and words[1:] != (...,) else words[:1] * len(value)
    if len(kinds) != len(value):
        raise NotAPlan(f"{where} does not have {len(kinds)} items")
    return origin(_decoded(kind, item, where) for kind, item in zip(kinds, value, strict=True))


def _mapping(words: Any, value: Any, where: str) -> dict[Any, Any]:
    """With keys that are no text it is written as pairs, an empty one like any other."""
    pairs = list(value.items()) if isinstance(value, dict) and (words[0] is str or not value) else value
    kind = dict if words[0] is str else (dict, list)
    if not isinstance(value, kind) or any(not isinstance(pair, (list, tuple)) or len(pair) != 2 for pair in pairs):
        raise NotAPlan(f"{where} does not have names and values")
    if words[1] is ResourcePlan:
        return {name: _instance(resource_kind(name), item, f"{where}.{name}") for name, item in pairs}
    return {_decoded(words[0], key, where): _decoded(words[1], item, where) for key, item in pairs}


def _of_one(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    failure = NotAPlan(f"{where} is not what it should be")
    for kind in kinds:
        if kind is type(None):
            if value is None:
                return None
            continue
        try:
            return _decoded(kind, value, where)
        except NotAPlan as exc:
            failure = exc
    raise failure


def _instance(kind: type[_T], value: Any, where: str) -> _T:
    fields = {found.name for found in dataclasses.fields(kind) if found.repr}  # type: ignore[arg-type] # it is one
    if not isinstance(value, dict) or value.keys() != fields:
        raise NotAPlan(f"{where} does not have the fields of a {kind.__name__}")
    hints = typing.get_type_hints(kind)
    return kind(**{name: _decoded(hints[name], value[name], f"{where}.{name}") for name in fields})
