"""Judges names and the texts of links. Pure."""

from __future__ import annotations

import posixpath

_PLAIN = bytes(range(0x20, 0x7F))
# Bytes that are no UTF-8, characters for private use and those of a newer Unicode: terminals show a sign for each.
_SIGNS = frozenset(("Cs", "Co", "Cn"))


def are_plain(names: str) -> bool:
    """Whether none of them needs a closer look; fast for ASCII, which nearly all names are."""
    if names.isascii():
        return not names.encode().translate(None, _PLAIN)
    from podbot.visible_text import is_printable  # here: it imports re

    return is_printable(names)


def deceives(name: str) -> bool:
    """Whether a name has controls, or characters that reorder it or that nobody sees."""
    import unicodedata

    from podbot.visible_text import is_hidden, is_printable

    if is_printable(name):
        return False
    shown = [char if is_hidden(char) or unicodedata.category(char) not in _SIGNS else "x" for char in name]
    return not is_printable("".join(shown))


def leads_out(root: str, path: str, leads: str) -> bool:
    """Whether a link's text leads out of the root. ``a/..`` counts as leading out, because ``a`` may be a link."""
    parts = leads.split("/")
    first = next((number for number, part in enumerate(parts) if part not in ("..", ".", "")), len(parts))
    if ".." in parts[first:]:
        return True
    if posixpath.isabs(leads):
        return not f"{posixpath.normpath(leads)}/".startswith(f"{root}/")
    return posixpath.normpath(posixpath.join(path, leads)).startswith("..")
