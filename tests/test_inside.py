"""The programs that run inside a sandbox, on the Pythons that they promise to run on: 3.8 and later."""

from __future__ import annotations

import ast
import builtins
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from podbot.guest.local import LocalGuest
from podbot.guest.source import guest_text
from podbot.tools.worker_process import loaded_text, worker_text, worker_words
from tests.guest.local_commands import run
from tests.inside import PROGRAM, interpreters, version
from tests.inside_names import NAMES, NEWER_BUILTINS, OLDEST, unknown
from tests.tools.workers import files_in

PROGRAMS = {"guest": guest_text, "worker": worker_text}
FOUND = interpreters()


class Part(NamedTuple):
    """A module of a program, and its text."""

    name: str
    text: str


def parts(text: str) -> Iterator[Part]:
    """The modules that a program makes by ``_modules``, without its empty packages."""
    for node in ast.walk(ast.parse(text, feature_version=OLDEST)):
        match node:
            case ast.Call(func=ast.Name("_modules"), args=[listed]):
                yield from (Part(name, inner) for name, inner in ast.literal_eval(listed) if inner)


PARTS = [Part(f"{program} {name}", text) for program, made in PROGRAMS.items() for name, text in parts(made())]
PARTS += [Part(f"{program} itself", made()) for program, made in PROGRAMS.items()]
PARTS.append(Part("the worker's loader", worker_words("python3", "/")[-2]))
EACH_PART = pytest.mark.parametrize("part", PARTS, ids=[part.name for part in PARTS])
EACH_PYTHON = pytest.mark.parametrize("python", FOUND.values(), ids=FOUND)


def test_both_programs_are_of_an_old_python() -> None:
    assert len(PARTS) > 25
    assert all(hasattr(builtins, name) for name in NEWER_BUILTINS if not name.endswith("Warning"))
    assert loaded_text()[:8].isdigit()


@EACH_PART
def test_a_part_needs_the_grammar_and_the_names_of_python_3_8_only(part: Part) -> None:
    assert unknown(part.text) == []


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("import os\nos.pidfd_open(1)", "os.pidfd_open"),
        ("from functools import cache", "functools.cache"),
        ("import tomllib", "tomllib."),
        ("import os.path\nos.path.isjunction('x')", "os.path.isjunction"),
        ("'x'.removeprefix('y')", "the method removeprefix"),
        ("X = dict[str, int]", "dict[…] that is evaluated"),
        ("from collections.abc import Callable\nX = Callable[[], int]", "Callable[…] that is evaluated"),
        ("isinstance(1, int | str)", "a union in isinstance"),
        ("zip('a', 'b', strict=True)", "zip(strict=)"),
        ("(1).to_bytes()", "a byte order that is missing"),
        ("try: 1\nexcept ExceptionGroup: 2", "ExceptionGroup"),
    ],
)
def test_what_is_newer_is_found(text: str, what: str) -> None:
    assert what in unknown(text)


NEWER_GRAMMAR = ["match 1:\n case 1: 2", "x = 1\ntype X = int"]
if sys.version_info < (3, 13):  # which accepts it whatever the grammar that is asked for
    NEWER_GRAMMAR.append("with (open('a') as a, open('b') as b): 1")


@pytest.mark.parametrize("text", NEWER_GRAMMAR)
def test_newer_grammar_is_found(text: str) -> None:
    with pytest.raises(SyntaxError):
        unknown(text)


def test_annotations_are_not_evaluated() -> None:
    text = (
        "from __future__ import annotations\ndef f(a: list[int] | None) -> dict[str, int]:\n x: set[int] = a\n return x"
    )
    assert unknown(text) == []


@EACH_PYTHON
def test_a_python_compiles_the_programs_without_a_warning(python: str) -> None:
    code = "import json, sys\nfor text in json.load(sys.stdin): compile(text, 'part', 'exec')"
    texts = json.dumps([part.text for part in PARTS])
    words = [python, "-I", "-S", "-W", "error", "-c", code]
    done = subprocess.run(words, input=texts, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@EACH_PYTHON
def test_a_python_has_the_names(python: str) -> None:
    """``sre_parse`` is for those that have no ``re._parser``."""
    code = """import importlib, json, sys
missing = []
for module, names in json.load(sys.stdin).items():
    if module == "sre_parse" and sys.version_info >= (3, 11):
        continue
    found = importlib.import_module(module)
    missing += [module + "." + name for name in names.split() if not hasattr(found, name)]
print(*missing)"""
    done = subprocess.run(
        [python, "-I", "-S", "-W", "error", "-c", code], input=json.dumps(NAMES), capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [], "")


@EACH_PYTHON
def test_a_python_runs_both_programs(python: str, tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    (root / "src").mkdir(parents=True)
    (root / "src" / "data").write_bytes(b"\0" * 9)
    with LocalGuest.start(program=python) as guest:
        assert guest.channel.guest.python == version(python)
        ended, out, err = run(guest.channel, "/bin/sh", "-c", "cat; echo e >&2; exit 3", data=b"given")
        assert (ended.code, out, err) == (3, b"given", b"e\n")
        with files_in(guest, root, python=python) as files:
            assert files.write(("src", "a.py"), "x = 1\nprint(x)\n").size_bytes == 15
            assert files.edit(("src", "a.py"), "1", "2").replacements == 1
            assert files.read(("src", "a.py")).content == "x = 2\nprint(x)"
            assert [match.path for match in files.glob("**/*.py").matches] == ["src/a.py"]
            assert [match.line for match in files.grep(r"pr(?:int)?\(").matches] == ["print(x)"]
            assert [entry.path for entry in files.ls(("src",)).entries] == ["src/a.py", "src/data"]
            assert files.rm(("src",)).entries == 3


def test_the_tests_run_with_the_python_that_is_named() -> None:
    assert version(PROGRAM) is not None
