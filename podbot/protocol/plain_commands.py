"""What a command runs, as far as Codex describes it and proposes lasting permissions for it. Pure.

Codex (0.169) reads the script of ``bash -lc SCRIPT`` as plain commands: words, joined by ``&&``, ``||``, ``;``, ``|``
and line ends. For such a script a description is one of these commands, and a lasting permission is for those that
begin with the words of one. Of any other script both are the whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

LONGEST = 65_536  # characters of a command that is read

Words = tuple[str, ...]

#: Directories whose programs count as what they are called; a program elsewhere can be anything.
SYSTEM = frozenset({"/bin", "/usr/bin", "/usr/local/bin"})
_SHELLS = frozenset(("bash", "sh", "zsh"))
_SCRIPT = ("-c", "-lc")
_JOINTS = frozenset({"&&", "||", "|", ";"})
_MARKS = str.maketrans("", "", "'\"\\")
# One piece of a script; adjacent ones that are neither a blank nor a joint are one word. Where it matches nothing, the
# script is no plain one: expansions, redirections, groups, comments.
_PIECE = re.compile(
    r"""(?P<blank>(?:[ \t]|\\\n)++(?!\#))|(?P<joint>&&|\|\||[;|\n])"""
    r"""|'[^']*+'|"(?:[^"\\$`]|\\.)*+"|(?:[^\s'"\\;|&()<>$`]|\\[^\n])++""",
    re.DOTALL,
)
_ARGUMENT = re.compile(r"""(\s++)|'([^']*+)'|"((?:[^"\\]|\\.)*+)"|((?:[^\s'"\\]|\\.)++)""", re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_IN_QUOTES = re.compile(r'\\([$`"\\])')


class Command(NamedTuple):
    """``argv``: its words without their marks. ``script``: the text that a shell runs, which is all of it where none is
    named. ``parts``: the plain commands in it; empty if it is no plain script.
    """

    text: str
    argv: Words
    script: str
    parts: tuple[Words, ...]

    def is_all(self, description: str) -> bool:
        """Whether ``description`` is the whole command or its script."""
        said = description.strip()
        return said in (self.text.strip(), self.script.strip()) or (
            not self.text and bare(_arguments(said) or ()) == self.argv
        )

    def words(self) -> Iterator[str]:
        """All words, of a script that is not plain too."""
        for part in self.parts or (tuple(self.script.translate(_MARKS).split()),):
            yield from part


def command_of(given: object) -> Command | None:
    """The command in a question: a text, or a list of its words. None if there is none, or it cannot be read."""
    if isinstance(given, list):
        text, argv = "", [str(word) for word in given]
        if sum(map(len, argv)) > LONGEST:
            return None
    elif isinstance(given, str) and len(given) <= LONGEST:
        text, argv = given, _arguments(given) or []
    else:
        return None
    if len(argv) == 3 and _is_shell(argv[0]) and argv[1] in _SCRIPT:
        return Command(text, bare(argv), argv[2], plain_commands(argv[2]))
    if text:
        return Command(text, bare(argv), text, plain_commands(text)) if text.strip() else None
    return Command("", bare(argv), " ".join(argv), tuple(_divided(argv))) if argv else None


def plain_commands(script: str) -> tuple[Words, ...]:
    """The words of each plain command of ``script``, without their marks; none if it is not made of such alone."""
    found: list[Words] = []
    words: list[str] = []
    at, grows = 0, False
    if script.lstrip().startswith("#"):
        return ()
    while at < len(script):
        piece = _PIECE.match(script, at)
        if piece is None:
            return ()
        at = piece.end()
        if piece["joint"]:
            found += [tuple(words)] if words else []
            words, grows = [], False
        elif piece["blank"]:
            grows = False
        else:
            text = piece[0].translate(_MARKS)
            if grows:
                words[-1] += text
            else:
                words.append(text)
            grows = True
    return (*found, *([tuple(words)] if words else []))


def unmarked(word: str) -> str:
    """``word`` without the marks by which shells quote: two spellings of one word are equal without them."""
    return word.translate(_MARKS)


def is_prefix(words: Sequence[object], command: Command) -> bool:
    """Whether a permission for what begins with ``words`` is for this command."""
    given = bare(words)
    return bool(given) and (given == command.argv or any(part[: len(given)] == given for part in command.parts))


def bare(words: Sequence[object]) -> Words:
    """``words`` without the marks by which shells quote."""
    return tuple(str(word).translate(_MARKS) for word in words)


def _is_shell(program: str) -> bool:
    directory, slash, name = program.rpartition("/")
    return name in _SHELLS and (directory in SYSTEM or not slash)


def _divided(argv: Sequence[str]) -> Iterator[Words]:
    """``argv`` at the words that are joints, as Codex divides one without a shell."""
    part: list[str] = []
    for word in (*argv, ";"):
        if word not in _JOINTS:
            part.append(word)
        elif part:
            yield bare(part)
            part = []


def _arguments(text: str) -> list[str] | None:
    """The arguments that a shell makes of a text without anything special; None if a quotation has no end."""
    found: list[str] = []
    at, grows = 0, False
    while at < len(text):
        piece = _ARGUMENT.match(text, at)
        if piece is None:
            return None
        at = piece.end()
        blank, single, double, bare = piece.groups()
        if blank is not None:
            grows = False
            continue
        if single is not None:
            word = single
        elif double is not None:
            word = _ESCAPED_IN_QUOTES.sub(r"\1", double)
        else:
            word = _ESCAPED.sub(r"\1", bare)
        if grows:
            found[-1] += word
        else:
            found.append(word)
        grows = True
    return found
