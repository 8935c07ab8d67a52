"""What is wrong with a file that is no TOML, in plain words, with the line and what to do. Pure.

Loaded only for such a file. No value of the file is repeated, because it may be a secret.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence

UNKNOWN = "Correct the file."
_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*'))*"""
_SETTING = re.compile(rf"\s*({_KEY})\s*=\s*(.*)", re.DOTALL)
_HEADER = re.compile(rf"\s*\[\s*({_KEY})\s*\]\s*(?:#.*)?", re.DOTALL)
_PLACE = re.compile(r"(.*) \(at (?:line ([0-9]+), column ([0-9]+)|end of document)\)", re.DOTALL)
_TYPOGRAPHIC = tuple("\u201c\u201d\u201e\u2018\u2019\u00ab")
_SHORT = re.compile(r"[0-9]+[A-Za-z%]{1,2}")  # a size or a share, which is no secret

Words = tuple[str, str]  # what is wrong, and what to do


def undecodable(data: bytes, at: int) -> Words:
    """For bytes that are not UTF-8 from ``at`` on."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "it is text in UTF-16", "Save it as UTF-8, without a byte order mark."
    line = data.count(b"\n", 0, at) + 1
    return f"line {line} has a character that is not UTF-8", "Save the file as UTF-8."


def explained(said: str, text: str) -> Words:
    """For what ``tomllib`` says of ``text``; in its own words where podbot has none."""
    if text.startswith("\ufeff"):
        return "it begins with a byte order mark", "Save it as UTF-8 without a byte order mark."
    if "\0" in text:
        return "it contains NUL characters, so it is text in UTF-16 or no text", "Save it as UTF-8."
    found = _PLACE.fullmatch(said)
    if found is None:
        return said, UNKNOWN
    lines = text.split("\n")
    if said.startswith("Invalid statement") and text.lstrip().startswith("{"):
        return "it is JSON", 'Write it as TOML: [agent] on one line, and kind = "claude" below it, for example.'
    number = int(found[2]) if found[2] else len(text.rstrip("\n").split("\n"))
    column = int(found[3]) if found[3] else len(lines[number - 1]) + 1
    for beginning, words in _WORDS:
        if found[1].startswith(beginning) and (known := words(found[1], lines, number, column)):
            return known
    return said, UNKNOWN


def _no_value(_said: str, lines: Sequence[str], number: int, column: int) -> Words | None:
    rest = lines[number - 1][column - 1 :].strip()
    name = _name_at(lines, number) or "name"
    if rest[:1] in _TYPOGRAPHIC:
        return f"line {number}: these are typographic quotes", f'Write plain ones: {name} = "text".'
    if rest and not rest.startswith("#"):
        small = re.match(r"(True|False)\b", rest)
        write = small[1].lower() if small else '"text"'
        return (
            f"line {number}: this is no value",
            f"Write {name} = {write}." if small else f"Text is written in quotes: {name} = {write}.",
        )
    if (begun := _list_before(lines, number)) is not None:
        return _unclosed(*begun, f"before the end of line {number}")
    return f"line {number}: there is no value after =", f'Write one, such as {name} = "text", or remove the line.'


def _two_things(_said: str, lines: Sequence[str], number: int, _column: int) -> Words | None:
    setting = _SETTING.fullmatch(lines[number - 1])
    if setting is None:
        return None
    value = setting[2].partition("#")[0].strip()
    if value[:1] in ("'", '"', "[", "{"):
        return f"line {number}: something follows the value", "Put it on a line of its own, or # in front of it."
    if re.fullmatch(r"[0-9]{1,3},[0-9]{1,3}", value):
        return f"line {number}: a number has a decimal point", f"Write {setting[1]} = {value.replace(',', '.')}."
    shown = value if _SHORT.fullmatch(value) else "text"
    return (
        f"line {number}: the value has no quotes, and is neither a number nor true or false",
        f'Write {setting[1]} = "{shown}".',
    )


def _no_equals(_said: str, lines: Sequence[str], number: int, _column: int) -> Words | None:
    found = re.match(rf"\s*({_KEY})(\s*:(.*))?", lines[number - 1])
    if found is None or len(found[1]) > 40:
        return None
    if found[2] is not None:
        is_table = not found[3].strip()
        written = f"[{found[1]}] on this line, and its keys below it" if is_table else f'{found[1]} = "text"'
        return f"line {number}: a colon after {found[1]} is YAML", f"Write it as TOML: {written}."
    return f"line {number}: there is no = after {found[1]}", f'Write {found[1]} = "text".'


def _open_list(_said: str, lines: Sequence[str], number: int, column: int) -> Words | None:
    begun = _list_before(lines, number)
    if begun is None:
        return None
    rest = lines[number - 1][column - 1 :].strip() if number <= len(lines) else ""
    if rest[:1] in ("'", '"') and _SETTING.fullmatch(lines[number - 1][column - 1 :]) is None:
        return f"line {number}: a comma is missing between two items of {begun[0]}", "Put one there."
    return _unclosed(*begun, f"before line {number}" if number > begun[1] else "")


def _unclosed(name: str, start: int, where: str) -> Words:
    return f"the list of {name}, which begins on line {start}, is not closed {where}".rstrip(), "Put a ] at its end."


def _list_before(lines: Sequence[str], number: int) -> tuple[str, int] | None:
    """The key of the list that is open at a line, and the line on which it begins."""
    for at in range(number, 0, -1):
        setting = _SETTING.fullmatch(lines[at - 1])
        if setting is not None and setting[2].startswith("["):
            return setting[1], at
        if setting is not None and at < number:
            return None
    return None


def _second_table(said: str, lines: Sequence[str], number: int, _column: int) -> Words | None:
    try:
        names = ast.literal_eval(said.removeprefix("Cannot declare ").removesuffix(" twice"))
        table = ".".join(name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else f'"{name}"' for name in names)
    except (ValueError, SyntaxError, TypeError):
        return None
    header = lines[number - 1].partition("#")[0].strip()
    same = (at for at, line in enumerate(lines[: number - 1], 1) if line.partition("#")[0].strip() == header)
    first = next(same, 0)
    if first:
        what = f"line {number}: there is a second [{table}]"
        return what, f"Put its keys below the first one, on line {first}, and remove line {number}."
    what = f"line {number}: keys of {table} were set before [{table}]"
    return what, f"Move those lines below [{table}], without {table}. in front of the keys."


def _second_value(_said: str, lines: Sequence[str], number: int, _column: int) -> Words | None:
    setting = _SETTING.fullmatch(lines[number - 1])
    if setting is None:
        return None
    for at in range(number - 1, 0, -1):
        if _HEADER.fullmatch(lines[at - 1]):
            break
        before = _SETTING.fullmatch(lines[at - 1])
        if before is not None and before[1] == setting[1]:
            return f"line {number}: {setting[1]} has a value already, on line {at}", "Remove one of the two lines."
    return None


def _backslash(_said: str, lines: Sequence[str], number: int, _column: int) -> Words | None:
    name = _name_at(lines, number) or "name"
    what = f"line {number}: a backslash in double quotes begins an escape, and this one is none"
    return what, f"Write the text in single quotes, {name} = 'text', or each backslash twice."


def _open_text(said: str, lines: Sequence[str], number: int, _column: int) -> Words | None:
    if said.startswith("Illegal character") and said != r"Illegal character '\n'":
        return None
    quote = "'" if said.startswith("Expected \"'") else '"'
    if said.startswith("Illegal"):
        setting = _SETTING.fullmatch(lines[number - 1])
        quote = setting[2][:1] if setting is not None and setting[2][:1] == "'" else '"'
        return f"line {number}: the text has no closing quote", f"Put a {quote} at its end."
    for at, line in enumerate(lines, 1):
        setting = _SETTING.fullmatch(line)
        value = setting[2] if setting is not None else ""
        for several in (quote * 3, quote):
            if value.startswith(several):
                if several not in value[len(several) :]:
                    return f"line {at}: the text has no closing quote", f"Put a {several} at its end."
                break
    return None


def _open_header(_said: str, lines: Sequence[str], number: int, _column: int) -> Words | None:
    found = re.fullmatch(rf"\s*(\[\[?)\s*({_KEY})\s*\]?\s*", lines[number - 1].partition("#")[0])
    if found is None:
        return None
    return f"line {number}: {found[1]}{found[2]} is not closed", f"Write [{found[2]}]."


def _open_table(_said: str, lines: Sequence[str], number: int, _column: int) -> Words | None:
    setting = _SETTING.fullmatch(lines[number - 1])
    if setting is None or not setting[2].startswith("{"):
        return None
    name = setting[1]
    what = f"line {number}: the table {name} is not closed on this line"
    return what, f'Write it on one line, with a comma between two pairs: {name} = {{A = "1", B = "2"}}.'


def _name_at(lines: Sequence[str], number: int) -> str:
    setting = _SETTING.fullmatch(lines[number - 1])
    return setting[1] if setting is not None else ""


# By the beginning of what tomllib says.
_WORDS: tuple[tuple[str, Callable[[str, Sequence[str], int, int], Words | None]], ...] = (
    ("Invalid value", _no_value),
    ("Expected newline or end of document after a statement", _two_things),
    ("Expected '=' after a key", _no_equals),
    ("Unclosed array", _open_list),
    ("Cannot declare ", _second_table),
    ("Cannot overwrite a value", _second_value),
    ("Invalid hex value", _backslash),
    ("Unescaped '\\' in a string", _backslash),
    ("Illegal character", _open_text),
    ("Unterminated string", _open_text),
    ("Expected \"'", _open_text),
    ("Expected ']' at the end of a table declaration", _open_header),
    ("Expected ']]' at the end of an array declaration", _open_header),
    ("Unclosed inline table", _open_table),
    ("Invalid initial character for a key part", _open_table),
)
