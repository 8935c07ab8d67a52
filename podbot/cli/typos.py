"""Which command a mistyped word was meant to be. A known word of another program is not a typing mistake."""

from __future__ import annotations

from collections.abc import Collection, Iterable

# A hint to one of these is followed by a loss if it is wrong: `podbot shop` is no `podbot stop`.
ENDING = frozenset({"logout", "restart", "rm", "stop"})
_SHORTEST = 3  # letters; below it one letter makes another word: ls and ps
_SURE = 5  # letters of a word of which one other letter makes no other word; shop and stop, step and stop have four
_LONG = 6  # letters of a word that one letter more or less cannot turn into another: restart, and not stop


def command_meant(typed: str, commands: Collection[str], others: Iterable[str]) -> str:
    """The one of ``commands`` that ``typed`` is a mistyped form of, or empty.

    ``others`` are known words that are no commands. Where one of them is as likely, none is meant.
    """
    word = typed.casefold()
    known = {*commands, *others}
    for is_meant in (_is_slip, _is_near, _is_cut):
        if found := [name for name in known if is_meant(word, name)]:
            return found[0] if len(found) == 1 and found[0] in commands else ""
    return ""


def _is_slip(word: str, name: str) -> bool:
    """Two neighbouring letters in the wrong order, or one of them twice: stpo, runn. That is certain in short words."""
    pairs = range(len(word) - 1)
    swapped = any(word[:at] + word[at + 1] + word[at] + word[at + 2 :] == name for at in pairs)
    return word == name or swapped or any(word[at] == word[at + 1] and _without(word, at) == name for at in pairs)


def _is_near(word: str, name: str) -> bool:
    """One letter is missing, too many or another: confg, docter."""
    short, long = sorted((word, name), key=len)
    if len(short) < _SHORTEST:
        return False
    one_more = len(long) == len(short) + 1 and any(_without(long, at) == short for at in range(len(long)))
    if name in ENDING:
        return one_more and len(name) >= _LONG
    return one_more or (len(word) == len(name) >= _SURE and sum(a != b for a, b in zip(word, name, strict=True)) == 1)


def _is_cut(word: str, name: str) -> bool:
    """The end is missing: hist."""
    return len(word) >= _SHORTEST and name not in ENDING and name.startswith(word)


def _without(text: str, at: int) -> str:
    return text[:at] + text[at + 1 :]
