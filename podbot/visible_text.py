"""Shows foreign text as what it is: one line, without characters that reorder it, overwrite it or cannot be seen.

Two names that differ in such a character look the same, and one made of them looks like none. Nothing is imported but
``re``, whose patterns are compiled only for text that is not ASCII: every command shows names.
"""

from __future__ import annotations

import re

# Part of a character class. Controls from U+007F on, marks of writing direction, everything that Unicode says to ignore
# in display, and what fonts draw as a blank: fillers of Hangul and hieroglyphs, the empty Braille pattern, a note
# without a head, the place of an object. Not the joiners, which scripts and emoji need; Python's str.isprintable has
# only a part of these.
HIDDEN = (
    "\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u2800"
    "\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffc\U00013430-\U0001343f\U00013441\U00013442\U00016fe4"
    "\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
# Zero-width non-joiner, joiner, and the selector of an emoji's picture. They are invisible, so one stays only where it
# has an effect: in an emoji of several (woman, joiner, computer), after a sign that is also an emoji (a heart), and
# between letters of scripts that write with them, such as Persian and Malayalam.
_JOINERS = "\u200c\u200d\ufe0f"
_ODD = f"[{HIDDEN}{_JOINERS}]"
_EMOJI = (
    "\xa9\xae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf\u2934\u2935\u2b05-\u2b55"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_LETTERS = "\u0620-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff\u1820-\u18aa\u1b00-\u1bff\ua840-\uabff"
_VIRAMA = "\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca"  # which joins the next letter, or ends a word
_JOINED = (
    f"(?<=[{_EMOJI}])\ufe0f|(?<=[0-9#*])\ufe0f(?=\u20e3)"
    f"|(?:(?<=[{_EMOJI}])|(?<=[{_EMOJI}]\ufe0f))\u200d(?=[{_EMOJI}])"
    f"|(?<=[{_LETTERS}])[\u200c\u200d](?=[{_LETTERS}])|(?<=[{_VIRAMA}])[\u200c\u200d]"
)


def is_printable(text: str) -> bool:
    """Whether ``text`` is one line of which everything can be seen."""
    return (text.isprintable() and (text.isascii() or re.search(_ODD, text) is None)) or printable(text) == text


def is_hidden(char: str) -> bool:
    """Whether ``char`` is invisible wherever it stands. Joiners are not, because some scripts need them."""
    return re.match(f"[{HIDDEN}]", char) is not None


def printable(text: str, *, keep: str = "", instead: str | None = None) -> str:
    """``text`` on one line, with an escape such as ``\\u202e`` for each character that is not shown as itself.

    ``keep``: control characters that may stay. ``instead``: what replaces such a character, in place of its escape.
    """
    if text.isprintable() and (text.isascii() or re.search(_ODD, text) is None):
        return text
    joined = {found.start() for found in re.finditer(_JOINED, text)} if not text.isascii() else ()
    return "".join(
        char if char in keep or at in joined or _is_seen(char) else ascii(char)[1:-1] if instead is None else instead
        for at, char in enumerate(text)
    )


def _is_seen(char: str) -> bool:
    return char.isprintable() and (char.isascii() or re.match(_ODD, char) is None)
