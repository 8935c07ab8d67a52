"""What podbot says of a configuration file that is no TOML, and that its remedies give a file that is."""

from __future__ import annotations

import contextlib
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podbot.config.layers import parse_file
from podbot.errors import MalformedFile

QUOTES = "and is neither a number nor true or false"
UNKNOWN = "Correct the file."


def said(data: bytes) -> tuple[str, str]:
    with pytest.raises(MalformedFile) as caught:
        parse_file("/c.toml", data)
    return caught.value.reason, caught.value.remedy


# A file, what is wrong, what to do, and the file after that.
MISTAKES = [
    (
        '{"agent": {"kind": "claude"}}\n',
        "it is JSON",
        'Write it as TOML: [agent] on one line, and kind = "claude" below it, for example.',
        '[agent]\nkind = "claude"\n',
    ),
    (
        "agent:\n",
        "line 1: a colon after agent is YAML",
        "Write it as TOML: [agent] on this line, and its keys below it.",
        "[agent]\n",
    ),
    (
        "agent.kind: claude\n",
        "line 1: a colon after agent.kind is YAML",
        'Write it as TOML: agent.kind = "text".',
        'agent.kind = "text"\n',
    ),
    ("cpus = 1,5\n", "line 1: a number has a decimal point", "Write cpus = 1.5.", "cpus = 1.5\n"),
    (
        "kind = \u201cclaude\u201d\n",
        "line 1: these are typographic quotes",
        'Write plain ones: kind = "text".',
        'kind = "claude"\n',
    ),
    (
        'image = "x"\n\n[sandbox]\nmemory = "4g"\nextra_mounts = ["/a:/b"\n\n[agent]\nkind = "claude"\n',
        "the list of extra_mounts, which begins on line 5, is not closed before line 7",
        "Put a ] at its end.",
        'image = "x"\n\n[sandbox]\nmemory = "4g"\nextra_mounts = ["/a:/b"]\n\n[agent]\nkind = "claude"\n',
    ),
    ('a = ["x"', "the list of a, which begins on line 1, is not closed", "Put a ] at its end.", 'a = ["x"]'),
    (
        'a = ["x",\n',
        "the list of a, which begins on line 1, is not closed before the end of line 1",
        "Put a ] at its end.",
        'a = ["x",]\n',
    ),
    (
        'a = [\n  "x"\n  "y",\n]\n',
        "line 3: a comma is missing between two items of a",
        "Put one there.",
        'a = [\n  "x",\n  "y",\n]\n',
    ),
    (
        'image = "x"\n[agent]\nkind = "claude"\n[agent]\nmode = "podbot"\n',
        "line 4: there is a second [agent]",
        "Put its keys below the first one, on line 2, and remove line 4.",
        'image = "x"\n[agent]\nkind = "claude"\nmode = "podbot"\n',
    ),
    (
        '[project."~/x"]\n[project."~/x"]\n',
        'line 2: there is a second [project."~/x"]',
        "Put its keys below the first one, on line 1, and remove line 2.",
        '[project."~/x"]\n',
    ),
    (
        'sandbox.memory = "2g"\n[sandbox]\ncpus = 1\n',
        "line 2: keys of sandbox were set before [sandbox]",
        "Move those lines below [sandbox], without sandbox. in front of the keys.",
        '[sandbox]\nmemory = "2g"\ncpus = 1\n',
    ),
    (
        '[sandbox]\nmemory = "2g"\ncpus = 1\nmemory = "4g"\n',
        "line 4: memory has a value already, on line 2",
        "Remove one of the two lines.",
        '[sandbox]\nmemory = "2g"\ncpus = 1\n',
    ),
    (
        "[sandbox]\nmemory = 4g # all\n",
        f"line 2: the value has no quotes, {QUOTES}",
        'Write memory = "4g".',
        '[sandbox]\nmemory = "4g" # all\n',
    ),
    (
        "env = 5x-hunter2\n",
        f"line 1: the value has no quotes, {QUOTES}",
        'Write env = "text".',
        'env = "text"\n',
    ),
    (
        'a = "x" y\n',
        "line 1: something follows the value",
        "Put it on a line of its own, or # in front of it.",
        'a = "x"# y\n',
    ),
    ("image = hunter2\n", "line 1: this is no value", 'Text is written in quotes: image = "text".', 'image = "text"\n'),
    ("keep = True\n", "line 1: this is no value", "Write keep = true.", "keep = true\n"),
    (
        "engine = 'podman'\nimage = \n",
        "line 2: there is no value after =",
        'Write one, such as image = "text", or remove the line.',
        "engine = 'podman'\n",
    ),
    (
        "image = # mine",
        "line 1: there is no value after =",
        'Write one, such as image = "text", or remove the line.',
        'image = "text"',
    ),
    (
        'path = "C:\\Users\\me"\n',
        "line 1: a backslash in double quotes begins an escape, and this one is none",
        "Write the text in single quotes, path = 'text', or each backslash twice.",
        "path = 'C:\\Users\\me'\n",
    ),
    (
        'path = "C:\\Work"\n',
        "line 1: a backslash in double quotes begins an escape, and this one is none",
        "Write the text in single quotes, path = 'text', or each backslash twice.",
        'path = "C:\\\\Work"\n',
    ),
    ('image = "x\nb = 1\n', "line 1: the text has no closing quote", 'Put a " at its end.', 'image = "x"\nb = 1\n'),
    ('image = "x', "line 1: the text has no closing quote", 'Put a " at its end.', 'image = "x"'),
    ("b = 1\nimage = 'x\n", "line 2: the text has no closing quote", "Put a ' at its end.", "b = 1\nimage = 'x'\n"),
    ('image = """x\n', "line 1: the text has no closing quote", 'Put a """ at its end.', 'image = """x"""\n'),
    ("image: y\n", "line 1: a colon after image is YAML", 'Write it as TOML: image = "text".', 'image = "text"\n'),
    ("image y\n", "line 1: there is no = after image", 'Write image = "text".', 'image = "text"\n'),
    ("[agent\nb = 1\n", "line 1: [agent is not closed", "Write [agent].", "[agent]\nb = 1\n"),
    ("[[agent]\nb = 1\n", "line 1: [[agent is not closed", "Write [agent].", "[agent]\nb = 1\n"),
    (
        'env = {\n  A = "x"\n}\n',
        "line 1: the table env is not closed on this line",
        'Write it on one line, with a comma between two pairs: env = {A = "1", B = "2"}.',
        'env = {A = "1", B = "2"}\n',
    ),
]


