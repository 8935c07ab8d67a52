"""The table of every configuration key, derived from the dataclasses in :mod:`podbot.config.models`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import Field, fields
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, get_args

from podbot.config import models

Kind = Literal["string", "boolean", "integer", "number", "list", "table", "choice"]

_TYPE_NAMES: Mapping[Kind, str] = {
    "string": "string",
    "boolean": "boolean",
    "integer": "integer",
    "number": "number",
    "list": "list of strings",
    "table": "table of strings",
}

# typing.get_type_hints would evaluate every annotation, and pulls in more than this table saves.
_KINDS: Mapping[str, Kind] = {
    "str": "string",
    "bool": "boolean",
    "int": "integer",
    "float": "number",
    "tuple[str, ...]": "list",
    "Mapping[str, str]": "table",
}


class Key(NamedTuple):
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
        """The table that the key lies in; empty at top level."""
        return self.dotted.rpartition(".")[0]

    @property
    def name(self) -> str:
        """The key's name within its table."""
        return self.dotted.rpartition(".")[2]

    @property
    def type_name(self) -> str:
        """The type in words, for people."""
        return "one of " + ", ".join(self.choices) if self.choices else _TYPE_NAMES[self.kind]


def _sections() -> Iterator[tuple[str, type]]:
    for field in fields(models.AppConfig):
        factory: Any = field.default_factory
        if hasattr(factory, "__dataclass_fields__"):
            yield field.name, factory


def _key(section: str, field: Field[Any]) -> Key:
    annotation = str(field.type)
    plain = annotation.removesuffix(" | None")
    choices = () if plain in _KINDS else _choices(plain)
    dotted = f"{section}.{field.name}" if section else field.name
    return Key(
        dotted=dotted,
        kind=_KINDS.get(plain, "choice"),
        optional=plain != annotation,
        choices=choices,
        default=field.default_factory() if callable(field.default_factory) else field.default,
        doc=field.metadata["doc"],
        example=field.metadata["example"],
        variable="PODBOT_" + dotted.upper().replace(".", "_"),
    )


def _choices(annotation: str) -> tuple[str, ...]:
    return models.AGENT_KINDS if annotation == "AgentKind" else get_args(getattr(models, annotation))


def _keys() -> Iterator[Key]:
    for section, cls in {"": models.AppConfig, **SECTIONS}.items():
        for field in fields(cls):
            if "doc" in field.metadata:
                yield _key(section, field)


SECTIONS: Mapping[str, type] = MappingProxyType(dict(_sections()))
KEYS: Mapping[str, Key] = MappingProxyType({key.dotted: key for key in _keys()})
VARIABLES: Mapping[str, Key] = MappingProxyType({key.variable: key for key in KEYS.values()})


def nearest(word: str, candidates: Iterable[str]) -> str:
    """The candidate most like ``word``, or an empty string when none is near."""
    import difflib

    by_shape = {candidate.casefold(): candidate for candidate in candidates}
    found = difflib.get_close_matches(word.casefold(), by_shape, n=1, cutoff=0.6)
    return by_shape[found[0]] if found else ""


def nearest_key(dotted: str) -> str:
    """The known key that ``dotted`` was probably meant to be: the same name in another section, or a typo."""
    name = dotted.rpartition(".")[2].casefold().replace("-", "_")
    elsewhere = [key.dotted for key in KEYS.values() if key.name == name]
    if elsewhere:
        return nearest(dotted, elsewhere) or elsewhere[0]
    near = nearest(dotted, KEYS)
    if near:
        return near
    names = {key.name: key.dotted for key in KEYS.values()}
    return names.get(nearest(name, names), "")


def value_of(config: models.AppConfig, key: Key) -> Any:
    """The value that ``config`` holds for ``key``."""
    return getattr(getattr(config, key.section) if key.section else config, key.name)
