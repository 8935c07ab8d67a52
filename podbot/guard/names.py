"""Judges names and the texts of links. Pure."""

from __future__ import annotations

import os

_PLAIN = bytes(range(0x20, 0x7F))
# Bidirectional controls reorder a line.
_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")
# These are shown as nothing or as a space, and some count as printable. The joiners and the variation selector of emoji
# (U+200C, U+200D, U+FE0F) do not deceive.
_BLANK = frozenset(
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180e\u180f\u200b\u2028\u2029\u2060\u2061\u2062\u2063\u2064"
    "\u2800\u3164\ufeff\uffa0"
)


def are_plain(names: str) -> bool:
    """Whether none of them needs a closer look; fast for ASCII, which nearly all names are."""
    if names.isascii():
        return not names.encode().translate(None, _PLAIN)
    return names.isprintable() and _BLANK.isdisjoint(names)


def deceives(name: str) -> bool:
    """Whether a name has controls, or characters that reorder it or that nobody sees."""
    return any(char < " " or "\x7f" <= char <= "\x9f" or char in _DIRECTIONS or char in _BLANK for char in name)


def leads_out(root: str, path: str, leads: str) -> bool:
    """Whether a link's text leads out of the root. ``a/..`` counts as leading out, because ``a`` may be a link."""
    parts = leads.split("/")
    first = next((number for number, part in enumerate(parts) if part not in ("..", ".", "")), len(parts))
    if ".." in parts[first:]:
        return True
    if os.path.isabs(leads):
        return not f"{os.path.normpath(leads)}/".startswith(f"{root}/")
    return os.path.normpath(os.path.join(path, leads)).startswith("..")
