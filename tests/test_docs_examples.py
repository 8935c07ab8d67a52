"""The command lines and the configurations that the documentation shows are valid."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

import podbot
from podbot.cli.fast import read
from podbot.cli.options import HELP

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"(?ms)^( *)```(\w+)\n(.*?)^\1```$")
HERE = re.compile(r"(?ms) <<'?(\w+)'?\n.*?^\1$")
ANOTHER_PROGRAMS = ("[containers]", "[engine]", "[mcp_servers.podbot]")  # configurations of Podman and Codex
PLACEHOLDERS = {"AGENT": "claude", "KIND": "claude", "NAME": "shop", "SESSION": "shop", "PATH": ".", "DIR": "."}


def page_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(page: Path, *languages: str) -> Iterator[str]:
    for _, language, text in FENCE.findall(page.read_text(encoding="utf-8")):
        if language in languages:
            yield text


def shell_lines(page: Path) -> Iterator[str]:
    """What a reader types: the lines of ``sh`` blocks, and those of ``console`` blocks behind ``$``."""
    for text in blocks(page, "sh"):
        yield from quoted_whole(HERE.sub("", text).replace("\\\n", " ").splitlines())
    for text in blocks(page, "console"):
        yield from re.findall(r"(?m)^ *\$ (.*)$", text.replace("\\\n", " "))


def quoted_whole(lines: list[str]) -> Iterator[str]:
    """The lines, joined where a quotation continues on the next one."""
    joined = ""
    for line in lines:
        joined = f"{joined}\n{line}" if joined else line
        try:
            shlex.split(joined, comments=True)
        except ValueError:
            continue
        yield joined
        joined = ""


def commands(line: str) -> Iterator[list[str]]:
    """The arguments of each podbot in a line of the shell."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;()<>")
    lexer.whitespace_split, lexer.commenters = True, "#"
    words: list[str] = []
    for word in [*lexer, ";"]:
        if word and set(word) <= set("|&;()"):
            while words and re.fullmatch(r"\w+=.*", words[0]):
                del words[0]
            if words and words[0].rpartition("/")[2] == "podbot":
                yield _without_redirections(words[1:])
            words = []
        else:
            words.append(word)


def _without_redirections(words: list[str]) -> list[str]:
    kept: list[str] = []
    skip = False
    for word in words:
        if skip or set(word) <= set("<>"):
            skip = not skip
            continue
        kept.append(PLACEHOLDERS.get(word, word))
    return kept


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("podbot run . -- --model opus", [["run", ".", "--", "--model", "opus"]]),
        ("A=1 B='x y' podbot ps | jq .", [["ps"]]),
        ("cd x && podbot setup --yes; podbot ps # comment", [["setup", "--yes"], ["ps"]]),
        ("podbot exec shop tar -c notes > notes.tar", [["exec", "shop", "tar", "-c", "notes"]]),
        ("~/venv/bin/podbot --version", [["--version"]]),
        ("make run; command -v podbot", []),
    ],
    ids=["words", "variables and a pipe", "several", "redirection", "path", "none"],
)
def test_commands_of_a_line(line: str, found: list[list[str]]) -> None:
    assert list(commands(line)) == found


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_command_lines_are_valid(page: Path) -> None:
    found = [words for line in shell_lines(page) for words in commands(line)]
    plain = [words for words in found if not {*HELP, "--version", "--install-completion"} & set(words)]
    assert [shlex.join(["podbot", *words]) for words in plain if read(words) is None] == []


def test_a_quotation_of_several_lines_is_one() -> None:
    assert list(quoted_whole(["a 'b", "c' d", "e # it's"])) == ["a 'b\nc' d", "e # it's"]


def test_there_are_command_lines() -> None:
    assert sum(1 for page in PAGES for line in shell_lines(page) for _ in commands(line)) > 100


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_configurations_are_valid(page: Path, tmp_path: Path) -> None:
    for text in blocks(page, "toml"):
        if not any(head in text for head in ANOTHER_PROGRAMS):
            file = tmp_path / "config.toml"
            file.write_text(text)
            podbot.load_config(podbot.LoadOptions(file=str(file), environ={}))
