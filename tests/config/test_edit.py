"""Setting one key in a file changes that key and no other byte."""

from __future__ import annotations

import copy
import tomllib
from typing import Any

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from podbot.config.edit import CannotEdit, scan, set_in_text, set_table_in_text

NEW = '"new"'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'image = "new"\n'),
        ('image = "old"\n', 'image = "new"\n'),
        ('image="old" # note\n', 'image="new" # note\n'),
        ("  image\t=\t'old'\t# = \"note\"", '  image\t=\t"new"\t# = "note"'),
        ('"image" = "old"', '"image" = "new"'),
        ('image = """a\nimage = "b"\n\\"""" # c\n', 'image = "new" # c\n'),
        ("image = '''a''''' # c\n", 'image = "new" # c\n'),
        ("image = [ # one\n 'a', # two ]\n] # three\n", 'image = "new" # three\n'),
        ("image = {a = 1}\r\n[x]\r\n", 'image = "new"\r\n[x]\r\n'),
        ("image = 2024-01-01 10:00:00\n", 'image = "new"\n'),
        ("# top\n\n[agent]\nkind = 'x'\n", "image = \"new\"\n# top\n\n[agent]\nkind = 'x'\n"),
        ("a = 1 # c\n# d\n\n[agent]\n", 'a = 1 # c\nimage = "new"\n# d\n\n[agent]\n'),
        ("# about\n# image = 'x'\n\nb = 2\n", "# about\n# image = 'x'\nimage = \"new\"\n\nb = 2\n"),
        ("a = 1\n#image = 1\nb = 2\n", 'a = 1\n#image = 1\nimage = "new"\nb = 2\n'),
        ("a = '''\n#image = 1\n'''\n", "a = '''\n#image = 1\n'''\nimage = \"new\"\n"),
        ("[agent]\nimage = 'not this one'\n", "image = \"new\"\n[agent]\nimage = 'not this one'\n"),
        ('[project."~/a"]\nimage = "p"\n', 'image = "new"\n[project."~/a"]\nimage = "p"\n'),
        ("a = 1", 'a = 1\nimage = "new"\n'),
        ("a = 1\r\n", 'a = 1\r\nimage = "new"\r\n'),
        ("a = nan\nimage = 'old'\n", 'a = nan\nimage = "new"\n'),
    ],
)
def test_a_top_level_key(before: str, after: str) -> None:
    assert set_in_text(before, ("image",), NEW) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '\n[agent]\nkind = "new"\n'),
        ("image = 'x'", "image = 'x'\n\n[agent]\nkind = \"new\"\n"),
        ("[agent]\nmode = 'acp' # m\n[x]\n", "[agent]\nmode = 'acp' # m\nkind = \"new\"\n[x]\n"),
        ("[agent] # here\n[x]\nkind = 1\n", '[agent] # here\nkind = "new"\n[x]\nkind = 1\n'),
        ('[ "agent" ]\nkind = "old"\n', '[ "agent" ]\nkind = "new"\n'),
        ("agent.kind = 'old'\n", 'agent.kind = "new"\n'),
        ("agent . 'kind' = 'old'\n", "agent . 'kind' = \"new\"\n"),
        ("agent.mode = 'acp'\n[x]\n", "agent.mode = 'acp'\nagent.kind = \"new\"\n[x]\n"),
        ("[agent.sub]\na = 1\n", '[agent.sub]\na = 1\n\n[agent]\nkind = "new"\n'),
        ("[agent]\n# kind = 'x'\n\n[[x]]\n[[x]]\n", "[agent]\n# kind = 'x'\nkind = \"new\"\n\n[[x]]\n[[x]]\n"),
        ("#kind = 1\n[agent]\n", '#kind = 1\n[agent]\nkind = "new"\n'),
    ],
)
def test_a_key_in_a_section(before: str, after: str) -> None:
    assert set_in_text(before, ("agent", "kind"), NEW) == after


@pytest.mark.parametrize("before", ["agent = {}", "agent = { kind = 'x' }", "agent = 1", "[[agent]]\nkind = 'x'\n"])
def test_a_form_that_cannot_be_edited_is_refused(before: str) -> None:
    with pytest.raises(CannotEdit, match="agent"):
        set_in_text(before, ("agent", "kind"), NEW)


