"""Sets one key in the text of a TOML file without changing any other byte. Pure.

Every TOML library for Python that keeps comments is a large dependency. So this module scans the statements and
proposes edits. An edit is accepted only if parsing it gives the old document with the one key changed. So if the
scanner misunderstands a file, the result is an error, never a broken file.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

Path = tuple[str, ...]

_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?"""(?:"{0,2})'  # a multi-line string may end in up to five quotes
    r"|'''.*?''''{0,2}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|[^\"'#\[\]{}=\n]+"
    r"|.",
    re.DOTALL,
)


class CannotEdit(ValueError):
    """The key is written in a form that this module does not change, such as inside an inline table."""


class Statement(NamedTuple):
    """A statement or a whole-line comment. ``table``: the header above it, () at top level.

    ``path``: of a header or an assignment, from the root. ``start``, ``end``: the range of an assignment's value, or
    of the whole of anything else. ``after``: where the next line begins.
    """

    kind: Literal["header", "assignment", "comment"]
    table: Path
    path: Path
    start: int
    end: int
    after: int


def set_in_text(text: str, path: Path, literal: str) -> str:
    """``text`` with the key at ``path`` set to the TOML ``literal``. ``text`` must be valid TOML.

    Raises CannotEdit when no edit gives exactly that result.
    """
    wanted = _parse(text)
    _assign(wanted, path, _parse(f"value = {literal}")["value"])
    for proposal in _proposals(text, path, literal):
        try:
            if _parse(proposal) == wanted:
                return proposal
        except ValueError:
            continue
    raise CannotEdit(f"{'.'.join(path)} is in an inline table or an array there")


def set_table_in_text(text: str, path: Path, literals: Mapping[str, str], literal: str) -> str:
    """``text`` with the key at ``path`` set to the table of ``literals``; ``literal``: all of it as one.

    A table with a header or with dotted keys stays in that form. Raises CannotEdit when no edit gives that result.
    """
    try:
        return set_in_text(text, path, literal)
    except CannotEdit:
        wanted = _parse(text)
        _assign(wanted, path, _parse(f"value = {literal}")["value"])
        for name, item in literals.items():
            text = set_in_text(text, (*path, name), item)
        if _parse(text) != wanted:
            raise
        return text


def scan(text: str) -> Iterator[Statement]:
    """The statements of ``text``, which must be valid TOML, in order."""
    table: Path = ()
    at = 0
    while at < len(text):
        lexeme = _lexeme(text, at)
        if not lexeme.strip():
            at += 1  # one character: a bare lexeme may run from the blanks into a key
        elif lexeme.startswith("#"):
            yield Statement("comment", table, (), at, at + len(lexeme), _next_line(text, at + len(lexeme)))
            at += len(lexeme)
        elif lexeme == "[":
            end = _skip(text, at, nested=False)
            table = _path(text[at:end])
            yield Statement("header", table, table, at, end, _next_line(text, end))
            at = _next_line(text, end)
        else:
            equals = _find_equals(text, at)
            start = equals + 1
            while text[start : start + 1] in {" ", "\t"}:
                start += 1
            end = _skip(text, start, nested=True)
            path = (*table, *_path(text[at:equals] + "= 0"))
            yield Statement("assignment", table, path, start, end, _next_line(text, end))
            at = _next_line(text, end)


def _proposals(text: str, path: Path, literal: str) -> Iterator[str]:
    statements = list(scan(text))
    for found in statements:
        if found.kind == "assignment" and found.path == path:
            yield text[: found.start] + literal + text[found.end :]
    newline = "\r\n" if "\r\n" in text else "\n"
    *table, name = path
    line = f"{name} = {literal}{newline}"
    if not table or any(s.kind == "header" and s.path == tuple(table) for s in statements):
        yield _insert(text, _place(text, statements, tuple(table), name), line, newline)
    else:
        yield _insert(text, len(text), f"{newline}[{'.'.join(table)}]{newline}{line}", newline)
        yield _insert(text, _place(text, statements, (), name), f"{'.'.join(table)}.{line}", newline)


def _place(text: str, statements: list[Statement], table: Path, name: str) -> int:
    """Where to insert a new line of ``table``: below the same key as a comment, else below the last assignment."""
    commented = re.compile(rf"#+\s*{re.escape(name)}\s*=")
    place = 0
    for found in statements:
        if found.table != table:
            continue
        if found.kind == "comment" and commented.match(text, found.start):
            return found.after
        if found.kind != "comment":
            place = found.after
    return place


def _insert(text: str, at: int, line: str, newline: str) -> str:
    before = text[:at]
    return before + (newline if before and not before.endswith("\n") else "") + line + text[at:]


def _lexeme(text: str, at: int) -> str:
    found = _TOKEN.match(text, at)
    return found.group() if found else text[at]


def _skip(text: str, at: int, *, nested: bool) -> int:
    """The end of the value (or header) at ``at``: before a comment or the line's end outside brackets."""
    depth, end = 0, at
    while at < len(text):
        lexeme = _lexeme(text, at)
        if depth == 0 and (lexeme == "\n" or lexeme.startswith("#")):
            break
        depth += nested * ((lexeme in {"[", "{"}) - (lexeme in {"]", "}"}))
        at += len(lexeme)
        if lexeme.strip() and not lexeme.startswith("#"):
            end = at - (len(lexeme) - len(lexeme.rstrip()))
    return end


def _find_equals(text: str, at: int) -> int:
    while text[at] != "=":
        at += len(_lexeme(text, at))
    return at


def _next_line(text: str, at: int) -> int:
    newline = text.find("\n", at)
    return len(text) if newline < 0 else newline + 1


def _path(statement: str) -> Path:
    """The keys that a header or an assignment of 0 names, outermost first."""
    names: list[str] = []
    node: Any = tomllib.loads(statement)
    while node:
        if isinstance(node, list):
            node = node[0]
        else:
            ((name, node),) = node.items()
            names.append(name)
    return tuple(names)


def _parse(text: str) -> dict[str, Any]:
    # Floats stay strings, because nan is unequal to itself and would break the comparison.
    return tomllib.loads(text, parse_float=str)


def _assign(document: dict[str, Any], path: Path, value: Any) -> None:
    *table, name = path
    node: Any = document
    for part in table:
        node = node.setdefault(part, {})
        if not isinstance(node, dict):
            raise CannotEdit(f"{part} is not a table there")
    node[name] = copy.deepcopy(value)
