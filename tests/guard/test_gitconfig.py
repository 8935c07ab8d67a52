"""The parser of git's configuration, compared with git itself."""

from __future__ import annotations

import subprocess

from hypothesis import example, given, settings
from hypothesis import strategies as st

from podbot.guard.gitconfig import entries_of, parse
from tests.examples import examples


def git(data: bytes) -> list[tuple[str, str | None]] | None:
    """The result of git's parser; None when git refuses."""
    done = subprocess.run(
        ["git", "config", "--no-includes", "--null", "--list", "--file", "-"],
        input=data, capture_output=True, check=False, cwd="/", env={"GIT_DIR": "/dev/null", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    if done.returncode:
        return None
    found: list[tuple[str, str | None]] = []
    for entry in done.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]:
        key, there, value = entry.partition("\n")
        found.append((key, value if there else None))
    return found


def spaces(entries: list[tuple[str, str | None]]) -> list[tuple[str, str | None]]:
    """Older versions of git replace each white space in a value by a blank; newer ones keep it."""
    return [(key, None if value is None else value.replace("\t", " ").replace("\r", " ")) for key, value in entries]


PIECES = [
    "[core]", "[CORE]", '[filter "a b"]', '[alias "x"]', "[a.b]", '[a "\\"]', "[", "]", '"', "\\", "\\\n",
    "\\n", "\\t", "\\q", "\n", "\r\n", "\r", " ", "\t", "#", ";", "=", "fsmonitor", "hooksPath", "x-1", "1x",
    "=./run", "!sh -c", "é", "\0", "\ufeff", '[core "fsmonitor\0"]', "include", "path = ../x", "[include]", "-",
    "\x0b", "\x0c",
]  # fmt: skip


@settings(max_examples=examples(150))
@given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
@example("[core]\nfsmonitor = a # c\n")
@example('[filter "x"]\nclean = "a # b" \\\n c\n')
@example("\ufeff[core]\n\tx\n")
@example("[core] fsmonitor=./x")
@example('[core "fsmonitor\0"] x = ./run')
@example("[core]\nx = a\\")
@example('[a "b\\\n"]x')
@example("[a\n]\nb=1")
@example("x = 1\n[core]y=2")
@example("[]\nx = 1")
@example('[ "a"]\nx = 1')
def test_it_gives_the_same_result_as_git(text: str) -> None:
    data = text.encode()
    expected, found = git(data), parse(data)
    if expected is None:
        assert not found.whole
    else:
        assert found.whole
        assert spaces(list(found.entries)) == spaces(expected)


def test_one_by_one_the_entries_are_the_same_without_those_of_long_keys() -> None:
    data = f'[a]\nx=1\n[b "{"y" * 100}"]\nx\n[c]\nz\n!\nw\n'.encode()
    assert (
        list(entries_of(data, 104))
        == list(parse(data).entries)
        == [("a.x", "1"), (f"b.{'y' * 100}.x", None), ("c.z", None)]
    )
    assert list(entries_of(data, 103)) == list(entries_of(data, 3)) == [("a.x", "1"), ("c.z", None)]


def test_keys_that_are_far_larger_than_their_file_end_it() -> None:
    data = f'[a "{"y" * (1 << 17)}"]\n'.encode() + b"x\n" * (1 << 16)
    found = parse(data)
    assert not found.whole
    assert len(found.entries) == 127


@given(st.binary(max_size=300))
def test_no_input_makes_it_fail(data: bytes) -> None:
    parse(data)
