"""JSON by the interpreter's own scanner. The module ``json`` costs 0.7 MB, because it loads ``re``."""

from __future__ import annotations

import _json

TYPE_CHECKING = False  # the module `typing` costs 0.5 MB
if TYPE_CHECKING:
    from typing import Any


class _Settings:
    """What the scanner asks for."""

    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float  # NaN and the infinities, as the module `json` does


_scan = _json.make_scanner(_Settings)  # type: ignore[arg-type]
_quoted = _json.encode_basestring_ascii


def loads(data: bytes) -> Any:
    """The value. Raises ValueError and its subclasses."""
    text = data.decode("utf-8").strip(" \t\n\r")
    try:
        value, end = _scan(text, 0)
    except StopIteration:
        raise ValueError("it is not JSON") from None
    if end != len(text):
        raise ValueError("more than one JSON value")
    return value


def dumps(value: Any) -> str:
    """ASCII. Raises TypeError for anything but texts, finite numbers, booleans, None, lists, tuples and dicts."""
    if isinstance(value, str):
        return str(_quoted(value))
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_quoted(name)}: {dumps(part)}" for name, part in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(dumps(part) for part in value) + "]"
    raise TypeError(f"{type(value).__name__} is not JSON")
