"""Parses options in their plain spellings. Typer parses and explains everything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from podbot.cli.options import Option

_Spellings = dict[str, tuple[Option, bool]]  # as typed -> the option, and the value for a switch
_LONGEST_NUMBER = 9  # digits
# The values of a switch that podman accepts.
_BOOLEANS = dict.fromkeys(("1", "t", "T", "true", "TRUE", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "false", "FALSE", "False"), False
)


class Scan:
    """The result: each option that was given, and the words that belong to no option."""

    def __init__(self) -> None:
        self.given: dict[str, Any] = {}
        self.words: list[str] = []

    def value(self, option: Option) -> Any:
        """The value of ``option``, given or not."""
        found = self.given.get(option.name, option.absent)
        return tuple(found) if option.takes == "many" else found

    def switch(self, option: Option, *, on: bool) -> None:
        """Record an option without a value; of two that exclude each other the later one counts."""
        self.given[option.name] = self.given.get(option.name, 0) + 1 if option.takes == "count" else on

    def store(self, option: Option, text: str) -> None:
        """Record an option's value; if it takes only one, the last one counts."""
        if option.takes == "many":
            self.given.setdefault(option.name, []).append(text)
        else:
            self.given[option.name] = text


def scan(argv: Sequence[str], options: Sequence[Option], *, stop_at_word: bool) -> Scan | None:
    """Parse ``argv``; with ``stop_at_word`` everything from the first non-option word on counts as words.

    None for any other form, such as ``--``, and for a number that is not plain or out of range.
    """
    spellings = _spellings(options)
    found = Scan()
    at = 0
    while at < len(argv):
        word = argv[at]
        if word.startswith("-"):
            read = _long if word.startswith("--") else _short
            taken = read(found, word, argv[at + 1 : at + 2], spellings)
            if not taken:
                return None
            at += taken
            continue
        if stop_at_word:
            found.words += argv[at:]
            break
        found.words.append(word)
        at += 1
    return found if all(_to_number(found, option) for option in options if option.takes == "number") else None


def plain_switches(words: Sequence[str], options: Sequence[Option]) -> list[str]:
    """``words`` with switches as podman takes them, ``--tty=false`` and ``-it=0``, in the spellings of ``options``.

    Up to the first word that is no option. What is neither true nor false stays, and the parser refuses it.
    """
    spellings = _spellings(options)
    plain: list[str] = []
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] not in {"-", "--"}:
        written, values = _plain(words[at], spellings)
        plain += written + list(words[at + 1 : at + 1 + values])
        at += 1 + values
    return [*plain, *words[at:]]


def _plain(word: str, spellings: _Spellings) -> tuple[list[str], int]:
    """A word in plain spellings, and the number of words behind it that are its value."""
    name, equals, value = word.partition("=")
    names = [name] if name.startswith("--") else [f"-{letter}" for letter in name[1:]]
    for place, each in enumerate(names):
        option, on = spellings.get(each, (None, False))
        if option is None:
            break
        if option.takes not in {"nothing", "count"}:
            return [word], int(place == len(names) - 1 and not equals)
        if equals and place == len(names) - 1 and option.takes == "nothing" and on and value in _BOOLEANS:
            off = [option.off[option.spelled.index(each)]] if option.off else []
            return [*names[:-1], *([each] if _BOOLEANS[value] else off)], 0
    return [word], 0


def _spellings(options: Sequence[Option]) -> _Spellings:
    found = {spelled: (option, True) for option in options for spelled in option.spelled}
    found.update({spelled: (option, False) for option in options for spelled in option.off})
    return found


def _long(found: Scan, word: str, following: Sequence[str], spellings: _Spellings) -> int:
    """Parse ``--name``, ``--name VALUE`` or ``--name=VALUE``; returns the number of words used, 0 for another form."""
    name, equals, value = word.partition("=")
    option, on = spellings.get(name, (None, False))
    if option is None:
        return 0
    if option.takes in {"nothing", "count"}:
        found.switch(option, on=on)
        return 0 if equals else 1
    return _valued(found, option, [value] if equals else [], following)


def _short(found: Scan, word: str, following: Sequence[str], spellings: _Spellings) -> int:
    """Parse ``-d``, ``-dit``, ``-w DIR`` or ``-wDIR``, like :func:`_long`."""
    letters = word[1:]
    for at, letter in enumerate(letters, 1):
        option, on = spellings.get(f"-{letter}", (None, False))
        if option is None:
            return 0
        if option.takes not in {"nothing", "count"}:
            return _valued(found, option, [letters[at:]] if letters[at:] else [], following)
        found.switch(option, on=on)
    return 1 if letters else 0


def _valued(found: Scan, option: Option, attached: Sequence[str], following: Sequence[str]) -> int:
    for text in attached or following:
        found.store(option, text)
        return 2 - len(attached)
    return 0


def _to_number(found: Scan, option: Option) -> bool:
    """Convert a given value to a number; returns False if it must be left to Typer."""
    text = found.given.get(option.name)
    if text is None:
        return True
    if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER):
        return False
    number = found.given[option.name] = int(text)
    return (option.least is None or number >= option.least) and (option.most is None or number <= option.most)
