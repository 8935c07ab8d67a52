"""The table of every configuration key, derived from the dataclasses in :mod:`podbot.config.models`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

from podbot.config import models
from podbot.frozen import Field, Frozen, fields_of

Kind = Literal["string", "boolean", "integer", "number", "list", "table", "choice"]

_TYPE_NAMES: Mapping[Kind, str] = {
    "string": "string",
    "boolean": "boolean",
    "integer": "integer",
    "number": "number",
    "list": "list of strings",
    "table": "table of strings",
}

# typing.get_type_hints would evaluate every annotation, and imports more than this table costs.
_KINDS: Mapping[str, Kind] = {
    "str": "string",
    "bool": "boolean",
    "int": "integer",
    "float": "number",
    "tuple[str, ...]": "list",
    "Mapping[str, str]": "table",
}


class Key(Frozen):
    """One key: ``dotted`` name, type, default, documentation, and the variable that sets it.

    ``optional``: unset (None) is a value. ``choices``: the members of an enumeration, else empty.
    """

    dotted: str
    kind: Kind
    optional: bool
    choices: tuple[str, ...]
    default: Any
    doc: str
    example: Any
    variable: str

    @property
    def section(self) -> str:
        """The table that contains the key; empty at top level."""
        return self.dotted.rpartition(".")[0]

    @property
    def name(self) -> str:
        """The key's name within its table."""
        return self.dotted.rpartition(".")[2]

    @property
    def type_name(self) -> str:
        """The type in words."""
        return "one of " + ", ".join(self.choices) if self.choices else _TYPE_NAMES[self.kind]


def _sections() -> Iterator[tuple[str, type[Frozen]]]:
    for name, found in fields_of(models.AppConfig).items():
        if isinstance(found.default_factory, type) and issubclass(found.default_factory, Frozen):
            yield name, found.default_factory


def _key(section: str, name: str, found: Field) -> Key:
    annotation = found.annotation
    plain = annotation.removesuffix(" | None")
    choices = () if plain in _KINDS else _choices(plain)
    dotted = f"{section}.{name}" if section else name
    return Key(
        dotted=dotted,
        kind=_KINDS.get(plain, "choice"),
        optional=plain != annotation,
        choices=choices,
        default=found.value(name),
        doc=found.metadata["doc"],
        example=found.metadata["example"],
        variable="PODBOT_" + dotted.upper().replace(".", "_"),
    )


def _choices(annotation: str) -> tuple[str, ...]:
    return models.AGENT_KINDS if annotation == "AgentKind" else get_args(getattr(models, annotation))


def _keys() -> Iterator[Key]:
    tables: dict[str, type[Frozen]] = {"": models.AppConfig, **SECTIONS}
    for section, cls in tables.items():
        for name, found in fields_of(cls).items():
            if "doc" in found.metadata:
                yield _key(section, name, found)


SECTIONS: Mapping[str, type[Frozen]] = MappingProxyType(dict(_sections()))
KEYS: Mapping[str, Key] = MappingProxyType({key.dotted: key for key in _keys()})
VARIABLES: Mapping[str, Key] = MappingProxyType({key.variable: key for key in KEYS.values()})


def nearest(word: str, candidates: Iterable[str], similarity: float = 0.6) -> str:
    """The candidate most similar to ``word``, or empty if none is similar enough. ``similarity``: see difflib."""
    import difflib

    by_shape = {candidate.casefold(): candidate for candidate in candidates}
    found = difflib.get_close_matches(word.casefold(), by_shape, n=1, cutoff=similarity)
    return by_shape[found[0]] if found else ""


def nearest_key(dotted: str) -> str:
    """The key that was probably meant by ``dotted``: one of the same name in another section, or of a similar one."""
    name = dotted.rpartition(".")[2].casefold().replace("-", "_")
    elsewhere = [key.dotted for key in KEYS.values() if key.name == name]
    if elsewhere:
        return nearest(dotted, elsewhere) or elsewhere[0]
    near = nearest(dotted, KEYS)
    if near and nearest(name, [near.rpartition(".")[2]]):  # not for a section alone: sandbox.foo is no sandbox.shm
        return near
    names = {key.name: key.dotted for key in KEYS.values()}
    return names.get(nearest(name, names), "")


def value_of(config: models.AppConfig, key: Key) -> Any:
    """The value of ``key`` in ``config``."""
    return getattr(getattr(config, key.section) if key.section else config, key.name)
