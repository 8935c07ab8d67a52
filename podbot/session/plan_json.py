"""Converts the public part of a sandbox's plan to JSON and back without loss, for restarting a session.

A field that a plan's ``repr`` omits holds a secret and is omitted here too. A document is checked against the plan's
types when it is read. A field that it lacks has its default, because an earlier podbot, which did not have the field,
wrote it; a document with an unknown field, of a later podbot, is refused.
"""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin

from podbot.frozen import Frozen, fields_of, replace
from podbot.launch.resources.every import EVERY
from podbot.launch.types import ResourcePlan, SandboxPlan

_FrozenT = TypeVar("_FrozenT", bound=Frozen)
_PLAIN = (str, int, float, bool, type(None))


class NotAPlan(ValueError):
    """A document is not a plan; the message says where and why."""


def public_part(plan: SandboxPlan) -> dict[str, Any]:
    """The plan as values for JSON. Its notes are omitted, because the operator has already seen them."""
    found: dict[str, Any] = _encoded(replace(plan, notes=()))
    return found


def plan_from(document: Mapping[str, Any]) -> SandboxPlan:
    """The plan in a record, without its secrets. Raises NotAPlan."""
    return _instance(SandboxPlan, document, "plan")


def resource_kind(name: str) -> type[ResourcePlan]:
    """The class of a resource's plan: the class in its module that has ``described``. Raises NotAPlan."""
    if name not in EVERY:
        raise NotAPlan(f"there is no resource {name[:40]!r}")
    module = sys.modules[EVERY[name].__module__]
    kinds = (found for found in vars(module).values() if isinstance(found, type) and hasattr(found, "described"))
    return next(found for found in kinds if found.__module__ == module.__name__)


def _encoded(value: Any) -> Any:
    if isinstance(value, Frozen):
        return {name: _encoded(getattr(value, name)) for name, found in fields_of(value).items() if found.repr}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: _encoded(item) for key, item in value.items()}
        return [[_encoded(key), _encoded(item)] for key, item in value.items()]
    if isinstance(value, (tuple, frozenset)):
        return [_encoded(item) for item in (sorted(value) if isinstance(value, frozenset) else value)]
    if isinstance(value, _PLAIN):
        return value
    raise TypeError(f"{type(value).__name__} cannot be stored in a record")


def _decoded(kind: Any, value: Any, where: str) -> Any:
    origin, words = get_origin(kind), get_args(kind)
    if origin in (typing.Union, types.UnionType):
        return _of_one(words, value, where)
    if isinstance(kind, type) and issubclass(kind, Frozen):
        return _instance(kind, value, where)
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
    """Decode a mapping. If its keys are not strings, it was written as a list of pairs, also when it is empty."""
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


def _instance(kind: type[_FrozenT], value: Any, where: str) -> _FrozenT:
    fields = {name: found for name, found in fields_of(kind).items() if found.repr}
    needed = {name for name, found in fields.items() if found.required}
    if not isinstance(value, dict) or not needed <= value.keys() <= fields.keys():
        raise NotAPlan(f"{where} does not have the fields of a {kind.__name__}")
    hints = typing.get_type_hints(kind)
    return kind(**{name: _decoded(hints[name], item, f"{where}.{name}") for name, item in value.items()})
