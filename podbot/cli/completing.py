"""Completion of a command line from the table of commands. Pure, and without Typer: it has 60 ms of processor time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from podbot.cli.commands import COMMANDS, GROUPS, Command
from podbot.cli.options import COMMON, HELP, VERSION, Argument, Option
from podbot.config.models import AGENT_KINDS
from podbot.visible_text import is_printable

Values = Callable[[str, str, Sequence[str]], list[str]]
"""Given the name of a kind of value, the beginning and the arguments before it: the values.

See :mod:`podbot.cli.completion`.
"""

Names = Literal["", "files", "dirs"]

_FILE_METAVARS = ("FILE", "HOST[:PATH]", "SRC")
_DIRECTORY_METAVARS = ("PATH",)


class Offer(NamedTuple):
    """What can stand in place of the last word. ``words``: each with its help or an empty text.

    ``names``: files or directories, too. ``open_ended``: the word may be continued, so no blank follows it.
    """

    words: tuple[tuple[str, str], ...] = ()
    names: Names = ""
    open_ended: bool = False


def complete(line: Sequence[str], values: Values) -> Offer:
    """What can stand in place of the last word of ``line``, which begins after the program's name."""
    *before, begun = line or [""]
    reader = _Reader()
    for word in before:
        reader.read(word)
    if reader.waiting is not None:
        return _value(reader.waiting, begun, values, reader.operands)
    if begun.startswith("-") and not reader.ended:
        name, equals, value = begun.partition("=")
        option = reader.spelled(name)
        if not equals:
            return _options(reader, begun)
        found = _value(option, value, values, reader.operands) if option is not None else Offer()
        return found._replace(words=tuple((f"{name}={word}", text) for word, text in found.words))
    if reader.command is None:
        return Offer(_commands(reader.path, begun))
    return _argument(reader, reader.command, begun, values)


class _Reader:
    """Reads words as podbot does, and keeps going after those that it would refuse."""

    def __init__(self) -> None:
        self.path: tuple[str, ...] = ()
        self.command: Command | None = None
        self.waiting: Option | None = None  # for its value
        self.operands: tuple[str, ...] = ()
        self.given: set[str] = set()  # what the values are of that options have, as `completes` has it
        self.ended = False  # podbot's options
        self.words_follow = False  # for the agent

    @property
    def options(self) -> tuple[Option, ...]:
        return COMMON if self.command is None else (*self.command.options, *self.command.common)

    def read(self, word: str) -> None:
        if self.waiting is not None:
            self.given.add(self.waiting.completes)
            self.waiting = None
        elif self.ended:
            self.operands = (*self.operands, word)
        elif word == "--":
            self.ended = True
            self.words_follow = self.command is not None and self.command.takes_words
        elif word.startswith("-") and word != "-":
            self.waiting = self._last(word)
        elif self.command is None:
            self.path = (*self.path, word)
            self.command = next((command for command in COMMANDS if command.path == self.path), None)
        else:
            self.operands = (*self.operands, word)
            self.ended = self.command.ends_at_word

    def spelled(self, word: str) -> Option | None:
        return next((option for option in self.options if word in option.spelled and _takes_value(option)), None)

    def _last(self, word: str) -> Option | None:
        """The option whose value the next word is."""
        if word.startswith("--"):
            name, equals, _ = word.partition("=")
            option = self.spelled(name)
            if option is not None and equals:
                self.given.add(option.completes)
            return option if not equals else None
        for at, letter in enumerate(word[1:], 2):
            option = self.spelled(f"-{letter}")
            if option is not None:
                return option if at == len(word) else None
        return None


def _takes_value(option: Option) -> bool:
    return option.takes not in ("nothing", "count")


def _commands(path: tuple[str, ...], begun: str) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for command in COMMANDS:
        if command.path[: len(path)] == path and len(command.path) > len(path):
            name = command.path[len(path)]
            found.setdefault(name, GROUPS[name] if len(command.path) > len(path) + 1 else _summary(command.help))
    return tuple((name, text) for name, text in found.items() if name.startswith(begun))


