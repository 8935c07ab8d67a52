"""Finds the line of a key or table in the text of a TOML file that was parsed already. Pure.

Python's parser gives no positions. Loaded only for an error, by which the line is shown.
"""

from __future__ import annotations

from podbot.config.edit import Path, Statement, scan


def line_of(text: str, path: Path) -> int | None:
    """The line on which ``path`` is set, from 1 on: of its assignment, of the table in braces that has it, of its
    header, or else of the first statement below it. None where that is not sure: inside an array of tables, in a table
    in braces of several lines, or if there is no such key.

    ``text`` must be valid TOML.
    """
    try:
        statements = [found for found in scan(text) if found.kind != "comment"]
    except (ValueError, IndexError, RecursionError):
        return None
    if any(_is_element(text, found) and _is_above(found.path, path) for found in statements):
        return None
    for found in statements:
        if found.kind == "assignment" and (found.path == path or _is_above(found.path, path)):
            several = found.path != path and "\n" in text[found.start : found.end]
            return None if several else _line(text, found)
    below = [found for found in statements if found.path == path or _is_above(path, found.path)]
    exact = [found for found in below if found.path == path]
    return _line(text, (exact or below)[0]) if below else None


def _is_element(text: str, found: Statement) -> bool:
    return found.kind == "header" and text.startswith("[[", found.start)


def _is_above(table: Path, path: Path) -> bool:
    return len(table) < len(path) and path[: len(table)] == table


def _line(text: str, found: Statement) -> int:
    return text.count("\n", 0, found.start) + 1
