"""Frozen dataclasses without the module ``dataclasses``: the base of the values that commands load when they start.

Importing that module takes 4 ms, and for each class ``@dataclass(frozen=True)`` compiles six functions, which takes
0.25 ms. Here a class takes 0.01 ms, because all classes share the functions below (ADR 0004). To everything else a
subclass of :class:`Frozen` is a frozen dataclass: to a type checker, and to ``dataclasses.fields``, ``asdict`` and
``replace``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, dataclass_transform

if TYPE_CHECKING:
    import dataclasses
    from dataclasses import replace

__all__ = ["Field", "Frozen", "field", "fields_of", "refuse_text", "replace", "shown_argument"]

_MISSING: Any = object()
_LISTS = ("tuple[", "frozenset[")
_SHOWN = 60  # characters of a value that a message repeats


class Field:
    """One field; the meaning is that of ``dataclasses.field``. ``annotation``: as it is written."""

    def __init__(
        self,
        default: Any = _MISSING,
        default_factory: Any = _MISSING,
        *,
        repr: bool = True,  # noqa: A002 - as in dataclasses.field
        compare: bool = True,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.annotation = ""
        self.default, self.default_factory = default, default_factory
        self.repr, self.compare, self.metadata = repr, compare, metadata or {}

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is _MISSING and self.default_factory is _MISSING

    def value(self, name: str) -> Any:
        """The value of a field that is not given. Raises TypeError if it must be."""
        if self.default_factory is not _MISSING:
            return self.default_factory()
        if self.default is _MISSING:
            raise TypeError(f"missing the value of {name!r}")
        return self.default


def field(
    *,
    default: Any = _MISSING,
    default_factory: Callable[[], Any] = _MISSING,
    repr: bool = True,  # noqa: A002 - as in dataclasses.field
    compare: bool = True,
    metadata: Mapping[str, Any] | None = None,
) -> Any:
    """A field that has more than a default; see ``dataclasses.field``."""
    return Field(default, default_factory, repr=repr, compare=compare, metadata=metadata)


def fields_of(value: Frozen | type[Frozen]) -> Mapping[str, Field]:
    """The fields of a class, or of a value's class, by name and in order."""
    return value._fields


if not TYPE_CHECKING:

    def replace(value, /, **changes):
        """A copy of ``value`` with some fields changed."""
        return type(value)(**{**{name: getattr(value, name) for name in value._fields}, **changes})


_DATACLASSES: dict[type[Frozen], type] = {}  # making one takes 2 ms, and `dataclasses.replace` asks twice