def _options(reader: _Reader, begun: str) -> Offer:
    found = [(word, option.help) for option in reader.options for word in (*option.spelled, *option.off)]
    found += [(word, "Show the help and exit.") for word in HELP]
    found += [(word, "Show the version and exit.") for word in VERSION if reader.command is None and not reader.path]
    long = [pair for pair in found if pair[0].startswith("--")]
    return Offer(tuple(pair for pair in (found if begun != "-" else long) if pair[0].startswith(begun)))


def _argument(reader: _Reader, command: Command, begun: str, values: Values) -> Offer:
    if reader.words_follow:
        return Offer(names="files")
    if not command.arguments or (command.ends_at_word and reader.operands):
        return Offer()
    last = command.arguments[-1]
    before = reader.operands
    if len(before) >= len(command.arguments) and not last.many:
        return Offer()
    argument = command.arguments[min(len(before), len(command.arguments) - 1)]
    names = _names(argument.names)
    if argument.completes == "operand" and "agent" in reader.given:
        return Offer(names=names)
    found = _offered(argument, begun, values, before, names)
    if not argument.many:
        return found
    named = {*before, *(word.partition("=")[0] for word in before)}  # claude=1.2 names claude
    return found._replace(words=tuple(pair for pair in found.words if pair[0] not in named))


def _value(option: Option, begun: str, values: Values, before: Sequence[str]) -> Offer:
    metavar = option.metavar.replace("{agents}", "|".join(AGENT_KINDS))
    names: Names = ""
    if metavar.startswith(_FILE_METAVARS):
        names = "files"
    elif metavar.startswith(_DIRECTORY_METAVARS):
        names = "dirs"
    if not option.completes and "|" in metavar and metavar.replace("|", "").replace("_", "").replace("-", "").isalnum():
        return Offer(_begun(metavar.split("|"), begun))
    return _offered(option, begun, values, before, names)


def _offered(what: Option | Argument, begun: str, values: Values, before: Sequence[str], names: Names) -> Offer:
    words = values(what.completes, begun, before) if what.completes else []
    open_ended = bool(words) and all(word.endswith((":", "=")) for word in words)
    return Offer(_begun(words, begun), names, open_ended)


def _names(text: str) -> Names:
    return "files" if text == "files" else "dirs" if text == "dirs" else ""


def _begun(words: Iterable[str], begun: str) -> tuple[tuple[str, str], ...]:
    return tuple((word, "") for word in words if word.startswith(begun) and is_printable(word))


def _summary(text: str) -> str:
    return text.partition("\n")[0]


# --- the words of a line -----------------------------------------------------------------------------


class Typed(NamedTuple):
    """A command line of bash up to the cursor. ``kept``: the beginning of the last word that bash does not replace."""

    words: tuple[str, ...]
    kept: str


def bash_words(line: str) -> Typed:
    """Split ``line`` as bash does; a quotation that has not ended yet ends with the line.

    bash completes only what follows the last ``:`` or ``=`` of a word.
    """
    words: list[str] = []
    word, quote, open_word, kept = "", "", False, 0
    escaped = False
    for char in line:
        if escaped:
            word, escaped = word + char, False
        elif char == "\\" and quote != "'":
            escaped = open_word = True
        elif quote:
            quote, word = ("", word) if char == quote else (quote, word + char)
        elif char in "'\"":
            quote, open_word = char, True
        elif char.isspace():
            if open_word:
                words.append(word)
            word, open_word, kept = "", False, 0
        elif char in ";|&":  # another command begins
            words, word, open_word, kept = [], "", False, 0
        else:
            word, open_word = word + char, True
            if char in ":=":
                kept = len(word)
    return Typed((*words, word), word[:kept])
