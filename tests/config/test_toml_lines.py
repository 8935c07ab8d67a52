"""The line of a key in a valid TOML text is right, or is not said."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from hypothesis import assume, given
from hypothesis import strategies as st

from podbot.config.load import file_layers
from podbot.config.models import Origin
from podbot.config.toml_lines import line_of
from podbot.errors import InvalidValue, UnknownKey
from tests.config.test_edit import DOCUMENTS

Keys = tuple[str, ...]


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("a = 1", ("a",), 1),
        ("# a = 1\n\na = 1", ("a",), 3),
        ("x = 1\r\na = 2\r\n", ("a",), 2),
        ("[t]\nx = 1\na = 2\n", ("t", "a"), 3),
        ("a = 1\n[t]\na = 2\n", ("t", "a"), 3),
        ("t.a = 1\nt.b = 2\n", ("t", "b"), 2),
        ("t . 'b' = 2\n", ("t", "b"), 1),
        ("x = 1\n[ 't' ] # here\n", ("t",), 2),
        ("[t.u]\na = 1\n[t]\nb = 1\n", ("t",), 3),
        ("x = 1\n[t.u]\na = 1\n", ("t",), 2),
        ("x = 1\nt.u = 1\n", ("t",), 2),
        ('[project."~/a.b"]\nimage = 1\n', ("project", "~/a.b", "image"), 2),
        ('[project."~/a#[b]"]\nagent.kid = 1\n', ("project", "~/a#[b]", "agent", "kid"), 2),
        ('x = """\na = 1\n[t]\n"""\na = 2\n', ("a",), 5),
        ("x = '''\na = 1'''\na = 2\n", ("a",), 3),
        ("x = [ # a = 1\n'a',\n]\na = 2\n", ("a",), 4),
        ("x = 1\nt = { a = 1, b = 2 }\n", ("t", "b"), 2),
        ('t = { a = """\n""", b = 2 }\n', ("t", "b"), None),
        ('t = { a = """\n""", b = 2 }\n', ("t",), 1),
        ("x = 1\n[[t]]\na = 1\n[[t]]\na = 2\n", ("t",), 2),
        ("[[t]]\na = 1\n[[t]]\na = 2\n", ("t", "a"), None),
        ("a = 1\n", ("b",), None),
        ("[t]\na = 1\n", ("a",), None),
        ("", ("a",), None),
    ],
)
def test_the_line_of_a_key(text: str, path: Keys, line: int | None) -> None:
    tomllib.loads(text)
    assert line_of(text, path) == line


def paths(table: dict[str, Any], above: Keys = ()) -> list[Keys]:
    """Every key and table of a document."""
    found: list[Keys] = []
    for name, value in table.items():
        found.append((*above, name))
        if isinstance(value, dict):
            found += paths(value, (*above, name))
    return found


def has(table: Any, path: Keys) -> bool:
    return not path or (isinstance(table, dict) and path[0] in table and has(table[path[0]], path[1:]))


def begins(lines: list[str], line: int, path: Keys) -> bool:
    """Whether the text before ``line`` is whole and lacks the key, and the statement that begins there sets it."""
    if has(tomllib.loads("".join(lines[: line - 1])), path):
        return lines[line - 1].lstrip().startswith("[")  # the header of a table that has a table already
    for end in range(line, len(lines) + 1):
        try:
            return has(tomllib.loads("".join(lines[:end])), path)
        except tomllib.TOMLDecodeError:
            continue
    return False


@given(DOCUMENTS, st.booleans())
def test_in_any_written_document_the_line_is_right_or_absent(document: dict[str, Any], multiline: bool) -> None:
    text = tomli_w.dumps(document, multiline_strings=multiline)
    lines = text.split("\n")
    lines = [f"{line}\n" for line in lines[:-1]] + lines[-1:]
    for path in paths(tomllib.loads(text)):
        line = line_of(text, path)
        assert line is None or begins(lines, line, path)


@given(st.text(st.sampled_from("ab=[]{}'\"#\n\\ .1,"), max_size=60))
def test_in_any_valid_text_the_line_is_right_or_absent(text: str) -> None:
    try:
        found = paths(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        return
    lines = text.split("\n")
    lines = [f"{line}\n" for line in lines[:-1]] + lines[-1:]
    for path in found:
        line = line_of(text, path)
        assert line is None or begins(lines, line, path)


LITERALS = (
    "1",
    "true",
    '"# no"',
    "'[t]'",
    "2024-01-01 10:00:00",
    '"""\na = 1\n[t]\n"""',
    "'''\nb = \"\"\"\n'''",
    '[\n  "]", # ]\n  "a = 1",\n]',
    "[[1], [\n2]]",
)
NAMES = st.sampled_from(("a", "b", '"a b"', "'x.y'", '"~/src/[shop]"', "t"))
NOISE = st.sampled_from(("", "\n", "# a = 1\n", '  # """\n', "\t\n# [t]\n"))


@st.composite
def written(draw: st.DrawFn) -> tuple[str, dict[Keys, int]]:
    """A text in forms that people write, and the line of each key in it."""
    text, known = draw(NOISE), dict[Keys, int]()
    for header in ("", *draw(st.lists(NAMES, max_size=3, unique=True))):
        table = (bare(header),) if header else ()
        if header:
            known[table] = text.count("\n") + 1
            text += draw(st.sampled_from((f"[{header}]\n", f" [ {header} ]  # a = 2\n")))
        for name in draw(st.lists(NAMES, max_size=4, unique=True)):
            key, path = name, (*table, bare(name))
            if not header:  # not the name of a table
                key, path = f"{name}.v", (bare(name), "v")
            known[path] = text.count("\n") + 1
            text += f"{key} = {draw(st.sampled_from(LITERALS))}\n" + draw(NOISE)
    return text, known


def bare(name: str) -> str:
    return name.strip("'\"")


@given(written())
def test_each_key_in_the_forms_that_people_write_has_its_line(case: tuple[str, dict[Keys, int]]) -> None:
    text, known = case
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(False)  # a dotted key and a header for the same table
    assert {path: line_of(text, path) for path in known} == known


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('image = "x"\n\n[agent]\nkind = "cladue"\n', "agent.kind (config file {}, line 4)"),
        ('\n[agent]\nkinds = "x"\n', "unknown key agent.kinds (config file {}, line 3)"),
        ('\nagnt.kind = "x"\n', "unknown key agnt (config file {}, line 2)"),
        ("\nagent = 1\n", "agent (config file {}, line 2): expected a table"),
        ('\n[project."~/a"]\nagent.kid = "x"\n', 'unknown key project."~/a".agent.kid (config file {}, line 3, '),
        ('\n[project."~/a"]\nsandbox.cpus = "x"\n', "sandbox.cpus (config file {}, line 3, project ~/a)"),
        ('\n[project."~/a"]\n\nengine = "podman"\n', 'project."~/a".engine (config file {}, line 4)'),
        ('\n[project."a"]\n', 'project."a" (config file {}, line 2)'),
        ("\nproject = 1\n", "project (config file {}, line 2)"),
        ("[[agent]]\n[[agent]]\n", "agent (config file {}, line 1)"),
    ],
)
def test_an_error_of_a_value_or_a_key_names_its_line(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "c.toml"
    file.write_text(text)
    with pytest.raises((InvalidValue, UnknownKey)) as caught:
        file_layers(str(file), Origin("flag", "--config"), {"HOME": str(tmp_path)})
    assert said.format(file) in str(caught.value)
