"""Converts a value from a TOML file, an environment string or a caller to the type of its key. Pure.

``None`` as a result means that the layer does not set the key: a blank string for an optional key
(``PODBOT_IMAGE=``) reads as unset, as it does for most programs' variables.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from podbot.config.checks import CHECKS, CHOICES, LARGEST, Refusal, check_text, parse_memory, shown
from podbot.config.schema import Key, nearest
from podbot.errors import InvalidValue

if TYPE_CHECKING:
    from podbot.config.layers import Place
    from podbot.config.models import Origin

__all__ = ["from_text", "from_value", "parse_memory", "type_name"]

_SIMILAR = 0.7  # a mistyped choice, and not another word: cursor is no custom
_SIZES = ("sandbox.memory", "sandbox.shm", "agent.frame_limit")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_TYPES = {str: "a text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "a table"}
_WANTED = {
    "string": "text",
    "choice": "text",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "list": "a list of texts",
    "table": "a table of texts",
}
_FORMS = {
    "string": 'Write it in quotes, such as "{example}".',
    "size": 'Write it with its unit and in quotes, such as "{example}".',
    "choice": "Write it in quotes.",
    "boolean": "Write true or false, without quotes.",
    "integer": "Write it in digits and without quotes, such as {example}.",
    "number": "Write it in digits and without quotes, such as {example}.",
    "list": 'Write a list, such as ["a", "b"].',
    "table": 'Write a table, such as { NAME = "value" }.',
}


def from_value(key: Key, value: object, origin: Origin | Place) -> Any:
    """Convert a TOML value, or a caller's, to the key's type. Raises InvalidValue."""
    try:
        return _checked(key, _typed(key, value))
    except Refusal as refusal:
        raise _invalid(key, origin, refusal) from None


def from_text(key: Key, text: str, origin: Origin) -> Any:
    """Convert an environment string to the key's type. Raises InvalidValue.

    Lists are comma-separated, tables are ``name=value`` pairs; a comma cannot be escaped in either.
    """
    if key.optional and not text.strip():
        return None
    try:
        return _checked(key, _typed(key, _parsed(key, text)))
    except Refusal as refusal:
        raise _invalid(key, origin, refusal) from None


def type_name(value: object) -> str:
    """The type of a TOML value in words."""
    kind = type(value)
    return _TYPES.get(kind) or ("a date or time" if kind.__module__ == "datetime" else f"a {kind.__name__}")


def _invalid(key: Key, origin: Origin | Place, refusal: Refusal) -> InvalidValue:
    return InvalidValue(field=key.dotted, origin=str(origin), reason=refusal.reason, hint=refusal.hint)


def _parsed(key: Key, text: str) -> object:
    match key.kind:
        case "boolean":
            return _boolean(key, text.strip())
        case "integer" | "number":
            return _number(key, text.strip())
        case "list":
            return _items(text)
        case "table":
            return _pairs(text)
        case "choice":
            return text.strip()
        case _:
            return text


def _boolean(key: Key, text: str) -> bool:
    value = _BOOLEANS.get(text.lower())
    if value is None:
        raise Refusal(f"expected true or false, not {shown(text)}", f"Write true, false, 1 or 0. {_more(key)}".strip())
    return value


def _number(key: Key, text: str) -> object:
    # int() and float() also accept digits of other scripts and underscores, which no engine does.
    if text.isascii() and "_" not in text:
        try:
            return int(text) if key.kind == "integer" else float(text)
        except ValueError:
            pass
    raise Refusal(f"expected {_WANTED[key.kind]}, not {shown(text)}", _form(key).replace(" and without quotes", ""))


def _items(text: str) -> list[str]:
    items = [item.strip() for item in text.split(",")] if text.strip() else []
    if "" in items:
        raise Refusal("an item between commas is empty", "Write a,b,c; an empty variable is an empty list.")
    return items


def _pairs(text: str) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for number, item in enumerate(_items(text), 1):
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals or name in pairs:  # the item is not shown: its value may be a secret
            reason = f"pair {number} {'names a key twice' if equals else 'has no ='}"
            raise Refusal(reason, "Write name=value,name=value; values cannot contain a comma.")
        pairs[name] = value
    return pairs


def _typed(key: Key, value: object) -> object:
    """``value`` as the key's type. Raises Refusal. True is not 1; a whole number is a number."""
    match key.kind, value:
        case (("string" | "choice"), str()):
            return value
        case "boolean", bool():
            return value
        case "integer", int() if not isinstance(value, bool):
            return value
        case "number", (int() | float()) if not isinstance(value, bool):
            return _float(value)
        case "list", (list() | tuple()):
            return tuple(_text(item, f"item {number}") for number, item in enumerate(value, 1))
        case "table", Mapping():
            return MappingProxyType(
                {_text(k, "a name"): _text(v, f"the value of {shown(k)}") for k, v in value.items()}
            )
    raise Refusal(f"expected {_WANTED[key.kind]}, not {_found(key, value)}", _form(key))


def _found(key: Key, value: object) -> str:
    # A list or a table may hold a secret that was written as a text; a switch or a number does not.
    if isinstance(value, str) and key.kind in ("boolean", "integer", "number"):
        return f"the text {shown(value)}"
    if isinstance(value, bool):
        return str(value).lower()
    # Python cannot print a number of more than 4,300 digits (0x… in TOML).
    return f"the number {value}" if isinstance(value, int | float) and abs(value) <= LARGEST else type_name(value)


def _form(key: Key) -> str:
    form = _FORMS.get("size" if key.dotted in _SIZES else key.kind, "").replace(
        "{example}", str(key.example or key.default)
    )
    return f"{form} {_more(key)}".strip()


def _more(key: Key) -> str:
    return CHOICES.get(key.dotted, "") if key.kind == "boolean" else ""


def _float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        raise Refusal("it is out of range") from None


def _text(value: object, which: str) -> str:
    if not isinstance(value, str):
        raise Refusal(f"{which} is {type_name(value)}, not text", "Write it in quotes.")
    return value


def _checked(key: Key, value: Any) -> Any:
    for text in _texts(value):
        check_text(text)
    if isinstance(value, str) and not value.strip():
        if key.optional:
            return None
        raise Refusal("it is blank", f"Leave it out for the default, {shown(key.default)}.")
    if key.choices and value not in key.choices:
        near = nearest(value, key.choices, _SIMILAR)
        hint = f"Did you mean {near!r}?" if near else CHOICES.get(key.dotted, key.doc)
        raise Refusal(f"{shown(value)} is not one of {', '.join(key.choices)}", hint)
    check = CHECKS.get(key.dotted)
    if check:
        check(value)
    return value


def _texts(value: object) -> tuple[str, ...]:
    match value:
        case str():
            return (value,)
        case tuple():
            return value
        case Mapping():
            return (*value, *value.values())
    return ()
