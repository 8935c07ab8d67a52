"""JSON by the interpreter's own scanner and encoder. The module ``json`` costs 0.7 MB, because it loads ``re``."""

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


def _refuse(value: object) -> Any:
    raise TypeError(f"{type(value).__name__} is not JSON")


_scan = _json.make_scanner(_Settings)  # type: ignore[arg-type]
# As `json.JSONEncoder` calls it: markers, default, encoder, indent, two separators, sort_keys, skipkeys, allow_nan.
_parts = _json.make_encoder(None, _refuse, _json.encode_basestring_ascii, None, ": ", ", ", False, False, False)


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
    """ASCII. Raises TypeError for what JSON has no form of, and ValueError for numbers that are not finite."""
    return "".join(_parts(value, 0))