@pytest.mark.parametrize(("text", "reason", "remedy", "better"), MISTAKES)
def test_a_mistake_is_named_with_its_line_and_a_remedy_that_works(
    text: str, reason: str, remedy: str, better: str
) -> None:
    found = said(text.encode())
    assert found == (reason, remedy)
    assert tomllib.loads(better)
    assert "hunter2" not in "".join(found)


@pytest.mark.parametrize(
    ("data", "reason", "remedy"),
    [
        ('a = "x"\n'.encode("utf-16"), "it is text in UTF-16", "Save it as UTF-8, without a byte order mark."),
        (
            'a = "x"\n'.encode("utf-16-le"),
            "it contains NUL characters, so it is text in UTF-16 or no text",
            "Save it as UTF-8.",
        ),
        (
            'a = "x"\n'.encode("utf-8-sig"),
            "it begins with a byte order mark",
            "Save it as UTF-8 without a byte order mark.",
        ),
        (b"b = 1\na = '\xff'\n", "line 2 has a character that is not UTF-8", "Save the file as UTF-8."),
    ],
)
def test_other_encodings(data: bytes, reason: str, remedy: str) -> None:
    assert said(data) == (reason, remedy)


@pytest.mark.parametrize("text", ["= 1\n", "<html>\n", "[]\n", 'a = "\x01"\n', "a.b = 1\na = 2\n"])
def test_what_is_not_known_keeps_the_parsers_words(text: str) -> None:
    with pytest.raises(tomllib.TOMLDecodeError) as caught:
        tomllib.loads(text)
    assert said(text.encode()) == (str(caught.value), UNKNOWN)


PIECES = [
    "[a]", "[a", "[[a]]", "a = 1", 'a = "x', "a = 'x", 'a = ["x"', '"y"', "]", "a.b = 2", "a = {b = 1", "a: x",
    "a = 4g", 'a = """', "= 1", "", "# x", 'a = "\\q"', "a =", "a = [", "a", "b = [1, 2]", "\x00", "\ufeff",
]  # fmt: skip
LINES = st.lists(st.sampled_from(PIECES), max_size=6)


@given(LINES.map("\n".join))
def test_any_mistake_is_an_error_of_one_line(text: str) -> None:
    with contextlib.suppress(MalformedFile):
        parse_file("/c.toml", text.encode())
        return
    reason, remedy = said(text.encode())
    assert reason.isprintable()
    assert remedy.endswith(".")
