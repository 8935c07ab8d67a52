"""TOML inside one word of a command line."""

from __future__ import annotations

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def inline_string(text: str) -> str | None:
    """``text`` as a basic string on one line; None for a path that is not UTF-8, which TOML cannot hold."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return None
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    return f"\\u{ord(char):04X}" if char < " " or "\x7f" <= char <= "\x9f" else char