class _Described:
    """An attribute by which ``dataclasses`` knows its classes. That module itself makes it, when it is first read."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, value: object, owner: type[Frozen]) -> Any:
        if owner not in _DATACLASSES:
            import dataclasses

            fields = [(name, found.annotation, _described(found)) for name, found in owner._fields.items()]
            _DATACLASSES[owner] = dataclasses.make_dataclass(owner.__name__, fields, frozen=True)
        return getattr(_DATACLASSES[owner], self._name)


def _described(found: Field) -> Any:
    import dataclasses

    options = {"default": found.default, "default_factory": found.default_factory}
    given = {name: option for name, option in options.items() if option is not _MISSING}
    return dataclasses.field(repr=found.repr, compare=found.compare, metadata=found.metadata, **given)


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Frozen:
    """The base of a frozen dataclass. ``__post_init__`` may check the fields of a new value, not change them."""

    _fields: ClassVar[Mapping[str, Field]] = {}
    _lists: ClassVar[tuple[str, ...]] = ()  # fields of which each item counts
    _elsewhere: ClassVar[Mapping[str, str]] = {}  # what a caller may take for a field: what to write instead
    if TYPE_CHECKING:
        __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]
    else:
        __dataclass_fields__ = _Described()
        __dataclass_params__ = _Described()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        fields = dict(cls._fields)
        # Not inspect.get_annotations: importing inspect costs 3 ms.
        for name, annotation in cls.__dict__.get("__annotations__", {}).items():  # noqa: RUF063
            if annotation.startswith("ClassVar"):
                continue
            found = cls.__dict__.get(name, _MISSING)
            if isinstance(found, Field):
                _set_default(cls, name, found)
            else:
                found = Field(found)
            fields[name], found.annotation = found, annotation
        cls._fields = fields
        cls._lists = tuple(name for name, found in fields.items() if found.annotation.startswith(_LISTS))
        cls.__match_args__ = tuple(fields)  # type: ignore[attr-defined,misc] # mypy derives it

    def __init__(self, *args: Any, **given: Any) -> None:
        fields = self._fields
        values = dict(zip(fields, args))  # noqa: B905 - too many are refused below, and fewer are usual
        if len(args) > len(fields) or not values.keys().isdisjoint(given) or not given.keys() <= fields.keys():
            raise TypeError(_not_fields(type(self), given))
        values |= given
        if len(values) < len(fields):
            for name in fields:
                if name not in values:
                    values[name] = fields[name].value(name)
        for name in self._lists:
            if isinstance(values[name], (str, bytes, bytearray)):
                refuse_text(f"{type(self).__name__}()", name, values[name], secret=not fields[name].repr)
        self.__dict__.update(values)
        self.__post_init__()

    def __post_init__(self) -> None:
        """Called when all fields are set."""

    def __setattr__(self, name: str, value: object) -> NoReturn:
        _refuse(name)

    def __delattr__(self, name: str) -> NoReturn:
        _refuse(name)

    def _compared(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name, found in self._fields.items() if found.compare)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frozen) or type(other) is not type(self):
            return NotImplemented
        return self._compared() == other._compared()

    def __hash__(self) -> int:
        return hash(self._compared())

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name, found in self._fields.items() if found.repr)
        return f"{type(self).__qualname__}({', '.join(shown)})"


def _set_default(cls: type[Frozen], name: str, found: Field) -> None:
    """Let the class's attribute be the default, as that of a dataclass is, rather than the description of the field."""
    if found.default is _MISSING:
        delattr(cls, name)
    else:
        setattr(cls, name, found.default)


def _refuse(name: str) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _not_fields(cls: type[Frozen], given: Mapping[str, object]) -> str:
    """What is wrong with the names of the values, of which there are too many or unknown ones."""
    names = ", ".join(cls._fields)
    for name in given:
        if name not in cls._fields:
            return f"{cls.__name__} has no field {name}. {cls._elsewhere.get(name, f'Its fields are {names}.')}"
    return f"{cls.__name__} takes the values {names}, each at most once"


def shown_argument(value: object, *, secret: bool = False) -> str:
    """A caller's wrong value, for a message: short, and without what may be secret."""
    if value is None or isinstance(value, (bool, int, float)):
        return _article(type(value).__name__) if secret and value is not None else repr(value)
    if isinstance(value, str) and not secret:
        text = repr(value)
        return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}\N{HORIZONTAL ELLIPSIS}{text[0]}"
    return "bytes" if isinstance(value, bytes) else _article(type(value).__name__)


def _article(noun: str) -> str:
    return f"a{'n' if noun[:1].lower() in 'aeiou' else ''} {noun}"


def refuse_text(call: str, name: str, value: object, *, secret: bool = False) -> None:
    """Raise TypeError if ``value`` is one text where a list of texts is expected: each character would be an item.

    ``call``: who takes it, for the message; ``secret``: it may not be repeated.
    """
    if not isinstance(value, (str, bytes, bytearray)):
        return
    last = name.rpartition(".")[2]
    items = last.replace("_", " ") if last.endswith("s") else "strings"
    shown = shown_argument(value, secret=secret)
    text, written = (f"the text {shown}", f"[{shown}]") if isinstance(value, str) and not secret else (shown, '["…"]')
    if isinstance(value, str) and last in ("command", "words") and " " in value and not secret:
        written = '["ls", "-l"], with one string for each word'
    if '"' not in written and "\\" not in written:
        written = written.replace("'", '"')
    raise TypeError(f"{call}: {name} is a list of {items}, not {text}. Write {written}.")