def test_a_section_where_a_value_should_be_is_refused() -> None:
    with pytest.raises(CannotEdit):
        set_in_text("[image]\na = 1\n", ("image",), NEW)


TABLE = {"claude": '"2"', "codex": '"3"'}
WHOLE = '{ claude = "2", codex = "3" }'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", f"\n[agent]\nversions = {WHOLE}\n"),
        ("[agent]\nversions = {}\n", f"[agent]\nversions = {WHOLE}\n"),
        ("[agent.versions]\n", '[agent.versions]\nclaude = "2"\ncodex = "3"\n'),
        (
            "[agent.versions]\n# mine\ncodex = '1' # why\n[x]\n",
            '[agent.versions]\n# mine\ncodex = "3" # why\nclaude = "2"\n[x]\n',
        ),
        ("agent.versions.codex = '1'\n", 'agent.versions.codex = "3"\nagent.versions.claude = "2"\n'),
    ],
)
def test_a_table_stays_in_its_form(before: str, after: str) -> None:
    assert set_table_in_text(before, ("agent", "versions"), TABLE, WHOLE) == after


@pytest.mark.parametrize(
    "before", ["agent = {}", "[agent.versions]\ngemini = '1'\n", "[agent]\nversions.codex = '1'\n"]
)
def test_a_table_that_cannot_be_edited_is_refused(before: str) -> None:
    with pytest.raises(CannotEdit):
        set_table_in_text(before, ("agent", "versions"), TABLE, WHOLE)


def test_scan_finds_the_positions_of_statements() -> None:
    text = "# c\na.b = [1,\n2] # d\n[[x.'y z']]\n k = '#'\n"
    found = [(s.kind, s.table, s.path, text[s.start : s.end]) for s in scan(text)]
    assert found == [
        ("comment", (), (), "# c"),
        ("assignment", (), ("a", "b"), "[1,\n2]"),
        ("header", ("x", "y z"), ("x", "y z"), "[[x.'y z']]"),
        ("assignment", ("x", "y z"), ("x", "y z", "k"), "'#'"),
    ]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.sampled_from(["image", "agent", "kind", "a", "a b", "x.y", '"', "#", "=", ""]) | TEXT
SCALARS = (
    TEXT
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.dates()
    | st.datetimes()
    | st.sampled_from(["[agent]\n", "image = 1\n", "#image = 1\n", '"""', "'''"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
DOCUMENTS = st.dictionaries(NAMES, VALUES, max_size=5)


def same(one: object, other: object) -> bool:
    """Equality of documents in which nan equals itself."""
    return repr(one) == repr(other)


@given(DOCUMENTS, st.booleans(), TEXT, st.sampled_from([("image",), ("agent", "kind")]))
def test_set_changes_only_that_key(
    document: dict[str, Any], multiline: bool, value: str, path: tuple[str, ...]
) -> None:
    text = tomli_w.dumps(document, multiline_strings=multiline)
    before = tomllib.loads(text)
    literal = tomli_w.dumps({"v": value}).removeprefix("v = ").strip()
    try:
        edited = set_in_text(text, path, literal)
    except CannotEdit:
        # Only where the key, or its section, is no plain value or no plain section.
        holder = before.get(path[0])
        assert isinstance(holder, dict | list) if len(path) == 1 else holder is not None
        return
    after = tomllib.loads(edited)
    wanted = copy.deepcopy(before)
    (wanted if len(path) == 1 else wanted.setdefault("agent", {}))[path[-1]] = value
    assert sorted(after) == sorted(wanted)
    assert all(same(after[name], wanted[name]) for name in after if name != path[0])
    assert after[path[0]] == wanted[path[0]] or same(after[path[0]], wanted[path[0]]) or path[0] == "agent"
    assert (after if len(path) == 1 else after["agent"])[path[-1]] == value
    # Every other line is unchanged, and in its order.
    lines = iter(edited.splitlines())
    if path[-1] not in (before if len(path) == 1 else before.get("agent", {})):
        assert all(line in lines for line in text.splitlines())


@given(st.text(st.sampled_from("image=[]{}'\"#\n\\ a.1,"), max_size=40))
def test_any_valid_text_is_edited_or_refused(text: str) -> None:
    try:
        before = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    try:
        edited = set_in_text(text, ("image",), NEW)
    except CannotEdit:
        assert "image" in before
    else:
        assert tomllib.loads(edited) == {**before, "image": "new"}
