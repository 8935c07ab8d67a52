"""Parses a line of shell into commands and words, as far as a validator needs them.

Any text is accepted, and nothing is expanded: ``$HOME`` stays as written. Commands in substitutions are parsed too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

_OPERATORS = ("<<<", "<<-", "&>>", "&&", "||", ";;", "|&", ">>", ">|", "<<", "<>", ">&", "<&", "&>", ";", "&", "|",
              "(", ")", "<", ">", "\n")  # fmt: skip
_REDIRECTS = frozenset({"<<<", "<<-", "&>>", ">>", ">|", "<<", "<>", ">&", "<&", "&>", "<", ">"})
_KEYWORDS = frozenset(
    {"if", "then", "else", "elif", "fi", "do", "done", "while", "until", "!", "{", "}", "time", "coproc", "function"}
)
DEPTH = 8  # how deep substitutions inside substitutions are parsed


@dataclass(slots=True)
class Word:
    """A word without its quotes. ``runs``: the texts of the commands whose output the shell inserts into it."""

    text: str
    quoted: bool = False
    runs: list[str] = field(default_factory=list)


@dataclass(slots=True)
class SimpleCommand:
    """A program with its arguments, without the assignments before it and without words such as ``then``.

    ``redirects``: the operator and target of each. ``depth``: the number of substitutions that enclose the command.
    """

    words: list[Word] = field(default_factory=list)
    redirects: list[tuple[str, Word]] = field(default_factory=list)
    depth: int = 0

    @property
    def texts(self) -> list[str]:
        """The texts of the command's words."""
        return [word.text for word in self.words]


Pipeline = list[SimpleCommand]


def pipelines(line: str, depth: int = 0) -> Iterator[Pipeline]:
    """Every pipeline of ``line``, including those in substitutions."""
    current: Pipeline = [SimpleCommand(depth=depth)]
    redirect = ""
    for token in tokens(line):
        if isinstance(token, Word):
            for text in token.runs if depth < DEPTH else ():
                yield from pipelines(text, depth + 1)
            if redirect:
                current[-1].redirects.append((redirect, token))
            elif current[-1].words or not _is_prefix(token):
                current[-1].words.append(token)
            redirect = ""
        elif token in _REDIRECTS:
            redirect = token
        elif token in ("|", "|&"):
            current.append(SimpleCommand(depth=depth))
        else:
            redirect = ""
            if any(part.words or part.redirects for part in current):
                yield current
            current = [SimpleCommand(depth=depth)]
    if any(part.words or part.redirects for part in current):
        yield current


def _is_prefix(word: Word) -> bool:
    if not word.quoted and word.text in _KEYWORDS:
        return True
    name, equals, _ = word.text.partition("=")
    return bool(equals) and name.isidentifier()


def tokens(line: str) -> Iterator[Word | str]:
    """Words, and operators as strings; the body of a here-document yields no token."""
    return iter(_Lexer(line))


class _Lexer:
    def __init__(self, line: str) -> None:
        self._line = line
        self._at = 0
        self._word: Word | None = None
        self._ends: list[str] = []  # delimiters of the here-documents whose bodies follow this line
        self._awaits_end = False

    def __iter__(self) -> Iterator[Word | str]:
        while self._at < len(self._line):
            operator = self._operator()
            char = self._line[self._at]
            if operator:
                yield from self._finished()
                self._at += len(operator)
                yield operator
                self._awaits_end = operator in ("<<", "<<-")
                if operator == "\n":
                    self._skip_bodies()
            elif char in " \t\r":
                self._at += 1
                yield from self._finished()
            elif char == "#" and self._word is None:
                end = self._line.find("\n", self._at)
                self._at = end if end >= 0 else len(self._line)
            else:
                self._take()
        yield from self._finished()

    def _operator(self) -> str:
        """The operator at this position. A number before a redirect, such as the 2 of ``2>``, is not a word."""
        found = next((op for op in _OPERATORS if self._line.startswith(op, self._at)), "")
        if found in ("<", ">") and self._line.startswith("(", self._at + 1):
            return ""  # a process substitution is a word
        if found in _REDIRECTS and self._word is not None and self._word.text.isdigit() and not self._word.quoted:
            self._word = None
        return found

    def _finished(self) -> Iterator[Word]:
        if self._word is not None:
            word, self._word = self._word, None
            if self._awaits_end:
                self._ends.append(word.text)
                self._awaits_end = False
            yield word

    def _take(self) -> None:
        """Read the next piece of a word."""
        word = self._word = self._word or Word("")
        char = self._line[self._at]
        if char == "\\":
            if not self._line.startswith("\n", self._at + 1):
                word.text += self._line[self._at + 1 : self._at + 2]
                word.quoted = True
            elif not word.text and not word.quoted:
                self._word = None
            self._at += 2
        elif char == "'":
            end = self._end_of("'", self._at + 1)
            word.text += self._line[self._at + 1 : end]
            word.quoted = True
            self._at = end + 1
        elif char == '"':
            self._double_quoted(word)
        elif not self._substitution(word):
            word.text += char
            self._at += 1

    def _double_quoted(self, word: Word) -> None:
        word.quoted = True
        self._at += 1
        while self._at < len(self._line) and self._line[self._at] != '"':
            if self._line[self._at] == "\\" and self._line[self._at + 1 : self._at + 2] in ('"', "\\", "$", "`"):
                word.text += self._line[self._at + 1]
                self._at += 2
            elif not self._substitution(word):
                word.text += self._line[self._at]
                self._at += 1
        self._at += 1

    def _substitution(self, word: Word) -> bool:
        """Read ``$(…)``, ``<(…)``, ``>(…)`` or backquotes if one begins at this position."""
        start = self._at
        if self._line[start] == "`":
            end = self._end_of("`", start + 1)
            inner = self._line[start + 1 : end].replace("\\`", "`")
        elif self._line[start] in "$<>" and self._line.startswith("(", start + 1):
            end = self._closing(start + 2)
            inner = self._line[start + 2 : end]
        else:
            return False
        if not inner.startswith("(") or not self._line.startswith("$((", start):  # $(( begins arithmetic
            word.runs.append(inner)
        self._at = end + 1
        word.text += self._line[start : self._at]
        return True

    def _end_of(self, mark: str, at: int) -> int:
        while at < len(self._line) and self._line[at] != mark:
            at += 2 if mark == "`" and self._line[at] == "\\" else 1
        return min(at, len(self._line))

    def _closing(self, at: int) -> int:
        """The position of the parenthesis that closes the open one."""
        depth = 1
        while at < len(self._line):
            char = self._line[at]
            if char == "\\":
                at += 1
            elif char in "'\"":
                at = self._quote_end(char, at + 1)
            elif char in "()":
                depth += 1 if char == "(" else -1
                if not depth:
                    return at
            at += 1
        return len(self._line)

    def _quote_end(self, mark: str, at: int) -> int:
        while at < len(self._line) and self._line[at] != mark:
            at += 2 if mark == '"' and self._line[at] == "\\" else 1
        return at

    def _skip_bodies(self) -> None:
        for delimiter in self._ends:
            while self._at < len(self._line):
                end = self._line.find("\n", self._at)
                end = end if end >= 0 else len(self._line)
                line, self._at = self._line[self._at : end], end + 1
                if line.lstrip("\t") == delimiter:
                    break
        self._at = min(self._at, len(self._line))
        self._ends.clear()
