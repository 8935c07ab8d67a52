"""Judges names and the texts of links. Pure."""

from __future__ import annotations

import posixpath

_PLAIN = bytes(range(0x20, 0x7F))
# Bidirectional controls reorder a line.
_DIRECTIONS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f")
# These are shown as nothing or as a space, and some count as printable. The joiners and the variation selector of emoji
# (U+200C, U+200D, U+FE0F) do not deceive.
_RANGES = (
    (0xA0, 0xA0), (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x1680, 0x1680), (0x17B4, 0x17B5),
    (0x180B, 0x180F), (0x2000, 0x200B), (0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x206F), (0x2800, 0x2800),
    (0x3000, 0x3000), (0x3164, 0x3164), (0xFE00, 0xFE0E), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB),
    (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
_BLANK = frozenset(chr(code) for first, last in _RANGES for code in range(first, last + 1))


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
    if posixpath.isabs(leads):
        return not f"{posixpath.normpath(leads)}/".startswith(f"{root}/")
    return posixpath.normpath(posixpath.join(path, leads)).startswith("..")
